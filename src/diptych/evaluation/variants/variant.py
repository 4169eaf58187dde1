"""Variant: one way to settle every axis, with the cells that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NEAR = 0.1
"""Share of the tolerance within which a cell is near: what rounding and the order of ties leave."""


@dataclass(frozen=True, order=True)
class Change:
    """One departure from the default protocol.

    Attributes:
        axis: its name.
        choice: the name of the choice.
    """

    axis: str
    choice: str

    def __str__(self) -> str:
        return f"{self.axis} = {self.choice}"


@dataclass(frozen=True, eq=False)
class Variant:
    """One variant with its cells.

    Attributes:
        changes: departures from the default protocol; empty for the default itself.
        values: the target's cells, shares in per cent, with all their digits.
        errors: relative distance per cell.
        within: names of the cells within tolerance.
        near: names of the cells within :data:`NEAR` of it.
        exact: names of the cells that are printed alike.
    """

    changes: tuple[Change, ...]
    values: Mapping[str, float]
    errors: Mapping[str, float]
    within: tuple[str, ...]
    near: tuple[str, ...]
    exact: tuple[str, ...]

    @property
    def mean_error(self) -> float:
        """Mean relative distance over the cells."""
        return sum(self.errors.values()) / len(self.errors)

    @property
    def worst_error(self) -> float:
        """The largest relative distance."""
        return max(self.errors.values())

    @property
    def explains(self) -> bool:
        """Whether every cell is within tolerance."""
        return len(self.within) == len(self.errors)

    @property
    def is_near(self) -> bool:
        """Whether every cell is near."""
        return len(self.near) == len(self.errors)

    @property
    def is_exact(self) -> bool:
        """Whether every cell is printed alike."""
        return len(self.exact) == len(self.errors)

    def line(self) -> str:
        """The changes in words: ``k_test = 2, captions = first``."""
        return ", ".join(map(str, self.changes)) or "the default protocol"

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "changes": [{"axis": one.axis, "choice": one.choice} for one in self.changes],
            "values": dict(self.values),
            "relative error": dict(self.errors),
            "mean relative error": self.mean_error,
            "worst relative error": self.worst_error,
            "within tolerance": list(self.within),
            "to the printed digit": list(self.exact),
        }


@dataclass(frozen=True, eq=False)
class SingleChange:
    """How far the best choice on one axis alone goes.

    Attributes:
        axis: its name.
        best: the variant of that one change that comes nearest.
        tried: how many choices the axis had besides its default.
    """

    axis: str
    best: Variant
    tried: int


@dataclass(frozen=True)
class Refusal:
    """Variants that these inputs cannot give.

    Attributes:
        reason: why.
        count: how many.
        first: the changes of one of them.
    """

    reason: str
    count: int
    first: tuple[Change, ...]
