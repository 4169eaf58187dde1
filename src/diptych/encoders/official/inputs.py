"""Configuration files of published models, and their captions and images as the models take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from diptych.core.errors import StorageError, UsageError
from diptych.core.reading import read_json
from diptych.data.images import Overlay, pasted
from diptych.encoders.hub import loading, quiet
from diptych.encoders.inputs import ByteTable
from diptych.encoders.official.checkpoint import Checkpoint

if TYPE_CHECKING:
    from PIL.Image import Image


Given: TypeAlias = Mapping[str, Any] | str | Path | None
"""A configuration: its content, or a JSON file with it."""

_VISION = ("vision", "vit", "swin", "vision_config")
_TEXT = ("text", "bert_config", "text_config")
_SIZES = ("image_res", "img_size", "image_size")


@dataclass(frozen=True)
class Configuration:
    """What a file says of a model; None where it does not say."""

    vision: dict[str, Any] = field(default_factory=dict)
    text: dict[str, Any] = field(default_factory=dict)
    width: int | None = None  # of its rows
    text_limit: int | None = None  # tokens a text is cut to


def configured(
    checkpoint: Checkpoint, config: Given = None, vision: Given = None, text: Given = None
) -> Configuration:
    """Return what the file beside a checkpoint says, or what is given instead."""
    given = _content(config, "configuration")
    found = read_configuration(checkpoint.config() if given is None else given)
    seen = _content(vision, "image encoder's configuration")
    read = _content(text, "text encoder's configuration")
    return replace(
        found, vision=found.vision if seen is None else seen, text=found.text if read is None else read
    )


def _content(given: Given, what: str) -> dict[str, Any] | None:
    if isinstance(given, str | Path):
        content = read_json(Path(given).expanduser())
        if not isinstance(content, dict):
            raise StorageError(f"{given} is not a JSON object", f"give the file of the {what}")
        return content
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise UsageError(
            f"the {what} is a {type(given).__name__}", "give a dictionary, or the path of a JSON file"
        )
    return dict(given)


def read_configuration(content: Mapping[str, Any]) -> Configuration:
    """Take the published recipe as JSON apart, by itself or under ``config``, with the encoders' own beside it."""
    if "num_attention_heads" in content and "hidden_size" in content:
        return Configuration(text=dict(content))
    recipe = content.get("config")
    recipe = recipe if isinstance(recipe, Mapping) else content
    vision, text = _first(content, recipe, _VISION), _first(content, recipe, _TEXT)
    sizes = {key: recipe[key] for key in _SIZES if recipe.get(key) is not None}
    for key, size in sizes.items():
        said = next((vision[name] for name in _SIZES if vision.get(name) is not None), size)
        if said != size:
            raise UsageError(
                f"the configuration says {key}={size}, and {said} for the image encoder", "say one"
            )
        vision = {**vision, "image_size": size}
    return Configuration(vision, text, recipe.get("embed_dim"), recipe.get("max_tokens"))


def _first(content: Mapping[str, Any], recipe: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    for place in (content, recipe):
        for name in names:
            if isinstance(place.get(name), Mapping):
                return dict(place[name])
    return {}


TOKENIZER = "bert-base-uncased"  # of all published ALBEF and X-VLM checkpoints
_FILES = ("tokenizer.json", "vocab.txt")


@dataclass(frozen=True)
class Squashed:
    """From an image to (3, size, size) float32; the numbers are those of torchvision's transforms."""

    size: int  # side of the square, in pixels; the picture's own shape is lost
    mean: tuple[float, float, float] = (0.48145466, 0.4578275, 0.40821073)
    std: tuple[float, float, float] = (0.26862954, 0.26130258, 0.27577711)

    def __call__(self, picture: Image, overlay: Overlay | None = None) -> np.ndarray:
        from PIL import Image as pillow

        pixels = np.asarray(picture.resize((self.size, self.size), pillow.Resampling.BICUBIC))
        return self._numbers(pixels if overlay is None else pasted(pixels, overlay))

    @cached_property
    def _numbers(self) -> ByteTable:
        byte = np.arange(256, dtype=np.float32) / np.float32(255)
        mean, std = (np.asarray(value, dtype=np.float32)[:, None] for value in (self.mean, self.std))
        return ByteTable((byte - mean) / std)

    def describe(self) -> dict[str, Any]:
        return {
            "processor": "squash",
            "size": self.size,
            "interpolation": "bicubic",
            "mean": list(self.mean),
            "std": list(self.std),
        }


def find_tokenizer(given: str | Path | None, beside: Path | None) -> Any:
    """Return a tokenizer of transformers: of the folder given, of the checkpoint's, or of the hub."""
    import transformers

    folder: Path | None = None
    if given is not None and Path(given).expanduser().is_dir():
        folder = Path(given).expanduser()
    elif given is None and beside is not None and any((beside / name).is_file() for name in _FILES):
        folder = beside
    where = str(folder or given or TOKENIZER)
    fix = f"give a folder with {' or '.join(_FILES)}"
    if folder is None:
        fix = (
            f"run `hf download {TOKENIZER} vocab.txt tokenizer_config.json --local-dir FOLDER` where there "
            "is network, and put the files beside the checkpoint, or give tokenizer=FOLDER"
        )
    with loading(f"the tokenizer {where}", folder, fix), quiet(bars=False):
        tokenizer = transformers.BertTokenizer.from_pretrained(
            where, local_files_only=folder is not None, trust_remote_code=False
        )
        if tokenizer.vocab_size <= len(tokenizer.all_special_tokens):
            # What transformers makes of files that it does not find, without a word.
            raise ValueError(f"a vocabulary of {tokenizer.vocab_size} special tokens")
    return tokenizer
