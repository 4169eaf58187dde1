"""ALBEF and X-VLM as dual encoders with a matching head: what the two have in common."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from diptych.data.images import Overlay
from diptych.encoders.dual_encoder import CONFIG_FILE
from diptych.encoders.hub import saved_settings, tokenizer_content
from diptych.encoders.matching import not_two_towers
from diptych.encoders.official.checkpoint import (
    LAYOUTS,
    Stage,
    read_checkpoint,
)
from diptych.encoders.official.inputs import Given, Squashed, configured, find_tokenizer
from diptych.encoders.official.model import (
    MatchingConfig,
    MatchingModel,
    described,
    from_weights,
    open_saved,
    save_model,
)
from diptych.encoders.official.prepared import PreparedEncoder
from diptych.encoders.pretrained_towers import PretrainedTowers
from diptych.encoders.text_cleaning import ALBEF_CLEANING

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


class AlbefEncoder(OfficialEncoder):
    """ALBEF (Li et al., NeurIPS 2021) from a checkpoint of its authors.

    >>> encoder = AlbefEncoder.from_checkpoint("flickr30k.pth")  # doctest: +SKIP
    >>> encoder.encode_texts(["two dogs on a beach"])  # doctest: +SKIP
    """

    family: ClassVar[str] = "albef"
    published_limit: ClassVar[int] = 30


class XvlmEncoder(OfficialEncoder):
    """X-VLM (Zeng et al., ICML 2022) from a checkpoint of its authors.

    The first token of a picture is the mean of the others, which the matching head reads with them.

    >>> encoder = XvlmEncoder.from_checkpoint("itr_coco.th")  # doctest: +SKIP
    >>> encoder.encode_texts(["two dogs on a beach"])  # doctest: +SKIP
    """

    family: ClassVar[str] = "xvlm"
    published_limit: ClassVar[int] = 40
