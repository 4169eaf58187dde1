"""What is evaluated when nobody says: the grid of the thesis, or a first look."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from diptych.commerce.purchase_intent.models.declaration import MODELS
from diptych.core.errors import UnknownNameError

_ORDER = (
    "random-forest",
    "logistic-regression",
    "k-nearest",
    "svm",
    "neural-network",
    "gradient-boosting",
    "hist-gradient-boosting",
)
"""Models in the order of thesis section 6.5; any other comes after them."""


@dataclass(frozen=True)
class Preset:
    """A grid by name; its models are those that declare it.

    Attributes:
        name: ``paper`` or ``fast``.
        description: one line.
        folds: where the split makes equal ones.
        steps: those of a table of steps; all when None.
    """

    name: str
    description: str
    folds: int
    steps: tuple[int, ...] | None

    @property
    def models(self) -> list[str]:
        """Names, in the order of tables."""
        return chosen_models(one.name for one in MODELS if self.name in one.presets)


PRESETS = {
    one.name: one
    for one in (
        Preset("paper", "six models, all steps, 10 folds: thesis section 6.5", 10, None),
        Preset("fast", "three models, steps 0, 1, 5 and 10, 5 folds", 5, (0, 1, 5, 10)),
    )
}


def preset_named(name: str) -> Preset:
    """The preset called ``name``."""
    if name not in PRESETS:
        raise UnknownNameError("preset", name, PRESETS)
    return PRESETS[name]


def chosen_models(names: Iterable[str]) -> list[str]:
    """Each once, in the order of tables."""
    known = {MODELS.get(name).name for name in names}
    return sorted(known, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))
