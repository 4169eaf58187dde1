"""What a configuration says of a published checkpoint, in any of the forms that its authors' files have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from diptych.core.errors import StorageError, UsageError
from diptych.core.reading import read_json

Given: TypeAlias = Mapping[str, Any] | str | Path | None
"""A configuration as somebody gives it: its content, or a JSON file with it."""

_VISION = ("vision", "vit", "swin", "vision_config")
_TEXT = ("text", "bert_config", "text_config")
_SIZES = ("image_res", "img_size", "image_size")


@dataclass(frozen=True)
class Configuration:
    """What such a file says of a model.

    Attributes:
        vision, text: of its two encoders.
        width: of its rows; None where it does not say.
        text_limit: tokens a text is cut to; None where it does not say.
    """

    vision: dict[str, Any] = field(default_factory=dict)
    text: dict[str, Any] = field(default_factory=dict)
    width: int | None = None
    text_limit: int | None = None


def configured(
    beside: Mapping[str, Any], config: Given = None, vision: Given = None, text: Given = None
) -> Configuration:
    """What is said of a checkpoint."""
    given = _content(config, "configuration")
    said = read_configuration(beside if given is None else given)
    seen = _content(vision, "image encoder's configuration")
    read = _content(text, "text encoder's configuration")
    return Configuration(
        said.vision if seen is None else seen,
        said.text if read is None else read,
        said.width,
        said.text_limit,
    )


def _content(given: Given, what: str) -> dict[str, Any] | None:
    if given is None:
        return None
    if isinstance(given, str | Path):
        content = read_json(Path(given).expanduser())
        if not isinstance(content, dict):
            raise StorageError(f"{given} is not a JSON object", f"give the file of the {what}")
        return content
    if not isinstance(given, Mapping):
        raise UsageError(
            f"the {what} is a {type(given).__name__}", "give a dictionary, or the path of a JSON file"
        )
    return dict(given)


def read_configuration(content: Mapping[str, Any]) -> Configuration:
    """Take such a file apart.

    Known are: the recipe of the published code as JSON (``image_res``, ``embed_dim``, ``max_tokens``), by
    itself or under ``config``; the encoders' own configurations under ``vit``, ``swin``, ``vision``,
    ``vision_config`` and ``bert_config``, ``text``, ``text_config`` (a path there says nothing and is passed
    over); and BERT's own file alone.
    """
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
