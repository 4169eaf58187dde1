"""CLIP-like models of transformers as dual encoders, from a folder or by hub name.

Nothing is taken on trust that would fail silently: weights that a file lacks (transformers makes
them up at random), tokenizers that a folder lacks (transformers makes an empty one), a half
precision checkpoint (computed in float32). Safetensors are preferred; a ``pytorch_model.bin`` is
read with ``weights_only=True``, which refuses pickled code; code shipped with a model is never run.
"""

from __future__ import annotations

import inspect
import json
import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

import torch

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.encoders.foreign import (
    LOADING_ERRORS,
    loading_failure,
    saved_settings,
    tokenizer_content,
    without_keys,
)
from diptych.encoders.pretrained import PretrainedEncoder
from diptych.encoders.text_rules import TEXT_RULES

__all__ = ["NO_EFFECT", "HuggingFaceEncoder", "quiet"]

logger = logging.getLogger(__name__)

NO_EFFECT = frozenset(
    (
        *("_name_or_path", "name_or_path", "_commit_hash", "transformers_version", "architectures"),
        *("auto_map", "image_processor_type", "dtype", "torch_dtype", "_attn_implementation_autoset"),
        *("initializer_range", "initializer_factor", "logit_scale_init_value", "temperature_init_value"),
        *("attention_dropout", "dropout", "dropout_rate", "drop_connect_rate"),
        *("hidden_dropout_prob", "attention_probs_dropout_prob"),
        *("id2label", "label2id", "problem_type"),
        *("return_dict", "output_attentions", "output_hidden_states"),
    )
)
"""Configuration keys that do not change a row in evaluation mode."""


@contextmanager
def quiet(bars: bool) -> Iterator[None]:
    """Silence transformers' reports (ours are exceptions), and its progress bars unless ``bars``."""
    from transformers.utils import logging as reports

    verbosity, bars_before = reports.get_verbosity(), reports.is_progress_bar_enabled()
    reports.set_verbosity_error()
    if not bars:
        reports.disable_progress_bar()
    try:
        yield
    finally:
        reports.set_verbosity(verbosity)
        if bars_before:
            reports.enable_progress_bar()


def _weights_format(folder: Path) -> bool:
    """True for safetensors, False for a pytorch_model.bin.

    Raises:
        StorageError: neither is there.
    """
    for name, safe in (("model.safetensors", True), ("pytorch_model.bin", False)):
        if (folder / name).is_file() or (folder / f"{name}.index.json").is_file():
            return safe
    raise StorageError(
        f"{folder} holds no weights: neither model.safetensors nor pytorch_model.bin",
        "download the model again, weights included",
    )


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
        safetensors = _weights_format(folder) if folder else None
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
        cls._check(source, loading, tokenizer)
        name = settings.get("name", folder.resolve().name if folder else source)
        return cls(model, tokenizer, processor, name, device=device, characters=settings.get("characters"))

    @staticmethod
    def _check(source: str, loading: dict[str, Any], tokenizer: Any) -> None:
        missing = sorted(loading["missing_keys"])
        if missing:
            raise StorageError(
                f"{source} lacks {len(missing)} of the model's weights, which would be random: "
                + ", ".join(missing[:3]),
                "download the model again, or use the one that holds both towers",
            )
        if loading["mismatched_keys"]:
            name, found, wanted = sorted(loading["mismatched_keys"])[0]
            raise StorageError(
                f"{source}: {name} has the shape {tuple(found)}, its config.json asks for {tuple(wanted)}",
                "use the config.json and the weights of the same model",
            )
        if tokenizer.vocab_size <= len(tokenizer.all_special_tokens):
            raise StorageError(
                f"{source} holds no tokenizer: a vocabulary of {tokenizer.vocab_size} special tokens",
                "add the model's tokenizer.json (or vocab.json and merges.txt)",
            )
        if loading["unexpected_keys"]:
            logger.info("%s: %d weights are not used", source, len(loading["unexpected_keys"]))

    def _image_features(self, pictures: list[Any]) -> torch.Tensor:
        inputs = self.image_processor(images=pictures, return_tensors="pt").to(self.device)
        return _pooled(self.model.get_image_features(**inputs))

    def _text_features(self, texts: list[str]) -> torch.Tensor:
        tokens = self.tokenizer(
            texts, padding=self.rule.padding, truncation=True, max_length=self.text_limit, return_tensors="pt"
        )
        largest = int(tokens["input_ids"].max())
        if largest >= self._vocabulary_size:
            raise MismatchError(
                f"the tokenizer of {self.name} gave token {largest}, the model knows {self._vocabulary_size}",
                "the tokenizer files are another model's: use its own",
            )
        inputs = {key: value.to(self.device) for key, value in tokens.items() if key in self._text_inputs}
        return _pooled(self.model.get_text_features(**inputs))

    def _token_counts(self, texts: list[str]) -> list[int]:
        # One token more than the limit is enough to know that a text is longer.
        tokens = self.tokenizer(texts, truncation=True, max_length=self.text_limit + 1)
        return [len(ids) for ids in tokens["input_ids"]]

    def _preprocessing(self) -> dict[str, Any]:
        settings = without_keys(self.image_processor.to_dict(), NO_EFFECT)
        # Through JSON, so that tuples and enumerations compare as they are written.
        plain: dict[str, Any] = json.loads(json.dumps(settings, default=str))
        return {"processor": type(self.image_processor).__name__, **plain}

    def _content(self) -> list[Any]:
        config = without_keys(self.model.config.to_dict(), NO_EFFECT)
        return [config, tokenizer_content(self.tokenizer), self.rule.padding, self.rule.mask]

    def _about(self) -> dict[str, Any]:
        import transformers

        config = self.model.config
        if hasattr(self.model, "temperature"):  # ALIGN keeps the temperature itself
            temperature = float(self.model.temperature)
        else:
            temperature = math.exp(-float(self.model.logit_scale))
        bias = getattr(self.model, "logit_bias", None)
        return {
            "model": type(self.model).__name__,
            "library": f"transformers {transformers.__version__}",
            "text": {"tokenizer": type(self.tokenizer).__name__, "padding": self.rule.padding},
            "activation": {
                "image": getattr(config.vision_config, "hidden_act", None),
                "text": getattr(config.text_config, "hidden_act", None),
            },
            "temperature": temperature,
            "bias": None if bias is None else float(bias),
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
