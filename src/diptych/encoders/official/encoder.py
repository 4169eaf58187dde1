"""ALBEF and X-VLM as dual encoders with a matching head: what the two have in common."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from diptych.data.overlay import Overlay
from diptych.encoders.dual_encoder import CONFIG_FILE
from diptych.encoders.foreign import saved_settings, tokenizer_content
from diptych.encoders.matching import not_two_towers
from diptych.encoders.official.checkpoint import read_checkpoint
from diptych.encoders.official.configuration import Given, configured
from diptych.encoders.official.inputs import Squashed, find_tokenizer
from diptych.encoders.official.layouts import LAYOUTS, Stage
from diptych.encoders.official.model import MatchingConfig, MatchingModel, described
from diptych.encoders.official.opening import from_weights, open_saved, save_model
from diptych.encoders.official.prepared import PreparedEncoder
from diptych.encoders.pretrained_towers import PretrainedTowers
from diptych.encoders.text_cleaning import ALBEF_CLEANING

__all__ = ["OfficialEncoder"]

_PRE_TRAINING = "pretraining:"


class OfficialEncoder(PreparedEncoder):
    """A two-stage model of its authors' checkpoint; make one with :meth:`from_checkpoint` or :meth:`open`.

    Rows are the contrastive projections of the image encoder's first token and of the text half's. The
    matching head reads a text's states through the fusion half, which looks at all tokens of the picture.

    Args:
        model: encoders, fusion and heads.
        config: what it was built with.
        name: what reports call it.
        tokenizer: one of transformers; or a folder or name to find it by, when texts are first encoded.
        beside: the checkpoint's folder, which may hold the tokenizer.
        device: see :func:`diptych.encoders.pretrained.pick_device`.
        characters: characters a text is cut to before it is cleaned; None cuts none.
        prefix: what stands before every text.
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
        """Load a checkpoint of the published code: a file, a folder with one, or its weights by name.

        Args:
            checkpoint: ``.th``, ``.pth``, ``.pt`` or ``.bin`` (read with ``weights_only=True``), or
                ``.safetensors``; the weights by themselves or under ``model`` or ``state_dict``. Momentum
                copies and queues are passed over.
            config: what is said of the checkpoint: the published recipe (``image_res``, ``embed_dim``,
                ``max_tokens``) with the encoders' configurations under ``vision_config`` (``vit``, ``swin``)
                and ``text_config`` (``bert_config``), or a JSON file with it; the config.json beside the
                checkpoint, where there is one, when not said.
            vision: the image encoder's configuration alone, in the names of the published code (``img_size`` or
                ``image_res``, ``patch_size``, ``embed_dim``, ``depth`` or ``depths``, ``num_heads``,
                ``window_size``) or of transformers. Sizes are told by the weights and only compared; what
                no shape tells is the number of heads of a ViT (one of every 64 columns when not said),
                ``layer_norm_eps`` and ``hidden_act``.
            text: the text encoder's alone, as BERT's config.json (``num_attention_heads``, ``hidden_act``, …).
            image_size: side of the pictures; the position tables are interpolated to it. When not said:
                as the configuration says, else what the weights were trained at, and 384 for pre-training.
            stage: what the checkpoint has to be.
            tokenizer: one of transformers, a folder or a name; the files beside the checkpoint, else
                bert-base-uncased, when not said. It is looked for when a text is encoded.
            text_limit: tokens a text is cut to; the published 30 (ALBEF) or 40 (X-VLM) when not said.
            name: what reports call it; the file's name when not said.
            device: the GPU where there is one, else the CPU, when not said.

        Raises:
            UsageError: no such file; a size or a number of heads that cannot be.
            MismatchError: a checkpoint of another model or of the other stage, or a configuration that is
                not its own.
            StorageError: a damaged file, code in it, or weights that are missing or too many.
        """
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
        """Load ``FILE``, ``FOLDER`` or, on purpose, ``pretraining:FILE``; or a folder that was saved.

        Raises:
            UsageError, MismatchError, StorageError: see :meth:`from_checkpoint`.
        """
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
        """The tokenizer, found when first asked for.

        Raises:
            UsageError, StorageError: see :func:`diptych.encoders.official.inputs.find_tokenizer`.
        """
        if self._tokenizer is None or isinstance(self._tokenizer, str | Path):
            self._tokenizer = find_tokenizer(self._tokenizer, self._beside)
        return self._tokenizer

    @property
    def width(self) -> int:
        """d, the length of one row."""
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
        """The tokenizer's padding token; to the batch's longest, for the mask hides it."""
        return int(self.tokenizer.pad_token_id), None

    def _pixels(self, picture: Any, overlay: Overlay | None) -> np.ndarray:
        return self._prepare(picture, overlay)

    def sides(self) -> tuple[list[str], list[str]]:
        """``image``, ``vision_proj``; ``text``, ``text_proj``. Fusion and matching head are of neither."""
        return ["image", "vision_proj"], ["text", "text_proj"]

    @property
    def towers(self) -> PretrainedTowers:
        """Refused.

        Raises:
            UsageError: always: the matching head reads the states of both sides, and would be left behind.
        """
        raise not_two_towers(self.name)

    @property
    def learned_options(self) -> dict[str, float]:
        """The temperature, where the checkpoint has it."""
        kept = self.config.temperature
        return {} if kept is None else {"temperature": kept}

    def preprocessing(self) -> dict[str, Any]:
        """The square that a picture is squashed to, and what its pixels are divided by."""
        return self._prepare.describe()

    def _content(self) -> list[Any]:
        sizes = [self.config.vision.model_dump(), self.config.text.model_dump(), self.config.head]
        return [*sizes, tokenizer_content(self.tokenizer), self.cleaning.describe()]

    def _about(self) -> dict[str, Any]:
        return described(self.config, LAYOUTS[self.family], self.cleaning, self.tokenizer)

    def _write(self, folder: Path) -> None:
        save_model(self.model, self.config, LAYOUTS[self.family], folder)
        self.tokenizer.save_pretrained(folder)
