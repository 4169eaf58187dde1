"""What is set for all rows of a study and has no meaning for one of them leaves that row alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from diptych.training.recipe import Recipe

_OPTIONAL = ("reconstruction", "model.projection")
"""Sections that some rows of a study have and others lack."""


def leaves_alone(plain: Recipe, without: set[str], key: str) -> bool:
    """Whether a key is of a section, a kind of tower or a setup of shortcuts that a row does not have, but
    its neighbours may.
    """
    from diptych.encoders.two_tower_model import ModelConfig

    for section in (*_OPTIONAL, *without):
        if key.startswith(f"{section}."):
            have: Any = plain
            for part in section.split("."):
                have = getattr(have, part)
            return have is None
    if key.startswith("shortcuts.") and plain.shortcuts is not None:
        return _not_of_setup(plain, key.removeprefix("shortcuts."))
    match key.split("."):
        case ["model", ("image" | "text") as tower, name, *_]:
            kinds = ModelConfig.model_fields[tower].annotation.__args__  # type: ignore[union-attr]
            own = getattr(plain.model, tower)
            return name not in type(own).model_fields and any(name in kind.model_fields for kind in kinds)
    return False


def _not_of_setup(plain: Recipe, name: str) -> bool:
    """Whether an option of shortcuts has no meaning with a row's setup."""
    assert plain.shortcuts is not None
    setup = plain.shortcuts.setup
    match name:
        case "in_targets":
            return plain.reconstruction is None or not plain.shortcuts.on_captions
        case "shuffled":
            return setup in ("none", "bits")
        case "compat":
            return setup in ("none", "per-caption")
        case "carries":
            return setup != "per-caption"
    return False
