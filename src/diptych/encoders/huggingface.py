"""Encoders of Hugging Face: loading from a folder or the hub, towers, preprocessing."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from diptych.core.errors import MismatchError, UsageError
from diptych.data.overlay import Overlay
from diptych.encoders.direct_pixels import ProcessorPixels
from diptych.encoders.hub import (
    LOADING_ERRORS,
    loading_failure,
    saved_settings,
    tokenizer_content,
    without_keys,
)
from diptych.encoders.huggingface_files import NO_EFFECT, check_loaded, quiet, weights_format
from diptych.encoders.pretrained import PretrainedEncoder
from diptych.encoders.text_cleaning import TEXT_RULES, TextRule


@dataclass(frozen=True, eq=False)
class LoadedParts:
    """What a folder or a hub name holds.

    Attributes:
        model, tokenizer, image_processor: as transformers made them, the model in float32.
        name: what reports call the model.
        settings: what ``DualEncoder.save`` kept beside it.
    """

    model: Any
    tokenizer: Any
    image_processor: Any
    name: str
    settings: dict[str, Any]


def load_parts(
    source: str,
    known: Collection[str],
    what: str,
    check: Callable[[Any], None],
    library_class: Callable[[], Any],
    backend: str = "pil",
) -> LoadedParts:
    """Load from a folder, or by name from the hub or its cache."""
    import transformers

    given = Path(source).expanduser()
    folder = given if given.is_dir() else None
    where = str(folder) if folder else source
    common: dict[str, Any] = {"trust_remote_code": False, "local_files_only": folder is not None}
    settings = saved_settings(given) if folder else {}
    safetensors = weights_format(folder) if folder else None
    try:
        with quiet(bars=folder is None):
            config = transformers.AutoConfig.from_pretrained(where, **common)
            if config.model_type not in known:
                raise UsageError(
                    f"{source} is a {config.model_type!r} model, not {what}",
                    f"known: {', '.join(sorted(known))}",
                )
            check(config)
            model, loading = library_class().from_pretrained(
                where,
                config=config,
                dtype=torch.float32,
                use_safetensors=safetensors,
                weights_only=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # reported by check_loaded, with names
                **common,
            )
            tokenizer = transformers.AutoTokenizer.from_pretrained(where, **common)
            processor = transformers.AutoImageProcessor.from_pretrained(where, backend=backend, **common)
    except LOADING_ERRORS as error:
        fix = (
            "download the model again, all files"
            if folder
            else f"run `hf download {source} --local-dir FOLDER` where there is network; pass FOLDER"
        )
        raise loading_failure(source, folder, error, fix) from error
    check_loaded(source, loading, tokenizer)
    name = settings.get("name", folder.resolve().name if folder else source)
    return LoadedParts(model, tokenizer, processor, name, settings)


class HuggingFaceEncoder(PretrainedEncoder):
    """A CLIP-like model of transformers; make one with :meth:`open` or ``DualEncoder.load``."""

    family: ClassVar[str] = "huggingface"
    rules: ClassVar[Mapping[str, TextRule]] = TEXT_RULES
    """The model types that this class knows, and how they want their texts."""
    what: ClassVar[str] = "an image–text dual encoder"

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        image_processor: Any,
        name: str,
        *,
        device: str | None = None,
        characters: int | None = None,
        prefix: str = "",
    ) -> None:
        self.rule = self.rules[model.config.model_type]
        self.tokenizer = tokenizer
        self.image_processor = image_processor
        config = model.config.text_config
        limits = [config.max_position_embeddings - self.rule.reserved, tokenizer.model_max_length]
        limit = min(limits if self.rule.limit is None else [*limits, self.rule.limit])
        super().__init__(model, name, int(limit), device, characters)
        self.prefix = prefix
        self._vocabulary_size = int(config.vocab_size)
        self._prepare_pixels = ProcessorPixels(image_processor)
        self._text_inputs = self._accepted()
        if not self.rule.mask:
            self._text_inputs.discard("attention_mask")

    @classmethod
    def open(cls, source: str, *, device: str | None = None) -> Self:
        """Load from a folder, or by name from the hub or its cache."""
        parts = load_parts(source, cls.rules, cls.what, cls._check_config, cls._library_class)
        return cls(
            parts.model,
            parts.tokenizer,
            parts.image_processor,
            parts.name,
            device=device,
            characters=parts.settings.get("characters"),
            prefix=parts.settings.get("prefix", ""),
        )

    @classmethod
    def _check_config(cls, config: Any) -> None:
        """Refuse a configuration before its weights are read."""

    @classmethod
    def _library_class(cls) -> Any:
        """Transformers' class of the model."""
        import transformers

        return transformers.AutoModel

    def _accepted(self) -> set[str]:
        """The names of what the model takes of texts."""
        return set(inspect.signature(self.model.get_text_features).parameters)

    def _picture_rows(self, **inputs: torch.Tensor) -> torch.Tensor:
        """Rows of what the image processor made."""
        return _pooled(self.model.get_image_features(**inputs))

    def _token_rows(self, **inputs: torch.Tensor) -> torch.Tensor:
        """Rows of what the tokenizer made."""
        return _pooled(self.model.get_text_features(**inputs))

    def _wording(self, texts: list[str]) -> list[str]:
        """What is tokenised of texts: they themselves, unless a model was trained on cleaned ones."""
        return texts

    def _tokenized(self, texts: list[str], padding: str) -> dict[str, torch.Tensor]:
        """Token ids and whatever else the model takes of texts, cut to the limit and padded."""
        tokens = self.tokenizer(
            self._wording(texts),
            padding=padding,
            truncation=True,
            max_length=self.text_limit,
            return_tensors="pt",
        )
        self._check_known(int(tokens["input_ids"].max()))
        return {key: value for key, value in tokens.items() if key in self._text_inputs}

    def _image_features(self, pictures: list[Any]) -> torch.Tensor:
        return self._picture_rows(
            **self.image_processor(images=pictures, return_tensors="pt").to(self.device)
        )

    def _text_features(self, texts: list[str]) -> torch.Tensor:
        inputs = self._tokenized(texts, self.rule.padding)
        return self._token_rows(**{key: value.to(self.device) for key, value in inputs.items()})

    def _check_known(self, largest: int) -> None:
        if largest >= self._vocabulary_size:
            raise MismatchError(
                f"the tokenizer of {self.name} gave token {largest}, the model knows {self._vocabulary_size}",
                "the tokenizer files are another model's: use its own",
            )

    def _pixels(self, picture: Any, overlay: Overlay | None) -> np.ndarray:
        return self._prepare_pixels(picture, overlay)

    @property
    def prepares(self) -> bool:
        return self._prepare_pixels.one_size

    def pixel_features(self, pixels: torch.Tensor) -> torch.Tensor:
        return self._picture_rows(pixel_values=pixels)

    def _ids(self, texts: list[str]) -> list[np.ndarray]:
        tokens = self.tokenizer(self._wording(texts), truncation=True, max_length=self.text_limit)
        ids = [np.asarray(row, dtype=np.int64) for row in tokens["input_ids"]]
        self._check_known(max(int(row.max(initial=0)) for row in ids))
        return ids

    @property
    def padding(self) -> tuple[int, int | None]:
        if self.tokenizer.padding_side != "right":
            raise UsageError(
                f"the tokenizer of {self.name} pads on the {self.tokenizer.padding_side}",
                "set its padding_side to right",
            )
        return int(self.tokenizer.pad_token_id), None if self.rule.padding == "longest" else self.text_limit

    def token_features(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        inputs = {"input_ids": tokens}
        if "attention_mask" in self._text_inputs:
            inside = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
            inputs["attention_mask"] = inside.long()
        return self._token_rows(**inputs)

    def sides(self) -> tuple[list[str], list[str]]:
        names = [name for name, _ in self.model.named_children()]
        images = [name for name in names if name.startswith(("vision", "visual"))]
        return images, [name for name in names if name.startswith("text")]

    def _token_counts(self, texts: list[str]) -> list[int]:
        # One token more than the limit is enough to know that a text is longer.
        tokens = self.tokenizer(self._wording(texts), truncation=True, max_length=self.text_limit + 1)
        return [len(ids) for ids in tokens["input_ids"]]

    def preprocessing(self) -> dict[str, Any]:
        settings = without_keys(self.image_processor.to_dict(), NO_EFFECT)
        # Through JSON, so that tuples and enumerations compare as they are written.
        plain: dict[str, Any] = json.loads(json.dumps(settings, default=str))
        return {"processor": type(self.image_processor).__name__, **plain}

    def _content(self) -> list[Any]:
        config = without_keys(self.model.config.to_dict(), NO_EFFECT)
        return [config, tokenizer_content(self.tokenizer), self.rule.padding, self.rule.mask]

    def _about(self) -> dict[str, Any]:
        import transformers

        config, learned = self.model.config, self.learned_options
        return {
            "model": type(self.model).__name__,
            "library": f"transformers {transformers.__version__}",
            "text": {"tokenizer": type(self.tokenizer).__name__, "padding": self.rule.padding},
            "activation": {
                "image": getattr(config.vision_config, "hidden_act", None),
                "text": getattr(config.text_config, "hidden_act", None),
            },
            "temperature": learned.get("temperature"),
            "bias": learned.get("bias"),
        }

    def _write(self, folder: Path) -> None:
        with quiet(bars=False):
            self.model.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)
            self.image_processor.save_pretrained(folder)


def _pooled(output: Any) -> torch.Tensor:
    """The row itself: transformers 5 hands back an output object, earlier versions the tensor."""
    rows = output if isinstance(output, torch.Tensor) else output.pooler_output
    assert isinstance(rows, torch.Tensor)
    return rows
