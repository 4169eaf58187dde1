"""CLIP models of sentence-transformers: a transformers model in a folder of modules.

The rows are those of ``SentenceTransformer(...).encode``: pictures are prepared by torchvision there, which
gives slightly other pixels than Pillow, and a default prompt stands before every text. The library itself is
not needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Self

from diptych.core.errors import StorageError, UsageError
from diptych.core.extras import require
from diptych.core.files import write_json
from diptych.core.reading import read_json
from diptych.encoders.hub import LOADING_ERRORS, loading_failure, saved_settings
from diptych.encoders.huggingface import HuggingFaceEncoder, load_parts

MODULES_FILE = "modules.json"
"""The file that lists the modules of a sentence-transformers model."""

_ORGANISATION = "sentence-transformers"
_WRAPPERS = ("CLIPModel", "Transformer")
_NEEDED = ("*.json", "*.txt", "*.safetensors", "*.bin")
_NOT_NEEDED = ("onnx/*", "openvino/*")


class SentenceTransformersEncoder(HuggingFaceEncoder):
    """A CLIP-like model of sentence-transformers; make one with :meth:`open` or ``DualEncoder.load``."""

    family: ClassVar[str] = "sentence_transformers"
    what: ClassVar[str] = "an image–text dual encoder of sentence-transformers"

    @classmethod
    def open(cls, source: str, *, device: str | None = None) -> Self:
        """Load from a folder, or by name from the hub or its cache; ``clip-ViT-L-14`` is a name."""
        given = Path(source).expanduser()
        folder = given if given.is_dir() else _from_hub(source)
        inner = first_module(folder, source)
        parts = load_parts(
            str(inner), cls.rules, cls.what, cls._check_config, cls._library_class, backend="torchvision"
        )
        settings = saved_settings(folder)
        encoder = cls(
            parts.model,
            _limited(parts.tokenizer, inner),
            parts.image_processor,
            settings.get("name", folder.resolve().name if given.is_dir() else source),
            device=device,
            characters=settings.get("characters"),
            prefix=settings.get("prefix", "") if settings else _default_prompt(folder),
        )
        return encoder

    def _write(self, folder: Path) -> None:
        super()._write(folder)
        kind = "sentence_transformers.models.CLIPModel"
        write_json(folder / MODULES_FILE, [{"idx": 0, "name": "0", "path": "", "type": kind}])


def first_module(folder: Path, source: str) -> Path:
    """The folder of a model's first module, when it is all there is.

    Modules that divide rows by their length may follow, for ours are of unit length anyway.
    """
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
            "only CLIP-like ones are dual encoders of pictures and texts, such as clip-ViT-B-32",
        )
    inner = folder / path
    if not (inner / "config.json").is_file():
        raise StorageError(f"{inner} holds no config.json", "download the model again, all files")
    return inner


def _from_hub(source: str) -> Path:
    """The folder of a model on the hub, or in its cache."""
    hub = require("huggingface_hub", "hub", "reading models from the hub")
    name = source if "/" in source else f"{_ORGANISATION}/{source}"
    try:
        found: str = hub.snapshot_download(
            name, allow_patterns=list(_NEEDED), ignore_patterns=list(_NOT_NEEDED)
        )
        return Path(found)
    except LOADING_ERRORS as error:
        fix = f"run `hf download {name} --local-dir FOLDER` where there is network; pass FOLDER"
        raise loading_failure(source, None, error, fix) from error


def _default_prompt(folder: Path) -> str:
    """What the library puts before every text unless it is told otherwise."""
    file = folder / "config_sentence_transformers.json"
    content = read_json(file) if file.is_file() else {}
    name = content.get("default_prompt_name")
    return "" if name is None else str(content.get("prompts", {}).get(name, ""))


def _limited(tokenizer: Any, inner: Path) -> Any:
    """The tokenizer with the module's own limit."""
    file = inner / "sentence_bert_config.json"
    content = read_json(file) if file.is_file() else {}
    if content.get("do_lower_case"):
        raise UsageError(
            f"{file} says do_lower_case, which no CLIP of sentence-transformers does",
            "load the folder of the transformers model inside as hf:FOLDER",
        )
    if content.get("max_seq_length") is not None:
        tokenizer.model_max_length = min(int(content["max_seq_length"]), tokenizer.model_max_length)
    return tokenizer
