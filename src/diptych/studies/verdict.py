"""When a printed number counts as reproduced: the rules, and nothing else.

A measured mean is

``reproduced``
    within 5 % of the printed value, or within two standard deviations over seeds, the measured or
    the printed one, or printed alike where the table says how it rounds, or on the side of a printed
    bound that it says;
``close``
    within 10 %;
``not reproduced``
    otherwise.

Only a number measured on the printed number's own dataset, split and gallery, with the paper's own
training, gets such a verdict; any other is ``other data`` or ``other training``, or ``unchecked start``
where training went on from an encoder that was given: whether it is the paper's nobody can tell.

Sources: Hendriksen et al., 2023, for the 5 %; Bleeker and de Rijke, 2022, for spreads over seeds.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from diptych.core.errors import NumericalError, UsageError
from diptych.studies.published import Cell, EvaluatedOn, either, extent_of

Verdict = Literal[
    "reproduced",
    "close",
    "not reproduced",
    "other data",
    "other training",
    "unchecked start",
    "not run",
    "not printed",
]

CLOSE = 2.0
"""How many times a cell's tolerance still counts as close."""


@dataclass(frozen=True)
class Measured:
    """What a number was measured on, to be held against :class:`EvaluatedOn`."""

    dataset: str
    split: str
    images: int = 0
    captions: int = 0
    protocol: str = "full"
    positives: str = "own"
    chosen: str = "all"
    reranked: int = 0
    unranked: str = ""
    centric: str = ""
    sessions: int = 0
    products: int = 0
    categories: int = 0

    @property
    def task(self) -> str:
        """What was asked, whoever answered."""
        which = "" if self.chosen == "all" else f" ({self.chosen})"
        extent = extent_of(
            self.images, (self.captions,), (self.sessions,), self.products, (self.categories,)
        ).removesuffix(", ")
        return ", ".join(part for part in (self.split, f"{extent}{which}", self.protocol) if part)


def same_evaluation(measured: Measured, printed: EvaluatedOn) -> list[str]:
    """What keeps two numbers from being of the same thing, one phrase each; nothing when they are."""
    differences = []
    for what, have, want in (
        ("dataset", measured.dataset.lower(), printed.dataset),
        ("split", measured.split, printed.split),
        ("protocol", measured.protocol, printed.protocol),
        ("positives", measured.positives, printed.positives),
        ("captions", measured.chosen, printed.chosen),
    ):
        if have != want:
            differences.append(f"{what} {have}, not {want}")
    for counted, count, only in (
        ("images", measured.images, printed.images),
        ("products", measured.products, printed.products),
    ):
        if count != only:
            differences.append(f"{count:,} {counted}, not {only:,}")
    for counted, count, known in (
        ("captions", measured.captions, printed.captions),
        ("sessions", measured.sessions, printed.sessions),
        ("categories", measured.categories, printed.categories),
    ):
        if count not in (known or (0,)):
            differences.append(f"{count:,} {counted}, not {either(known) or 'none'}")
    if measured.reranked not in (printed.reranked or (0,)):
        wanted = " or ".join(map(str, printed.reranked)) or "none"
        differences.append(f"{measured.reranked or 'no'} candidates re-ranked, not {wanted}")
    if printed.unranked and measured.unranked not in ("", printed.unranked):
        differences.append(f"what is not re-ranked: {measured.unranked}, not {printed.unranked}")
    return differences


def deviation(values: Sequence[float]) -> float | None:
    """Sample standard deviation (n − 1); None of a single value."""
    return statistics.stdev(values) if len(values) > 1 else None


def cell_verdict(measured: Sequence[float], cell: Cell) -> Literal["reproduced", "close", "not reproduced"]:
    """Hold one value per seed against a printed cell, of which it is known that they are comparable."""
    if not measured:
        raise UsageError("a verdict on no value", "run at least one seed")
    for value in measured:
        if not math.isfinite(value):
            raise NumericalError(f"{cell.row} {cell.column} was measured as {value}", "look at its run")
    if cell.within(statistics.mean(measured)):
        return "reproduced"
    distance = abs(statistics.mean(measured) - cell.value)
    allowed = cell.tolerance * abs(cell.value)
    spreads = [deviation(measured), cell.seed_sd]
    within_spread = any(spread is not None and distance <= 2 * spread + 1e-9 for spread in spreads)
    # 1e-9: 5 % of 42.4 is 2.12, and 2.12 apart is within it whatever floats make of it.
    if within_spread or distance <= max(allowed, cell.rounding) + 1e-9:
        return "reproduced"
    return "close" if distance <= CLOSE * allowed + 1e-9 else "not reproduced"


def describe_difference(measured: float, published: float) -> str:
    """``"+1.2 (+3 %)"``."""
    difference = measured - published
    share = f" ({100 * difference / published:+.0f} %)" if published else ""
    return f"{difference:+.2g}{share}" if abs(difference) < 1 else f"{difference:+.1f}{share}"
