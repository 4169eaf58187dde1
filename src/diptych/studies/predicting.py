"""What studies of a log show of it: predictions and importances as numbers, and tables and charts besides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from diptych.core.table import Table
from diptych.studies.compare import Further
from diptych.studies.evidence import HIGH, LOW, Evidence
from diptych.studies.study import Study

if TYPE_CHECKING:
    from pathlib import Path

    from diptych.commerce.purchase_intent.evaluation import Evaluation
    from diptych.commerce.purchase_intent.statistics import Description

Values = dict[str, dict[str, float]]
"""Row → column → number."""

Statistics = Callable[[str], Sequence[Mapping[str, Any]]]
"""A statistic's rows by its name."""

SETTINGS = ("anonymous", "identified")
"""Whose purchases are predicted."""

_MEASURES = {"f1": "", "average_precision": "AP "}
_BASE, _ALWAYS, _GAIN = "base rate ", "always buy ", "gain "  # begin the names of columns
_STATIC = "static"  # the row of all static features together
_DRAWN = {
    "session-length-quantiles": (
        "Lengths of sessions",
        "Share of sessions that have at least so many actions, on logarithmic axes.",
    ),
    "week-days": ("Days of the week", "Intervals are 95 %."),
    "hours": ("Hours of the day", "Bands are 95 % intervals."),
    "channels": ("Channels", "Of all channels that the log has."),
    "devices": ("Devices", "Of all devices that the log has."),
}
_NOT_LISTED = ("session-length-quantiles", "hours")  # statistics that are drawn alone


def numbers(
    column: str, value: float | None, low: float | None, high: float | None, scale: float = 100.0
) -> dict[str, float]:
    """Return a number with the ends of its interval, as far as they are there."""
    found = {column: value, column + LOW: low, column + HIGH: high}
    return {name: scale * one for name, one in found.items() if one is not None}


def predictions(evaluation: Evaluation, model: str) -> Values:
    """Return the numbers of one model's rows, all in per cent."""
    values: Values = {}
    for cell in evaluation.cells:
        columns = values.setdefault(f"{model}-{cell['set']}-{cell['setting']}", {})
        step = cell["step"]
        for measure, prefix in _MEASURES.items():
            ends = cell[f"{measure}_low"], cell[f"{measure}_high"]
            columns |= numbers(f"{prefix}{step}", cell[measure], *ends)
        columns |= numbers(f"{_BASE}{step}", cell["base_rate"], None, None)
        columns |= numbers(f"{_ALWAYS}{step}", cell["always_buy_f1"], None, None)
    for gain in evaluation.gains:
        extended = values.get(f"{model}-extended-{gain['setting']}")
        if gain["measure"] in _MEASURES and extended is not None:
            column = f"{_GAIN}{_MEASURES[gain['measure']]}{gain['step']}"
            extended |= numbers(column, gain["difference"], gain["low"], gain["high"])
    anonymous = f"{model}-extended-{SETTINGS[0]}"
    if anonymous in values:
        values[anonymous] |= _ahead(evaluation, model)
    return values


def _ahead(evaluation: Evaluation, model: str) -> dict[str, float]:
    """Return by how much the gain at step 0 is above the mean of the others, of anonymous visitors."""
    from diptych.commerce.purchase_intent.evaluation import contrast

    who, signs = SETTINGS[0], {"baseline": -1.0, "extended": 1.0}
    found = {cell["step"] for cell in evaluation.cells if (cell["setting"], cell["set"]) == (who, "extended")}
    steps = sorted(one for one in found if evaluation.cell(who, "baseline", one, model) is not None)
    if len(steps) < 2 or steps[0] != 0:
        return {}
    factors = {step: -1.0 / (len(steps) - 1) if step else 1.0 for step in steps}
    terms = [(signs[one] * factors[step], (who, one, step, model)) for step in steps for one in signs]
    values: dict[str, float] = {}
    for measure, prefix in _MEASURES.items():
        ahead = contrast(evaluation, terms, measure=measure)
        values |= numbers(f"{prefix}{_GAIN}0 less others", ahead.difference, ahead.low, ahead.high)
    return values


def importances(rows: Sequence[Mapping[str, Any]]) -> Values:
    """Return what features with the extended set are worth, in per cent, by the mean over steps from 1 on."""
    values: Values = {}
    for setting in SETTINGS:
        mine = [row for row in rows if (row["setting"], row["set"]) == (setting, "extended")]
        known = [row for row in mine if row["impurity"] is not None]
        later = [row for row in known if row["step"] > 0]
        for name in dict.fromkeys(row["feature"] for row in later):
            for kind, column in (("impurity", setting), ("permutation", f"{setting}, permutation")):
                worth = [row[kind] for row in later if row["feature"] == name and row[kind] is not None]
                if worth:
                    values.setdefault(name, {})[column] = 100.0 * sum(worth) / len(worth)
        for step in sorted({row["step"] for row in known if setting == SETTINGS[0]}):
            of_step = [row for row in known if row["step"] == step]
            total = sum(row["impurity"] for row in of_step)
            if total > 0:
                kept = sum(row["impurity"] for row in of_step if not row["dynamic"])
                values.setdefault(_STATIC, {})[f"at step {step}"] = 100.0 * kept / total
    return values


# Tables and charts besides -------------------------------------------------------------------------


def statistics_further(study: Study, evidence: Evidence) -> Further:
    """Return a statistic as the page of a description shows it: with whatever the log has besides the study's rows."""
    from diptych.commerce.purchase_intent.shown import Discretion
    from diptych.commerce.purchase_intent.statistics import STATISTICS, DescribeOptions, shown

    name, description = study.measure["statistic"], description_of(evidence)
    if description is None:
        return Further()
    title, note = _DRAWN.get(name, ("", ""))
    note += " Counts of one to four, and what follows from them, are not drawn." if note else ""
    drawn = name.removesuffix("-quantiles")
    charts = shown.charts_of(drawn, description.rows(drawn))
    rows = [] if name in _NOT_LISTED else description.rows(name)
    tables = shown.tables_of(name, rows, DescribeOptions(**description.about["options"]))
    tables = tables or [chart.table() for chart in charts if rows]
    least = Discretion.current().least
    hidden = f"Counts below {least}, and what follows from them, are not shown. " if least > 1 else ""
    after = f"{STATISTICS.get(name).description}. In brackets: 95 % intervals. {hidden}"
    return Further([_plain(table, after) for table in tables], charts, (), title, note)


def _plain(table: Table, note: str) -> Table:
    """Return a table of text, without groups and folds."""
    over = [text for text, span in table.groups for _ in range(span)] or [""] * len(table.columns)
    header = [f"{text}: {name}" if text else name for text, name in zip(over, table.columns, strict=True)]
    rows = [[cell.line for cell in row] for row in table.rows]
    return Table.of(f"{table.caption}: all that the log has", f"{note}{table.after}".strip(), header, rows)


def importance_further(study: Study, evidence: Evidence) -> Further:
    """Return Figure 6.6."""
    from diptych.commerce.purchase_intent.evaluation.shown import importance_charts

    charts = importance_charts([row for one in _evaluations(evidence) for row in one.importance])
    note = (
        "Of the random forest with the extended set; bars are means over the steps with pages. Impurity is as "
        "published; permutation is on held-out sessions."
    )
    return Further((), charts, (), "Importance", note)


def predictions_further(study: Study, evidence: Evidence) -> Further:
    """Return Figure 6.7; average precision, gains of the extended set, and what a model without skill would have."""
    from diptych.commerce.purchase_intent.evaluation.shown import Grid, gain_charts, step_charts

    evaluations = _evaluations(evidence)
    grid = Grid([cell for one in evaluations for cell in one.cells])
    charts = [chart for measure in _MEASURES for chart in step_charts(grid, measure)]
    charts += gain_charts(grid, [gain for one in evaluations for gain in one.gains])
    note = (
        "As in Figure 6.7, with what calling every session a purchase would have. Intervals are 95 % of resampled "
        "persons, of the model whose average precision is highest at the last step. Then what the extended set gains."
    )
    return Further(_prediction_tables(study, evidence), charts, (), "Step by step", note)


def _prediction_tables(study: Study, evidence: Evidence) -> list[Table]:
    labels = {row.name: row.label for row in study.rows if row.name in evidence.figures}
    steps = [one.name for one in study.columns if evidence.only(list(labels), one.name)]
    if not steps:
        return []

    def table(title: str, note: str, lines: Iterable[tuple[str, str, str]]) -> Table:
        """Return a table of lines: what they are called, the row, what its columns begin with."""
        cells = (
            (label, *(_cell(evidence, row, f"{begin}{n}") for n in steps)) for label, row, begin in lines
        )
        return Table.of(title, note, ("row", *steps), list(cells))

    gained = {row: label for row, label in labels.items() if "-extended-" in row}
    tables = [
        table(title, note, [(label, row, begin) for row, label in rows.items()])
        for title, note, rows, begin in (
            ("Average precision", "In per cent, with 95 % intervals of resampled persons.", labels, "AP "),
            (
                "What the extended set gains, F1",
                "In points, with 95 % intervals of the same resampled persons. The anonymous baseline has no "
                "feature at step 0.",
                gained,
                _GAIN,
            ),
            ("What the extended set gains, average precision", "As above.", gained, f"{_GAIN}AP "),
        )
        if rows
    ]
    firsts = {who: row for who in SETTINGS for row in reversed(labels) if row.endswith(f"-{who}")}
    whats = {_BASE: "purchase sessions, %", _ALWAYS: "F1 of calling each a purchase, %"}
    skill = table(
        "Without skill",
        "An F1 of a sample rich in purchases is high whatever the model; average precision without skill is the "
        "share of purchase sessions.",
        [(f"{who}: {what}", row, begin) for who, row in firsts.items() for begin, what in whats.items()],
    )
    return [*tables, skill]


def _cell(evidence: Evidence, row: str, column: str) -> str:
    """Return a number with its interval, where it has one."""
    figures = [evidence.figure(row, column + end) for end in ("", LOW, HIGH)]
    value, *ends = (None if one is None else f"{one.mean:.1f}" for one in figures)
    return (value or "–") if None in ends else f"{value} [{', '.join(map(str, ends))}]"


def description_of(evidence: Evidence) -> Description | None:
    """Return the statistics that rows were measured from; None of printed numbers, and where they are gone."""
    from diptych.commerce.purchase_intent.statistics import Description

    return next((Description.open(folder) for folder in _kept(evidence)), None)


def _evaluations(evidence: Evidence) -> list[Evaluation]:
    from diptych.commerce.purchase_intent.evaluation import Evaluation

    return [Evaluation.open(folder) for folder in _kept(evidence)]


def _kept(evidence: Evidence) -> Iterator[Path]:
    """Yield the folders that rows were measured from, each once; those that are gone are left out."""
    folders = dict.fromkeys(folder.resolve() for folders in evidence.kept.values() for folder in folders)
    return (folder for folder in folders if folder.is_dir())
