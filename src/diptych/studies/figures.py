"""Charts of studies: those that a paper's file declares, a column of every row, and how trainings went."""

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from diptych.core.chart import Chart, Mark, Series
from diptych.studies.compare import Block, Further
from diptych.studies.evidence import Evidence, Figure, members
from diptych.studies.published import document
from diptych.studies.study import Column, Row, Study

_ROUGH = 50  # values from which a loss is smoothed
_SHOWN = ("rsum", "throughput @10")
_QUANTITIES = {
    "Validation rsum": ("epoch_steps", "rsum"),
    "Multiplier λ": ("steps", "multiplier"),
    "Reconstruction loss": ("steps", "reconstruction"),
    "Contrastive loss": ("steps", "contrastive"),
}


def series(name: str, figures: Sequence[Figure | None], mark: Mark, texts: Sequence[str] = ()) -> Series:
    """Return means with a standard deviation to both sides, where there is any."""
    y = [None if one is None else one.mean for one in figures]
    low, high = (
        [None if one is None or one.sd is None else one.mean + sign * one.sd for one in figures]
        for sign in (-1, 1)
    )
    if all(end is None for end in low):
        low = high = []
    return Series(name, y, low=low, high=high, mark=mark, texts=texts)


def comparison_charts(block: Block, columns: Sequence[Column]) -> list[Chart]:
    """Return a chart of what was measured and printed of the recall sum, the throughput or else the first column."""
    column = next((one for name in _SHOWN for one in columns if one.name == name), columns[0])
    each = ((row.name, cell) for row in block.rows for cell in row.cells if cell.column == column.name)
    cells = [(name, cell) for name, cell in each if cell.measured or cell.published]
    measured = [cell.measured for _, cell in cells]
    if not any(measured):
        return []
    known = (cell.published for _, cell in cells)
    # a bound is no point
    printed = [None if one is None or one.bound else Figure(one.value, one.seed_sd) for one in known]
    named = {"measured here": measured, f"printed, {block.on.dataset}": printed}
    drawn = [series(name, figures, "point") for name, figures in named.items() if any(figures)]
    title, log = f"{column.name}, mean and standard deviation over seeds", "x" if column.logarithmic else ""
    return [Chart(title, drawn, column.name, "", [name for name, _ in cells], log, across=True)]


def declared(study: Study, evidence: Evidence) -> Further:
    """Return the charts that ``[figures.STUDY]`` of the paper's file declares, of the rows that were measured."""
    shared = study.figures
    draw = _bars if "bars" in shared else _points
    charts = [draw(study, evidence, {**shared, **one}) for one in shared["charts"]]
    there = [chart for chart in charts if chart.series]
    return Further(charts=there, title=shared["title"], note=shared["note"])


def _bars(study: Study, evidence: Evidence, given: Mapping[str, Any]) -> Chart:
    """Return bars of columns for each row that has the first one, and dotted levels: numbers, or a column's first."""
    first, drawn = next(iter(given["bars"])), []
    labels = {row.name: row.label for row in _rows(study, given["rows"]) if evidence.figure(row.name, first)}
    if labels:
        for column, name in given["bars"].items():
            drawn.append(series(name, [evidence.figure(row, column) for row in labels], "bar"))
        for name, level in given["levels"].items():
            if not isinstance(level, str):
                drawn.append(Series(name, [level], mark="level"))
            elif known := evidence.only(list(labels), level):
                at = next(iter(known.values())).mean
                drawn.append(Series(f"{name}: {at:.1f}", [at], mark="level"))
    for long, short in given.get("shorter", {}).items():
        labels = {row: label.replace(long, short) for row, label in labels.items()}
    return Chart(given["title"], drawn, "", first, list(labels.values()))


def _points(study: Study, evidence: Evidence, given: Mapping[str, Any]) -> Chart:
    """Return points of two columns, or of a column over an option of rows, by what the legend calls the rows."""
    drawn, x = [], given["x"]
    for name, patterns in given["series"].items():
        points = []
        for row in _rows(study, patterns):
            place = Figure(row.options[x]) if x in row.options else evidence.figure(row.name, x)
            figure = evidence.figure(row.name, given["y"])
            points += [(place.mean, figure.mean)] if place and figure else []
        if points:
            xs, ys = zip(*sorted(points), strict=True)
            drawn.append(Series(name, ys, xs, mark=given.get("mark", "line")))
    x_axis, y_axis = given["axes"]
    return Chart(given["title"], drawn, x_axis, y_axis, log="x")


def _rows(study: Study, patterns: Sequence[str]) -> list[Row]:
    lists = document(study.paper.key).get("lists", {})
    names = [one for pattern in patterns for one in members(pattern, lists)]
    return [row for row in study.rows if any(fnmatch.fnmatchcase(row.name, name) for name in names)]


def smoothed(values: Sequence[float]) -> np.ndarray:
    """Return a centred running mean over a fiftieth of the values, an odd number of them."""
    from diptych.report.run import running_mean  # pages are heavy

    return running_mean(np.asarray(values), max(1, len(values) // 50) // 2 * 2 + 1)


def trajectories(study: Study, evidence: Evidence) -> Further:
    """Return how the first seed of each row was trained, a chart for each quantity that there is."""
    runs = {row.label: run for row in study.rows for run in evidence.trajectories.get(row.name, ())[:1]}
    charts = []
    for title, (steps, quantity) in _QUANTITIES.items():
        is_log = quantity == "multiplier"
        lines = []
        for label, run in runs.items():
            values = getattr(run, quantity)
            if is_log:
                values = [value if value > 0 else None for value in values]
            elif len(values) > _ROUGH:
                values = smoothed(values).tolist()
            lines += [Series(label, values, getattr(run, steps))] if values else []
        if lines and quantity == "reconstruction":
            bounds = [run.bound for run in runs.values() if run.bound is not None]
            lines += [Series("" if at else "bounds", [y], mark="level") for at, y in enumerate(bounds)]
        charts += [Chart(title, lines, "step", log="y" if is_log else "")] if lines else []
    note = "The first seed of each row. Losses are smoothed over a fiftieth of the training"
    return Further(charts=charts, title="Trajectories", note=f"{note}; dotted lines are the bounds.")
