"""Encoders of Hugging Face: loading from a folder or the hub, towers, preprocessing."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.core.files import write_json
from diptych.core.reading import read_json
from diptych.encoders import hub
from diptych.encoders.preprocessing import ProcessorPixels
from diptych.encoders.pretrained import PretrainedEncoder

MODULES_FILE = "modules.json"  # lists the modules of a sentence-transformers model

logger: logging.Logger = logging.getLogger(__name__)

_WRAPPERS = ("CLIPModel", "Transformer")
_FILES = {
    "allow_patterns": ["*.json", "*.txt", "*.safetensors", "*.bin"],
    "ignore_patterns": ["onnx/*", "openvino/*"],
}


@dataclass(frozen=True)
class TextRule:
    """Padding and length of the texts of one model type."""

    padding: Literal["longest", "max_length"]  # "longest" of the batch, or always "max_length"
    limit: int | None = None  # tokens the model was trained with, where its configuration does not say so
    mask: bool = True  # whether the model takes the attention mask
    reserved: int = 0  # position rows that no token uses (RoBERTa numbers positions from pad id + 1)


# By ``model_type`` of ``config.json``.
TEXT_RULES: dict[str, TextRule] = {
    "clip": TextRule("longest"),
    "groupvit": TextRule("longest"),
    "metaclip_2": TextRule("longest"),
    "chinese_clip": TextRule("longest"),
    "altclip": TextRule("longest", reserved=2),
    "align": TextRule("max_length", limit=64),
    "siglip": TextRule("max_length", mask=False),
    "siglip2": TextRule("max_length", limit=64, mask=False),
}


class HuggingFaceEncoder(PretrainedEncoder):
    """A CLIP-like model of transformers; make one with :meth:`open` or ``DualEncoder.load``."""

    family: ClassVar[str] = "huggingface"
    rules: ClassVar[Mapping[str, TextRule]] = TEXT_RULES  # of the model types that this class knows
    what: ClassVar[str] = "an image–text dual encoder"
    library_class: ClassVar[str] = "AutoModel"
    backend: ClassVar[str] = "pil"  # as published; torchvision gives slightly other pixels

    def __init__(self, model: Any, tokenizer: Any, image_processor: Any, name: str, **options: Any) -> None:
        self.rule = self.rules[model.config.model_type]
        self.tokenizer = tokenizer
        self.image_processor = image_processor
        config = model.config.text_config
        limits = [config.max_position_embeddings - self.rule.reserved, tokenizer.model_max_length]
        limit = min(limits if self.rule.limit is None else [*limits, self.rule.limit])
        super().__init__(model, name, int(limit), **options)
        self._vocabulary_size = int(config.vocab_size)
        self._pixels = ProcessorPixels(image_processor)

    @classmethod
    def open(cls, source: str, *, device: str | None = None) -> Self:
        return cls(*cls._load(source), **hub.saved_settings(source), device=device)

    @classmethod
    def _load(cls, source: str) -> tuple[Any, Any, Any]:
        import transformers

        def check(config: Any) -> None:
            if config.model_type not in cls.rules:
                raise UsageError(
                    f"{source} is a {config.model_type!r} model, not {cls.what}",
                    f"known: {', '.join(sorted(cls.rules))}",
                )
            cls._check_config(config)

        # Shapes that differ are refused below, with names.
        model, report = hub.load_transformers(source, cls.library_class, check, ignore_mismatched_sizes=True)
        tokenizer = hub.load_part(transformers.AutoTokenizer, source)
        processor = hub.load_part(transformers.AutoImageProcessor, source, backend=cls.backend)
        hub.check_complete(source, report["missing_keys"], tokenizer)
        if report["mismatched_keys"]:
            name, found, expected = sorted(report["mismatched_keys"])[0]
            raise StorageError(
                f"{source}: {name} has the shape {tuple(found)}, its config.json requires {tuple(expected)}",
                "use the config.json and the weights of the same model",
            )
        if report["unexpected_keys"]:
            logger.info("%s: %d weights are not used", source, len(report["unexpected_keys"]))
        return model, tokenizer, processor

    @classmethod
    def _check_config(cls, config: Any) -> None:
        """Refuse a configuration before its weights are read."""

    def _picture_rows(self, **inputs: torch.Tensor) -> torch.Tensor:
        return _pooled(self.model.get_image_features(**inputs))

    def _token_rows(self, **inputs: torch.Tensor) -> torch.Tensor:
        return _pooled(self.model.get_text_features(**inputs))

    @property
    def prepares(self) -> bool:
        return bool(self._pixels.one_size)

    def prepared_features(self, prepared: Sequence[Any]) -> torch.Tensor:
        if self.prepares:
            return super().prepared_features(prepared)
        seen = self.image_processor(images=list(prepared), return_tensors="pt")
        return self._picture_rows(**seen.to(self.device))

    def pixel_features(self, pixels: torch.Tensor) -> torch.Tensor:
        return self._picture_rows(pixel_values=pixels)

    def _ids(self, texts: list[str]) -> list[np.ndarray]:
        ids = super()._ids(texts)
        largest = max(int(row.max(initial=0)) for row in ids)
        if largest >= self._vocabulary_size:
            raise MismatchError(
                f"the tokenizer of {self.name} gave token {largest}, the model knows {self._vocabulary_size}",
                "the tokenizer files are another model's: use its own",
            )
        return ids

    @property
    def padding(self) -> tuple[int, int | None, bool]:
        width = None if self.rule.padding == "longest" else self.text_limit
        return int(self.tokenizer.pad_token_id), width, self.tokenizer.padding_side == "left"

    def token_features(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        if not self.rule.mask:
            return self._token_rows(input_ids=tokens)
        inside = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
        mask = inside.flip(1) if self.padding[2] else inside
        return self._token_rows(input_ids=tokens, attention_mask=mask.long())

    def sides(self) -> tuple[list[str], list[str]]:
        names = [name for name, _ in self.model.named_children()]
        images = [name for name in names if name.startswith(("vision", "visual"))]
        return images, [name for name in names if name.startswith("text")]

    def preprocessing(self) -> dict[str, Any]:
        settings = hub.without_keys(self.image_processor.to_dict(), hub.NO_EFFECT)
        # Through JSON, so that tuples and enumerations compare as they are written.
        plain: dict[str, Any] = json.loads(json.dumps(settings, default=str))
        return {"processor": type(self.image_processor).__name__, **plain}

    def _content(self) -> list[Any]:
        config = hub.without_keys(self.model.config.to_dict(), hub.NO_EFFECT)
        return [config, hub.tokenizer_content(self.tokenizer), self.rule.padding, self.rule.mask]

    def _about_model(self) -> dict[str, Any]:
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
        with hub.quiet(bars=False):
            self.model.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)
            self.image_processor.save_pretrained(folder)


class SentenceTransformersEncoder(HuggingFaceEncoder):
    """A CLIP-like model of sentence-transformers, e.g. ``clip-ViT-L-14``, with the rows of its ``encode``."""

    family: ClassVar[str] = "sentence_transformers"
    what: ClassVar[str] = "an image–text dual encoder of sentence-transformers"
    backend: ClassVar[str] = "torchvision"

    @classmethod
    def open(cls, source: str, *, device: str | None = None) -> Self:
        folder = hub.hub_folder(source, "sentence-transformers", **_FILES)
        inner = first_module(folder, source)
        model, tokenizer, processor = cls._load(str(inner))
        settings = hub.saved_settings(source, folder)
        if "characters" not in settings:  # the library's own folder
            prompts = _content(folder / "config_sentence_transformers.json")
            settings["prefix"] = prompts.get("prompts", {}).get(prompts.get("default_prompt_name"), "")
        return cls(model, _limited(tokenizer, inner), processor, **settings, device=device)

    def _write(self, folder: Path) -> None:
        super()._write(folder)
        kind = "sentence_transformers.models.CLIPModel"
        write_json(folder / MODULES_FILE, [{"idx": 0, "name": "0", "path": "", "type": kind}])


def _pooled(output: Any) -> torch.Tensor:
    # transformers 5 hands back an output object, earlier versions the tensor.
    rows = output if isinstance(output, torch.Tensor) else output.pooler_output
    assert isinstance(rows, torch.Tensor)
    return rows


def first_module(folder: Path, source: str) -> Path:
    """Return the folder of a model's first module, when nothing but a division by length follows it."""
    listed = read_json(folder / MODULES_FILE)
    try:
        kinds = [str(module["type"]).rpartition(".")[2] for module in listed]
        path = str(listed[0]["path"])
    except (KeyError, TypeError, IndexError):
        raise StorageError(f"{folder / MODULES_FILE} lists no modules", "download the model again") from None
    others = [kind for kind in kinds[1:] if kind != "Normalize"]
    if kinds[0] not in _WRAPPERS or others:
        raise UsageError(
            f"{source} is a model of sentence-transformers made of {', '.join(kinds)}",
            "only CLIP-like ones are dual encoders of images and texts, such as clip-ViT-B-32",
        )
    inner = folder / path
    if not (inner / "config.json").is_file():
        raise StorageError(f"{inner} holds no config.json", "download the model again, all files")
    return inner


def _content(file: Path) -> dict[str, Any]:
    return dict(read_json(file)) if file.is_file() else {}


def _limited(tokenizer: Any, inner: Path) -> Any:
    file = inner / "sentence_bert_config.json"
    content = _content(file)
    if content.get("do_lower_case"):
        raise UsageError(
            f"{file} says do_lower_case, which no CLIP of sentence-transformers does",
            "load the folder of the transformers model inside as hf:FOLDER",
        )
    if content.get("max_seq_length") is not None:
        tokenizer.model_max_length = min(int(content["max_seq_length"]), tokenizer.model_max_length)
    return tokenizer
