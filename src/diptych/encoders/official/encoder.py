"""ALBEF and X-VLM as dual encoders with a matching head: what the two have in common."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import ValidationError

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.core.files import write_json
from diptych.core.reading import read_json
from diptych.data.overlay import Overlay
from diptych.encoders.dual_encoder import CONFIG_FILE
from diptych.encoders.hub import saved_settings, tokenizer_content
from diptych.encoders.matching import not_two_towers
from diptych.encoders.official.bert import TextConfig
from diptych.encoders.official.checkpoint import Checkpoint, read_checkpoint
from diptych.encoders.official.inputs import Configuration, Given, Squashed, configured, find_tokenizer
from diptych.encoders.official.layouts import LAYOUTS, Layout, Stage, retrieval_weights
from diptych.encoders.official.model import (
    MatchingConfig,
    MatchingModel,
    built,
    described,
    filled,
    loaded,
    model_config_of,
)
from diptych.encoders.official.prepared import PreparedEncoder
from diptych.encoders.official.weights import agreed
from diptych.encoders.pretrained_towers import PretrainedTowers
from diptych.encoders.tensors import load_tensors, save_tensors
from diptych.encoders.text_cleaning import ALBEF_CLEANING

_WEIGHTS, _CONFIG = "model.safetensors", "config.json"

_PRE_TRAINED_SIZE = 384
"""For which pictures weights of pre-training are fitted unless another size is asked for: the published
retrieval recipes' own."""


def from_weights(
    checkpoint: Checkpoint,
    layout: Layout,
    stage: Stage,
    *,
    said: Configuration,
    image_size: int | None,
    text_limit: int | None,
    published_limit: int,
) -> tuple[MatchingModel, MatchingConfig]:
    """Build the model that a checkpoint holds, its tables fitted to the pictures asked for.

    Sizes are taken from the weights, and what ``said`` says of them is only compared.
    """
    source = checkpoint.name
    if stage not in ("fine-tuned", "pre-training"):
        raise UsageError(f"stage {stage!r}", "known: 'fine-tuned', 'pre-training'")
    if image_size is not None and (not isinstance(image_size, int) or image_size < 1):
        raise UsageError(f"pictures of {image_size} × {image_size} pixels", "give a whole number, 1 or more")
    state = retrieval_weights(checkpoint.state, layout, stage, source)
    fields = model_config_of(
        state,
        layout,
        source,
        vision=said.vision,
        text=said.text,
        image_size=image_size,
        default_size=_PRE_TRAINED_SIZE if stage == "pre-training" else None,
    )
    agreed({"width": said.width}, "width", fields["width"], "width of the rows (embed_dim)")
    limit = _limit(text_limit if text_limit is not None else said.text_limit, published_limit, fields["text"])
    config = MatchingConfig(**fields, stage=stage, checkpoint=source, text_limit=limit)
    model = built(config)
    model.load_state_dict(filled(model, state, layout, source), strict=True)
    return model, config


def _limit(asked: int | None, published: int, text: TextConfig) -> int:
    """Tokens a text is cut to: as asked, else as published where the model has so many positions."""
    if asked is None:
        return min(published, text.positions)
    if not isinstance(asked, int) or not 2 < asked <= text.positions:
        raise UsageError(
            f"texts of {asked!r} tokens for a text encoder of {text.positions} positions",
            f"choose 3 to {text.positions}",
        )
    return asked


def save_model(model: MatchingModel, config: MatchingConfig, layout: Layout, folder: Path) -> None:
    """Write weights and configuration into ``folder``."""
    save_tensors(model.state_dict(), folder / _WEIGHTS)
    write_json(folder / _CONFIG, {"family": layout.family, **config.model_dump(mode="json")})


def open_saved(folder: Path, layout: Layout) -> tuple[MatchingModel, MatchingConfig]:
    """Read what :func:`save_model` wrote."""
    content = read_json(folder / _CONFIG)
    family = content.pop("family", None) if isinstance(content, dict) else None
    if family != layout.family:
        raise MismatchError(
            f"{folder} holds {family or 'no known'} weights, not {layout.family}",
            f"load it with {family}:FOLDER" if family else "save the encoder again",
        )
    try:
        config = MatchingConfig(**content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise StorageError(f"{folder / _CONFIG}: {where}: {first['msg']}", "save the encoder again") from None
    weights = load_tensors(folder / _WEIGHTS, "save the encoder again")
    return loaded(built(config), weights, str(folder)), config


_PRE_TRAINING = "pretraining:"


class OfficialEncoder(PreparedEncoder):
    """A two-stage model of its authors' checkpoint; make one with :meth:`from_checkpoint` or :meth:`open`.

    Rows are the contrastive projections of the image encoder's first token and of the text half's. The
    matching head reads a text's states through the fusion half, which looks at all tokens of the picture.
    """

    published_limit: ClassVar[int]
    """Tokens that the published evaluation cuts a text to."""

    def __init__(
        self,
        model: MatchingModel,
        config: MatchingConfig,
        name: str,
        *,
        tokenizer: Any = None,
        beside: Path | None = None,
        device: str | None = None,
        characters: int | None = None,
        prefix: str = "",
    ) -> None:
        super().__init__(model, name, config.text_limit, device, characters)
        self.prefix = prefix
        self.config = config
        self.cleaning = ALBEF_CLEANING
        self._prepare = Squashed(config.vision.image_size)
        self._tokenizer, self._beside = tokenizer, beside

    @classmethod
    def from_checkpoint(
        cls,
        checkpoint: str | Path | Mapping[str, Any],
        *,
        config: Given = None,
        vision: Given = None,
        text: Given = None,
        image_size: int | None = None,
        stage: Stage = "fine-tuned",
        tokenizer: Any = None,
        text_limit: int | None = None,
        name: str | None = None,
        device: str | None = None,
    ) -> Self:
        """Load a checkpoint of the published code: a file, a folder with one, or its weights by name."""
        found = read_checkpoint(checkpoint)
        model, sizes = from_weights(
            found,
            LAYOUTS[cls.family],
            stage,
            said=configured(found.config() if config is None else {}, config, vision, text),
            image_size=image_size,
            text_limit=text_limit,
            published_limit=cls.published_limit,
        )
        return cls(model, sizes, name or found.name, tokenizer=tokenizer, beside=found.folder, device=device)

    @classmethod
    def open(cls, source: str, *, device: str | None = None) -> Self:
        """Load ``FILE``, ``FOLDER`` or, on purpose, ``pretraining:FILE``; or a folder that was saved."""
        stage: Stage = "pre-training" if source.startswith(_PRE_TRAINING) else "fine-tuned"
        path = Path(source.removeprefix(_PRE_TRAINING)).expanduser()
        if (path / CONFIG_FILE).is_file():
            model, config = open_saved(path, LAYOUTS[cls.family])
            settings = saved_settings(path)
            encoder = cls(
                model,
                config,
                settings.get("name", path.resolve().name),
                beside=path,
                device=device,
                characters=settings.get("characters"),
                prefix=settings.get("prefix", ""),
            )
        else:
            encoder = cls.from_checkpoint(path, stage=stage, device=device)
        _ = encoder.tokenizer  # now, not after the pictures have been encoded
        return encoder

    @property
    def tokenizer(self) -> Any:
        """The tokenizer, found when first asked for."""
        if self._tokenizer is None or isinstance(self._tokenizer, str | Path):
            self._tokenizer = find_tokenizer(self._tokenizer, self._beside)
        return self._tokenizer

    @property
    def width(self) -> int:
        return self.config.width

    def _tokens(self, texts: list[str], limit: int) -> list[list[int]]:
        ids: list[list[int]] = self.tokenizer(
            [self.cleaning(text) for text in texts], truncation=True, max_length=limit
        )["input_ids"]
        return ids

    def _token_counts(self, texts: list[str]) -> list[int]:
        # One token more than the limit is enough to know that a text is longer; so are lost words.
        counts = map(len, self._tokens(texts, self.text_limit + 1)) if texts else ()
        return self.cleaning.counts(texts, list(counts), self.text_limit)

    def _ids(self, texts: list[str]) -> list[np.ndarray]:
        return [np.asarray(row, dtype=np.int64) for row in self._tokens(texts, self.text_limit)]

    @property
    def padding(self) -> tuple[int, int | None]:
        return int(self.tokenizer.pad_token_id), None

    def _pixels(self, picture: Any, overlay: Overlay | None) -> np.ndarray:
        return self._prepare(picture, overlay)

    def sides(self) -> tuple[list[str], list[str]]:
        return ["image", "vision_proj"], ["text", "text_proj"]

    @property
    def towers(self) -> PretrainedTowers:
        raise not_two_towers(self.name)

    @property
    def learned_options(self) -> dict[str, float]:
        kept = self.config.temperature
        return {} if kept is None else {"temperature": kept}

    def preprocessing(self) -> dict[str, Any]:
        return self._prepare.describe()

    def _content(self) -> list[Any]:
        sizes = [self.config.vision.model_dump(), self.config.text.model_dump(), self.config.head]
        return [*sizes, tokenizer_content(self.tokenizer), self.cleaning.describe()]

    def _about(self) -> dict[str, Any]:
        return described(self.config, LAYOUTS[self.family], self.cleaning, self.tokenizer)

    def _write(self, folder: Path) -> None:
        save_model(self.model, self.config, LAYOUTS[self.family], folder)
        self.tokenizer.save_pretrained(folder)
