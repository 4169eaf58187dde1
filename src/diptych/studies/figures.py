"""Charts that several papers' studies have: a column of every row, bars in groups, and how trainings went."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from diptych.core.chart import Chart, Mark, Series
from diptych.studies.compare import Block, Further
from diptych.studies.evidence import Evidence, Figure, Trajectory
from diptych.studies.study import Column, Study

_ROUGH = 50  # values from which a loss is smoothed
_SHOWN = ("rsum", "throughput @10")
_MULTIPLIER, _RECONSTRUCTION = "Multiplier λ", "Reconstruction loss"


def series(name: str, figures: Sequence[Figure | None], mark: Mark, texts: Sequence[str] = ()) -> Series:
    """Return means with a standard deviation to both sides, where there is any."""
    y = [None if one is None else one.mean for one in figures]
    sds = [None if one is None else one.sd for one in figures]
    if not any(sd is not None for sd in sds):
        return Series(name, y, mark=mark, texts=texts)
    low, high = (
        [None if mean is None or sd is None else mean + sign * sd for mean, sd in zip(y, sds, strict=True)]
        for sign in (-1, 1)
    )
    return Series(name, y, low=low, high=high, mark=mark, texts=texts)


def comparison_chart(block: Block, columns: Sequence[Column]) -> Chart | None:
    """Return measured and printed values of one column, a line per row; None where nothing was measured.

    The column is the recall sum or the throughput where there is one, else the first.
    """
    named = {column.name: column for column in columns}
    column = next((named[name] for name in _SHOWN if name in named), columns[0])
    cells = {row.name: next(cell for cell in row.cells if cell.column == column.name) for row in block.rows}
    cells = {row: cell for row, cell in cells.items() if cell.measured or cell.published}
    if not any(cell.measured for cell in cells.values()):
        return None
    drawn = [series("measured here", [cell.measured for cell in cells.values()], "point")]
    printed = [
        # a bound is no point
        None if of is None or of.bound else Figure(of.value, of.seed_sd)
        for of in (cell.published for cell in cells.values())
    ]
    if any(printed):
        drawn.append(series(f"printed, {block.on.dataset}", printed, "point"))
    title = f"{column.name}, mean and standard deviation over seeds"
    return Chart(title, drawn, column.name, "", list(cells), "x" if column.logarithmic else "", across=True)


def grouped_bars(
    title: str,
    evidence: Evidence,
    rows: Mapping[str, str],
    columns: Mapping[str, str],
    levels: Mapping[str, float],
) -> Chart | None:
    """Return a bar for each column of every row, with dotted levels; None where there is no row.

    Args:
        rows: row → its label, in order; those without the first column are left out.
        columns: column → what the legend calls it.
        levels: what the legend calls a dotted line → where it is.
    """
    first = next(iter(columns))
    there = {row: label for row, label in rows.items() if evidence.figure(row, first) is not None}
    bars = [
        series(name, [evidence.figure(row, column) for row in there], "bar")
        for column, name in columns.items()
    ]
    lines = [Series(name, [level], mark="level") for name, level in levels.items()]
    return Chart(title, [*bars, *lines], "", first, list(there.values())) if there else None


def smoothed(values: Sequence[float]) -> np.ndarray:
    """Return a centred running mean over a fiftieth of the values, an odd number of them."""
    from diptych.report.run import running_mean  # pages are heavy

    return running_mean(np.asarray(values), max(1, len(values) // 50) // 2 * 2 + 1)


_QUANTITIES: tuple[tuple[str, Callable[[Trajectory], tuple[Sequence[float], Sequence[float]]]], ...] = (
    ("Validation rsum", lambda run: (run.epoch_steps, run.rsum)),
    (_MULTIPLIER, lambda run: (run.steps, run.multiplier)),
    (_RECONSTRUCTION, lambda run: (run.steps, run.reconstruction)),
    ("Contrastive loss", lambda run: (run.steps, run.contrastive)),
)


def trajectories(study: Study, evidence: Evidence) -> Further:
    """Return how the first seed of each row was trained, a chart for each quantity that there is."""
    runs = {row.label: run for row in study.rows for run in evidence.trajectories.get(row.name, ())[:1]}
    charts = []
    for title, of in _QUANTITIES:
        is_log = title == _MULTIPLIER
        lines: list[Series] = []
        for label, (x, y) in ((label, of(run)) for label, run in runs.items()):
            values = smoothed(y).tolist() if len(y) > _ROUGH and not is_log else list(y)
            lines += (
                [Series(label, [v if v > 0 or not is_log else None for v in values], list(x))] if y else []
            )
        bounds = [run.bound for run in runs.values() if run.bound is not None and title == _RECONSTRUCTION]
        levels = [Series("" if place else "bounds", [at], mark="level") for place, at in enumerate(bounds)]
        if lines:
            charts.append(Chart(title, [*lines, *levels], "step", log="y" if is_log else ""))
    note = "The first seed of each row. Losses are smoothed over a fiftieth of the training"
    return Further(charts=charts, title="Trajectories", note=f"{note}; dotted lines are the bounds.")
