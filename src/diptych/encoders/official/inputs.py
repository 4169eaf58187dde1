"""Configurations of published models, from files and from the shapes of weights; their images and tokenizers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torchvision import transforms
from transformers.activations import ACT2FN

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.core.options import Options
from diptych.core.reading import read_json
from diptych.encoders.hub import check_complete, load_part
from diptych.encoders.official.checkpoint import Checkpoint
from diptych.encoders.preprocessing import ComposedPixels

# A configuration: its content, or a JSON file with it.
Given: TypeAlias = Mapping[str, Any] | str | Path | None

_VISION = ("vision", "vit", "swin", "vision_config")
_TEXT = ("text", "bert_config", "text_config")
_SIZES = ("image_res", "img_size", "image_size")


@dataclass(frozen=True)
class Configuration:
    """Hold what a file declares of a model; None where it declares nothing."""

    vision: dict[str, Any] = field(default_factory=dict)
    text: dict[str, Any] = field(default_factory=dict)
    width: int | None = None  # of its rows
    text_limit: int | None = None  # tokens a text is cut to


def configured(
    checkpoint: Checkpoint, config: Given = None, vision: Given = None, text: Given = None
) -> Configuration:
    """Return the configuration next to a checkpoint, or the one given instead."""
    nearby = None if checkpoint.folder is None else checkpoint.folder / "config.json"
    given = config if config is not None or nearby is None or not nearby.is_file() else nearby
    found = read_configuration(_content(given, "configuration") or {})
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
    """Take the published recipe as JSON apart, by itself or under ``config``, with the encoders' own next to it."""
    if "num_attention_heads" in content and "hidden_size" in content:
        return Configuration(text=dict(content))
    recipe = content.get("config")
    recipe = recipe if isinstance(recipe, Mapping) else content
    vision, text = _first(content, recipe, _VISION), _first(content, recipe, _TEXT)
    sizes = {key: recipe[key] for key in _SIZES if recipe.get(key) is not None}
    for key, size in sizes.items():
        declared = next((vision[name] for name in _SIZES if vision.get(name) is not None), size)
        if declared != size:
            raise UsageError(
                f"the configuration says {key}={size}, and {declared} for the image encoder", "say one"
            )
        vision = {**vision, "image_size": size}
    return Configuration(vision, text, recipe.get("embed_dim"), recipe.get("max_tokens"))


def _first(content: Mapping[str, Any], recipe: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    found = (place.get(name) for place in (content, recipe) for name in names)
    return dict(next((one for one in found if isinstance(one, Mapping)), {}))


TOKENIZER = "bert-base-uncased"  # of all published ALBEF and X-VLM checkpoints
_FILES = ("tokenizer.json", "vocab.txt")


MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


def squashed(size: int) -> ComposedPixels:
    """Return the published preprocessing: images become squares of ``size`` pixels, their own shape is lost."""
    resize = transforms.Resize((size, size), transforms.InterpolationMode.BICUBIC)
    steps = [resize, transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    return ComposedPixels(transforms.Compose(steps))


def find_tokenizer(given: str | Path | None, nearby: Path | None) -> Any:
    """Return a tokenizer of transformers: of the folder given, of the checkpoint's, or of the hub."""
    import transformers

    folder: Path | None = None
    if given is not None and Path(given).expanduser().is_dir():
        folder = Path(given).expanduser()
    elif given is None and nearby is not None and any((nearby / name).is_file() for name in _FILES):
        folder = nearby
    fix = f"give a folder with {' or '.join(_FILES)}"
    if folder is None:
        fix = (
            f"run `hf download {TOKENIZER} vocab.txt tokenizer_config.json --local-dir FOLDER` where there "
            "is network, and put the files next to the checkpoint, or give tokenizer=FOLDER"
        )
    where = folder or given or TOKENIZER
    tokenizer = load_part(transformers.BertTokenizer, where, fix)
    check_complete(f"the folder {where}", (), tokenizer)
    return tokenizer


# What is a number of things.
_WHOLE = frozenset(
    ("image_size", "patch_size", "window", "width", "depth", "feed_forward", "vocabulary", "fusion_layer")
)


def usable(value: Tensor, name: str, source: str) -> Tensor:
    if not value.is_floating_point() or value.layout != torch.strided:
        kind = f"{value.dtype}, {value.layout}".replace("torch.", "")
        raise StorageError(
            f"{source}: {name} holds numbers of type {kind}, which are no weights",
            "it was compressed or is of another model: give the checkpoint as it was published",
        )
    value = value.float()
    if not value.is_meta and not bool(torch.isfinite(value).all()):
        bad = int((~torch.isfinite(value)).sum())
        raise StorageError(
            f"{source}: {bad:,} of {value.numel():,} numbers of {name} are NaN or infinite",
            "the training diverged, or the file is corrupt: give another checkpoint",
        )
    return value


def canonical(given: Mapping[str, Any] | None, kind: type[Options], what: str, *more: str) -> dict[str, Any]:
    """Return what a configuration says of the fields of ``kind``, by their first names, without what is None.

    Other names of a field stand in its annotation; ``more`` are names of no field, each with ``=`` before the other.
    """
    named = {
        name: [one for one in field.metadata if isinstance(one, str)]
        for name, field in kind.model_fields.items()
    }
    for one in more:
        name, *others = one.split("=")
        named[name] = others
    found: dict[str, Any] = {}
    for name, keys in named.items():
        declared = {key: value for key in (name, *keys) if (value := (given or {}).get(key)) is not None}
        values = list(declared.values())
        if any(value != values[0] for value in values):
            raise UsageError(
                f"the {what} says {' and '.join(f'{k}={v!r}' for k, v in declared.items())}",
                "say one; a recipe, whose embed_dim is the width of the rows, is given as config=",
            )
        if values:
            found[name] = values[0]
            _check_value(name, values[0], f"the {what} says {next(iter(declared))}={values[0]!r}")
    return found


def _check_value(name: str, value: Any, message: str) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if name in _WHOLE and not (number and math.isfinite(value) and value == int(value) > 0):
        raise UsageError(message, "give a whole number above 0")
    if name in ("layer_norm_eps", "mlp_ratio") and not (number and 0 < value < math.inf):
        raise UsageError(message, "give a number above 0")
    if name == "activation" and value not in ACT2FN:
        raise UsageError(message, f"known: {', '.join(sorted(ACT2FN))}")


def agreed(given: Mapping[str, Any], config: Any, what: str, *elsewhere: str) -> None:
    """Raise where a configuration says otherwise than ``config``, whose sizes are those of the weights."""
    for name, declared in given.items():
        found = getattr(config, name, declared)
        if name not in elsewhere and (tuple(declared) if isinstance(declared, list) else declared) != found:
            raise MismatchError(
                f"{what} {name.replace('_', ' ')}: the configuration says {declared}, the weights say {found}",
                "give the configuration that the weights were made with, or none: sizes are taken from the weights",
            )


def not_cut_off(
    given: Mapping[str, Any], name: str, found: Any, published: Any, what: str, source: str
) -> None:
    """Raise unless a file has as many layers as published ones, or a configuration says how many."""
    if name not in given and found != published:
        raise StorageError(
            f"{source}: the {what} has {found} layers, published ones of its width have {published}",
            f"it is cut off; or, where it was made so, give a configuration that says {name}",
        )


def given_heads(given: Mapping[str, Any], width: int, what: str) -> int:
    """Return the number of attention heads: as declared, else one for every 64 columns, as BERT and ViT base have."""
    heads = given.get("heads")
    if heads is None and width % 64 == 0:
        return width // 64
    if not isinstance(heads, int) or heads < 1 or width % heads:
        declared = "nothing says" if heads is None else f"{heads!r} is not"
        raise UsageError(
            f"{declared} how many attention heads the {what} of width {width} has",
            f"give a number that divides {width}: vision={{'num_heads': …}}, "
            "text={'num_attention_heads': …}, or a config.json next to the checkpoint",
        )
    return heads
