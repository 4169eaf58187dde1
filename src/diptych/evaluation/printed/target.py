"""Target: the cells somebody printed, each with its digits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from diptych.core.errors import UsageError
from diptych.metrics.ground_truth import DIRECTIONS, Direction
from diptych.metrics.measuring import GainMeasure, Measure, measure

RULES = ("round", "truncate")
"""What is done with the digits that are not printed."""

SUM_PARTS = ("R@1", "R@5", "R@10")
"""What a recall sum adds up."""

MOST_DECIMALS = 4
"""Digits after the point at most: a number with more was never printed, and they say nothing of queries."""

_SUM = "rsum"
_SLACK = 1e-9  # a product in float64 may miss the digit that it is by this much
_FORM = 'e.g. "i2t R@1=64.6", "t2i R@10=82.48", "i2t rsum=245.5" or "rsum=448.16"'


@dataclass(frozen=True)
class Printed:
    """One printed number; shares are in per cent.

    Attributes:
        value: as printed.
        decimals: digits after the point, :data:`MOST_DECIMALS` at most.
    """

    value: float
    decimals: int

    def __post_init__(self) -> None:
        if not 0 <= self.decimals <= MOST_DECIMALS:
            raise UsageError(
                f"{self.value} with {self.decimals} digits after the point", f"0 to {MOST_DECIMALS} are read"
            )

    @property
    def unit(self) -> float:
        """One of the last digit."""
        return float(10.0**-self.decimals)

    def is_print_of(self, value: float, rule: str) -> bool:
        """Whether ``value`` is printed as this number by ``rule``; a half may be rounded either way."""
        if rule == "truncate":
            return self.value - _SLACK <= value < self.value + self.unit - _SLACK
        return abs(value - self.value) <= self.unit / 2 + _SLACK

    def error(self, value: float) -> float:
        """Relative distance, of a printed zero that in units of the last digit."""
        return abs(value - self.value) / (abs(self.value) or self.unit)

    def within(self, value: float, tolerance: float) -> bool:
        """Whether ``value`` is within the relative ``tolerance``, or would be printed alike."""
        return abs(value - self.value) <= max(tolerance * abs(self.value), self.unit / 2) + _SLACK

    def __str__(self) -> str:
        return f"{self.value:.{self.decimals}f}"


def cell_parts(name: str) -> tuple[Direction | None, str]:
    """``"i2t R@1"`` as direction and measure; ``"rsum"``, the sum of both directions, has no direction."""
    first, _, rest = name.strip().partition(" ")
    direction: Direction | None = "i2t" if first == "i2t" else "t2i" if first == "t2i" else None
    kind = rest.strip() if direction else name.strip()
    if kind == _SUM:
        return direction, kind
    if direction is None:
        raise UsageError(f"cell {name!r} names neither i2t nor t2i", _FORM)
    member = measure(kind)
    if isinstance(member, GainMeasure):
        raise UsageError(f"cell {name!r} is no function of where the positives stand", _FORM)
    if not isinstance(member, Measure):
        raise UsageError(f"cell {name!r} is a sum that cannot be taken per direction", _FORM)
    return direction, kind


@dataclass(frozen=True)
class Target:
    """What was printed.

    Attributes:
        cells: by name: ``"i2t R@1"``, ``"t2i MRR"``, ``"i2t rsum"``, ``"rsum"``.
        label: where it was printed.
        runs: of how many runs each number is a mean.
    """

    cells: Mapping[str, Printed]
    label: str = ""
    runs: int = 1

    def __post_init__(self) -> None:
        if not self.cells:
            raise UsageError("the target has no cell", _FORM)
        for name, cell in self.cells.items():
            _, kind = cell_parts(name)
            member = None if kind == _SUM else measure(kind)
            share = isinstance(member, Measure) and member.kind == "share"
            if not math.isfinite(cell.value) or cell.value < 0 or (share and cell.value > 100):
                raise UsageError(f"{name} = {cell.value} is no share in per cent", _FORM)

    @classmethod
    def of(cls, values: Mapping[str, float], decimals: int, label: str = "") -> Target:
        """Numbers that are all printed with so many decimals."""
        return cls({name: Printed(float(value), decimals) for name, value in values.items()}, label)

    def recalls(self, direction: str) -> dict[int, Printed]:
        """Printed recalls of one direction by cut-off, ascending."""
        found = {}
        for name, cell in self.cells.items():
            given, kind = cell_parts(name)
            if given == direction and kind.startswith("R@"):
                found[int(kind.removeprefix("R@"))] = cell
        return dict(sorted(found.items()))

    @property
    def independent(self) -> Target:
        """The same without sums whose recalls are all printed: they say nothing more."""

        def is_told(name: str) -> bool:
            direction, kind = cell_parts(name)
            sides = DIRECTIONS if direction is None else (direction,)
            parts = [f"{side} {part}" for side in sides for part in SUM_PARTS]
            return kind == _SUM and all(part in self.cells for part in parts)

        cells = {name: cell for name, cell in self.cells.items() if not is_told(name)}
        return replace(self, cells=cells)

    def to_dict(self) -> dict[str, str]:
        """Cells as they are printed."""
        return {name: str(cell) for name, cell in self.cells.items()}
