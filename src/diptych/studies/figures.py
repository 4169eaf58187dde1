"""A study's figures: one number of every row beside the paper's, and how trainings went."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from diptych.core.chart import Chart, Mark, Series
from diptych.studies.observations import smoothed
from diptych.studies.published import published_table
from diptych.studies.results import per_query_of
from diptych.studies.verdict import Evidence, Figure, Trajectory, printed_evidence

if TYPE_CHECKING:
    from diptych.studies.compare import Block
    from diptych.studies.study import Column

_ROUGH = 50  # points from which a loss is smoothed
_LISTED = 10


def series(name: str, figures: Sequence[Figure | None], mark: Mark, texts: Sequence[str] = ()) -> Series:
    """Return means with a standard deviation to both sides, where there is any."""
    spread = any(one is not None and one.sd is not None for one in figures)
    y = [None if one is None else one.mean for one in figures]
    low, high = (
        [None if one is None or one.sd is None else one.mean + sign * one.sd for one in figures if spread]
        for sign in (-1, 1)
    )
    return Series(name, y, low=low, high=high, mark=mark, texts=texts)


def comparison_chart(block: Block, columns: Sequence[Column]) -> Chart | None:
    """Return measured and printed values of one column, a line per row; None where nothing was measured.

    The column is the recall sum or the throughput where there is one, else the first.
    """
    named = {column.name: column for column in columns}
    column = next((named[name] for name in ("rsum", "throughput @10") if name in named), columns[0])
    rows = {row.name: next(cell for cell in row.cells if cell.column == column.name) for row in block.rows}
    rows = {name: cell for name, cell in rows.items() if cell.measured or cell.published}
    if not any(cell.measured for cell in rows.values()):
        return None
    printed = [  # a bound is no point
        None if of is None or of.bound else Figure(of.value, of.seed_sd)
        for of in (cell.published for cell in rows.values())
    ]
    drawn = [series("measured here", [cell.measured for cell in rows.values()], "point")]
    if any(printed):
        drawn.append(series(f"printed, {block.on.dataset}", printed, "point"))
    title = f"{column.name}, mean and standard deviation over seeds"
    return Chart(title, drawn, column.name, "", list(rows), "x" if column.logarithmic else "", across=True)


@dataclass(frozen=True)
class Trajectories:
    """How the trainings of a study went, a chart per quantity."""

    name: str = "trajectories"
    title: str = "Trajectories"
    note: str = (
        "The first seed of each row. Losses are smoothed over a fiftieth of the training; dotted lines are "
        "the bounds."
    )

    def draw(self, evidence: Evidence, labels: Mapping[str, str]) -> list[Chart]:
        """Return its charts; those without a line are left out."""
        charts = []
        for title, log, of in _QUANTITIES:
            lines: list[Series] = []
            levels: list[Series] = []
            for row, label in labels.items():
                for one in evidence.trajectories.get(row, ())[:1]:
                    x, y = of(one)
                    if not len(y):
                        continue
                    values = smoothed(y).tolist() if len(y) > _ROUGH and not log else list(y)
                    lines.append(Series(label, [v if v > 0 or not log else None for v in values], list(x)))
                    if title == "Reconstruction loss" and one.bound is not None:
                        levels.append(Series("" if levels else "bounds", [one.bound], mark="level"))
            if lines:
                charts.append(Chart(title, [*lines, *levels], "step", log=log))
        return charts


_Of = Callable[[Trajectory], tuple[Sequence[float], Sequence[float]]]
_QUANTITIES: tuple[tuple[str, str, _Of], ...] = (
    ("Validation rsum", "", lambda one: (one.epoch_steps, one.rsum)),
    ("Multiplier λ", "y", lambda one: (one.steps, one.multiplier)),
    ("Reconstruction loss", "", lambda one: (one.steps, one.reconstruction)),
    ("Contrastive loss", "", lambda one: (one.steps, one.contrastive)),
)


@dataclass(frozen=True)
class TradeOff:
    """Three charts: retrieval against FLOPs here and as printed, and the overlap of the top 10."""

    rows: Sequence[str]
    dense: str
    printed: str
    name: str = "figure"
    title: str = "Figure 3.2"
    note: str = (
        "Captions asking for pictures, against the terms that a caption and a picture have in common on average; a "
        "point per η, the dense rows dashed. And in how many of the ten best pictures a head and its dense rows agree, "
        "share of captions."
    )

    def draw(self, evidence: Evidence, labels: Mapping[str, str]) -> list[Chart]:
        """Return its charts; those without a point are left out."""
        tables = [published_table("d2s", name) for name in ("figure-3.2", "table-3.1")]
        as_printed = printed_evidence(tables, self.printed)
        charts = (
            self._trade(evidence, "Measured here"),
            self._trade(as_printed, f"As printed, {self.printed}"),
            self._overlap(evidence, labels),
        )
        return [chart for chart in charts if chart.series]

    def _trade(self, evidence: Evidence, title: str) -> Chart:
        lines, levels = [], []
        for column, colour in (("t2i R@1", "blue"), ("t2i MRR@10", "orange")):
            points = sorted(self._points(evidence, column))
            if points:
                x, y = zip(*points, strict=True)
                lines.append(Series(column, y, x, colour=colour))
            level = evidence.figure(self.dense, column)
            if level is not None:
                levels.append(Series(f"{column}, dense", [level.mean], mark="level"))
        return Chart(title, [*lines, *levels] if lines else [], "FLOPs", "per cent", log="x")

    def _points(self, evidence: Evidence, column: str) -> list[tuple[float, float]]:
        """(FLOPs, value) of every row that has both."""
        found = []
        for row in self.rows:
            cost, value = evidence.figure(row, "FLOPs"), evidence.figure(row, column)
            if cost is not None and value is not None and cost.mean > 0:
                found.append((cost.mean, value.mean))
        return found

    def _overlap(self, evidence: Evidence, labels: Mapping[str, str]) -> Chart:
        lines = []
        for row in self.rows:
            kept = per_query_of(evidence, row, "overlap@10")
            if kept is not None:
                places = np.rint(kept[0] / 100 * _LISTED).astype(np.int64)
                shares = 100 * np.bincount(places, minlength=_LISTED + 1) / len(places)
                name = f"{labels[row]}: mean {places.mean():.1f}"
                lines.append(Series(name, shares.tolist(), range(_LISTED + 1)))
        return Chart("Overlap of the top 10", lines, "pictures in both lists", "per cent of captions")
