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

Only a number measured on the printed number's own dataset, split and gallery, in a setting of the paper's own
training, gets such a verdict; any other is ``other data`` or ``other training``. Weights and vectors that a user
gives are taken for what they are called: whether they are the paper's the verdict itself says.

Sources: Hendriksen et al., 2023, for the 5 %; Bleeker and de Rijke, 2022, for spreads over seeds.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from diptych.core.errors import NumericalError, UsageError
from diptych.studies.evidence import Evidence, Figure
from diptych.studies.published import Cell, EvaluatedOn, PublishedTable, either, extent_of

Verdict = Literal[
    "reproduced", "close", "not reproduced", "other data", "other training", "not run", "not printed"
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
    spreads = [Figure.of(measured).sd, cell.seed_sd]
    within_spread = any(spread is not None and distance <= 2 * spread + 1e-9 for spread in spreads)
    # 1e-9: 5 % of 42.4 is 2.12, and 2.12 apart is within it whatever floats make of it.
    if within_spread or distance <= max(allowed, cell.rounding) + 1e-9:
        return "reproduced"
    return "close" if distance <= CLOSE * allowed + 1e-9 else "not reproduced"


def side_by_side(each: Mapping[str, Evidence], centric: Mapping[str, str]) -> Evidence:
    """The evidence of several collections as one, with columns ``COLLECTION COLUMN``."""
    figures: dict[str, dict[str, Figure]] = {}
    kept: dict[str, Sequence[Path]] = {}
    for name, evidence in each.items():
        for row, of_row in evidence.figures.items():
            named = {f"{name} {column}": figure for column, figure in of_row.items()}
            figures.setdefault(row, {}).update(named)
        kept |= {f"{name} {row}": folders for row, folders in evidence.kept.items()}
    return Evidence(figures, kept=kept, centric={name: centric.get(name, "") for name in each})


def printed_by(tables: Sequence[PublishedTable], by: str) -> Evidence:
    """What tables print as measured by ``by``, on all its collections side by side."""
    keys = {row.on.key: row.on for table in tables for row in table.rows if row.on.by == by}
    datasets = dict.fromkeys(on.dataset for on in keys.values())
    each = {}
    for dataset in datasets:
        figures: dict[str, Mapping[str, Figure]] = {}
        for key, on in keys.items():
            if on.dataset == dataset:
                figures |= printed_evidence(tables, key).figures
        each[dataset] = Evidence(figures)
    return replace(side_by_side(each, {on.dataset: on.centric for on in keys.values()}), exact=True)


def printed_evidence(tables: Sequence[PublishedTable], *keys: str) -> Evidence:
    """The numbers that tables print for some evaluations; where two print the same cell, the first.

    A printed bound is no number: its distance from others is not known.
    """
    figures: dict[str, dict[str, Figure]] = {}
    rows = [row for table in tables for row in table.rows]
    for row in [row for key in keys for row in rows if row.on.key == key]:
        for column, cell in row.cells.items():
            # A row quoted from elsewhere is known by its printed name.
            known = figures.setdefault(row.config or row.row, {})
            if not cell.bound:
                known.setdefault(column, Figure(cell.value, cell.seed_sd, cell.runs))
    return Evidence(figures, exact=True)
