"""What a claim is judged on: one figure per row and column, and how trainings went.

Evidence is made from runs (one value per seed) or from a printed table (a mean and a deviation), so
that a paper's own numbers can be held against its own text.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from diptych.studies.published import PublishedTable
from diptych.studies.verdict import deviation


@dataclass(frozen=True)
class Figure:
    """A number with its spread over seeds.

    Attributes:
        mean: of all seeds.
        sd: sample standard deviation over seeds; None when there is one seed, or none was printed.
        seeds: how many.
    """

    mean: float
    sd: float | None = None
    seeds: int = 1

    @classmethod
    def of(cls, values: Sequence[float]) -> Figure:
        """The figure of one value per seed."""
        return cls(statistics.mean(values), deviation(values), len(values))


@dataclass(frozen=True)
class Difference:
    """One figure less another.

    Attributes:
        mean: difference of the means.
        spread: standard deviation of the difference of two single runs; None where one has none.
    """

    mean: float
    spread: float | None

    @property
    def beyond_spread(self) -> bool | None:
        """Whether it is more than twice the spread; None where that is not known."""
        return None if self.spread is None else abs(self.mean) > 2 * self.spread

    def __str__(self) -> str:
        digits = 1 if abs(self.mean) >= 1 else 2
        if self.spread is None:
            return f"{self.mean:+.{digits}f}"
        ending = "beyond the seed spread" if self.beyond_spread else "within the seed spread"
        return f"{self.mean:+.{digits}f} ± {self.spread:.{digits}f}, {ending}"


def difference(first: Figure, second: Figure) -> Difference:
    """``first`` less ``second``."""
    spread = None
    if first.sd is not None and second.sd is not None:
        spread = math.hypot(first.sd, second.sd)
    return Difference(first.mean - second.mean, spread)


@dataclass(frozen=True)
class Trajectory:
    """How one training went.

    Attributes:
        steps: (n,) optimizer steps that were logged.
        contrastive: (n,) contrastive loss.
        reconstruction: (n,) reconstruction loss; empty without one.
        multiplier: (n,) λ; empty without a constraint.
        epoch_steps: (m,) steps after which the model was validated.
        rsum: (m,) validation recall sum.
        bound: η; None without a constraint.
    """

    steps: Sequence[int]
    contrastive: Sequence[float]
    reconstruction: Sequence[float] = ()
    multiplier: Sequence[float] = ()
    epoch_steps: Sequence[int] = ()
    rsum: Sequence[float] = ()
    bound: float | None = None


@dataclass(frozen=True)
class Evidence:
    """Everything a claim may look at.

    Attributes:
        figures: row → column → figure.
        trajectories: row → one per seed.
        kept: row → a folder per seed with what is too large for figures; see :mod:`diptych.studies.results`.
        centric: of several collections, each with what its pictures show: ``scene``, ``object``, or nothing
            where nobody said. Columns then begin with a collection's name, and so do rows of ``kept``.
        tasks: of several collections, each with what its rows were asked, by row: split and captions.
    """

    figures: Mapping[str, Mapping[str, Figure]] = field(default_factory=dict)
    trajectories: Mapping[str, Sequence[Trajectory]] = field(default_factory=dict)
    kept: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    centric: Mapping[str, str] = field(default_factory=dict)
    tasks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def figure(self, row: str, column: str) -> Figure | None:
        """The figure, or None where the row was not run or has no such column."""
        return self.figures.get(row, {}).get(column)

    def only(self, rows: Sequence[str], column: str) -> dict[str, Figure]:
        """The figures of one column that are there."""
        found = {row: self.figure(row, column) for row in rows}
        return {row: figure for row, figure in found.items() if figure is not None}


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
    return side_by_side(each, {on.dataset: on.centric for on in keys.values()})


def printed_evidence(tables: Sequence[PublishedTable], key: str) -> Evidence:
    """The numbers that tables print for one dataset; where two print the same cell, the first.

    A printed bound is no number: its distance from others is not known.
    """
    figures: dict[str, dict[str, Figure]] = {}
    for table in tables:
        for row in table.rows:
            if row.on.key != key:
                continue
            for column, cell in row.cells.items():
                # A row quoted from elsewhere is known by its printed name.
                known = figures.setdefault(row.config or row.row, {})
                if not cell.bound:
                    known.setdefault(column, Figure(cell.value, cell.seed_sd, cell.runs))
    return Evidence(figures)
