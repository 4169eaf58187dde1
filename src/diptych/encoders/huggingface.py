"""CLIP-like models of transformers as dual encoders, from a folder or by hub name.

Nothing is taken on trust that would fail silently: weights that a file lacks (transformers makes
them up at random), tokenizers that a folder lacks (transformers makes an empty one), a half
precision checkpoint (computed in float32). Safetensors are preferred; a ``pytorch_model.bin`` is
read with ``weights_only=True``, which refuses pickled code; code shipped with a model is never run.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from diptych.core.errors import MismatchError, UsageError
from diptych.data.overlay import Overlay
from diptych.encoders.foreign import (
    LOADING_ERRORS,
    loading_failure,
    saved_settings,
    tokenizer_content,
    without_keys,
)
from diptych.encoders.huggingface_files import NO_EFFECT, check_loaded, quiet, weights_format
from diptych.encoders.overlaid import processed_pixels
from diptych.encoders.pretrained import PretrainedEncoder
from diptych.encoders.text_rules import TEXT_RULES

__all__ = ["NO_EFFECT", "HuggingFaceEncoder", "quiet"]


class HuggingFaceEncoder(PretrainedEncoder):
    """A CLIP-like model of transformers; make one with :meth:`open` or ``DualEncoder.load``."""

    family: ClassVar[str] = "huggingface"

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        image_processor: Any,
        name: str,
        *,
        device: str | None = None,
        characters: int | None = None,
    ) -> None:
        self.rule = TEXT_RULES[model.config.model_type]
        self.tokenizer = tokenizer
        self.image_processor = image_processor
        config = model.config.text_config
        limits = [config.max_position_embeddings - self.rule.reserved, tokenizer.model_max_length]
        limit = min(limits if self.rule.limit is None else [*limits, self.rule.limit])
        super().__init__(model, name, int(limit), device, characters)
        self._vocabulary_size = int(config.vocab_size)
        self._can_paste = False
        self._text_inputs = set(inspect.signature(model.get_text_features).parameters)
        if not self.rule.mask:
            self._text_inputs.discard("attention_mask")

    @classmethod
    def open(cls, source: str, *, device: str | None = None) -> Self:
        """Load from a folder, or by name from the hub or its cache.

        Pictures are prepared with Pillow, as these models' published numbers were; the torchvision
        variant of the same preprocessing gives slightly other pixels.

        Raises:
            UsageError: the hub cannot be reached or does not know the name; or not a dual encoder.
            StorageError: files are missing or damaged.
        """
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
                if config.model_type not in TEXT_RULES:
                    raise UsageError(
                        f"{source} is a {config.model_type!r} model, not an image–text dual encoder",
                        f"known: {', '.join(sorted(TEXT_RULES))}",
                    )
                model, loading = transformers.AutoModel.from_pretrained(
                    where,
                    config=config,
                    dtype=torch.float32,
                    use_safetensors=safetensors,
                    weights_only=True,
                    output_loading_info=True,
                    ignore_mismatched_sizes=True,  # reported by _check, with names
                    **common,
                )
                tokenizer = transformers.AutoTokenizer.from_pretrained(where, **common)
                processor = transformers.AutoImageProcessor.from_pretrained(where, backend="pil", **common)
        except LOADING_ERRORS as error:
            fix = (
                "download the model again, all files"
                if folder
                else f"run `hf download {source} --local-dir FOLDER` where there is network; pass FOLDER"
            )
            raise loading_failure(source, folder, error, fix) from error
        check_loaded(source, loading, tokenizer)
        name = settings.get("name", folder.resolve().name if folder else source)
        return cls(model, tokenizer, processor, name, device=device, characters=settings.get("characters"))

    def _image_features(self, pictures: list[Any]) -> torch.Tensor:
        inputs = self.image_processor(images=pictures, return_tensors="pt").to(self.device)
        return _pooled(self.model.get_image_features(**inputs))

    def _text_features(self, texts: list[str]) -> torch.Tensor:
        tokens = self.tokenizer(
            texts, padding=self.rule.padding, truncation=True, max_length=self.text_limit, return_tensors="pt"
        )
        self._check_known(int(tokens["input_ids"].max()))
        inputs = {key: value.to(self.device) for key, value in tokens.items() if key in self._text_inputs}
        return _pooled(self.model.get_text_features(**inputs))

    def _check_known(self, largest: int) -> None:
        if largest >= self._vocabulary_size:
            raise MismatchError(
                f"the tokenizer of {self.name} gave token {largest}, the model knows {self._vocabulary_size}",
                "the tokenizer files are another model's: use its own",
            )

    def _pixels(self, picture: Any, overlay: Overlay | None) -> np.ndarray:
        pixels = processed_pixels(self.image_processor, picture, overlay, check=not self._can_paste)
        self._can_paste |= overlay is not None
        return pixels

    def pixel_features(self, pixels: torch.Tensor) -> torch.Tensor:
        """(n, 3, height, width) prepared pictures → (n, d) rows of any length."""
        return _pooled(self.model.get_image_features(pixel_values=pixels))

    def _ids(self, texts: list[str]) -> list[np.ndarray]:
        tokens = self.tokenizer(texts, truncation=True, max_length=self.text_limit)
        ids = [np.asarray(row, dtype=np.int64) for row in tokens["input_ids"]]
        self._check_known(max(int(row.max(initial=0)) for row in ids))
        return ids

    @property
    def padding(self) -> tuple[int, int | None]:
        """The tokenizer's padding token, and the limit where the model was trained at one length.

        Raises:
            UsageError: a tokenizer that fills from the left.
        """
        if self.tokenizer.padding_side != "right":
            raise UsageError(
                f"the tokenizer of {self.name} pads on the {self.tokenizer.padding_side}",
                "set its padding_side to right",
            )
        return int(self.tokenizer.pad_token_id), None if self.rule.padding == "longest" else self.text_limit

    def token_features(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """(n, t) padded token ids and (n,) lengths → (n, d) rows of any length."""
        inputs = {"input_ids": tokens}
        if "attention_mask" in self._text_inputs:
            inside = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
            inputs["attention_mask"] = inside.long()
        return _pooled(self.model.get_text_features(**inputs))

    def sides(self) -> tuple[list[str], list[str]]:
        """By name: ``vision_model``, ``visual_projection``; ``text_model``, ``text_projection``."""
        names = [name for name, _ in self.model.named_children()]
        images = [name for name in names if name.startswith(("vision", "visual"))]
        return images, [name for name in names if name.startswith("text")]

    def _token_counts(self, texts: list[str]) -> list[int]:
        # One token more than the limit is enough to know that a text is longer.
        tokens = self.tokenizer(texts, truncation=True, max_length=self.text_limit + 1)
        return [len(ids) for ids in tokens["input_ids"]]

    def preprocessing(self) -> dict[str, Any]:
        """The image processor's settings."""
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
            "temperature": learned["temperature"],
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
