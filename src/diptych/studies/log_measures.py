"""Measures of a shop's log: what is counted in it, what is predicted from it, and what features are worth to that."""

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from diptych.commerce.logs import Log
from diptych.commerce.purchase_intent.evaluation import Evaluation
from diptych.commerce.purchase_intent.features import FEATURES
from diptych.commerce.purchase_intent.features.table import SETTINGS, WHOLE_SESSION
from diptych.commerce.purchase_intent.options import SessionOptions
from diptych.commerce.purchase_intent.shown import (
    DisclosureControl,
    Grid,
    importance_charts,
    mean_importance,
    static_shares,
    step_charts,
)
from diptych.commerce.purchase_intent.statistics import ORDER, STATISTICS, Description
from diptych.core.chart import Chart
from diptych.core.extras import require
from diptych.core.options import command_line
from diptych.core.table import Cell, Table
from diptych.studies.compare import Further
from diptych.studies.evidence import HIGH, LOW, Evidence
from diptych.studies.logs import FOREST, LogRow
from diptych.studies.results import Measured, Measurement, Measuring, Results
from diptych.studies.sources import Subject
from diptych.studies.study import Study

Values = dict[str, dict[str, float]]  # row → column → number
Statistics = Callable[[str], Sequence[Mapping[str, Any]]]  # a statistic's rows by its name
Made = TypeVar("Made", Description, Evaluation)

_NOT_LISTED = ("session-length-quantiles", "hours")  # statistics that are only drawn
_MEASURES = {"f1": "", "average_precision": "AP "}  # of models: what their columns begin with
_TEXTS = ("what", "device", "channel", "devices", "from_device", "to_device", "link")  # columns of statistics
_FLAGS = ("purchase", "purchaser", "weekend")
_GAINS = ("average_precision_gain", "f1_gain")


def numbers(column: str, *values: Any, scale: float = 100.0) -> dict[str, float]:
    """Return a number and the two ends of its interval, as far as they are there and disclosed."""
    names = (column, column + LOW, column + HIGH)
    return {name: scale * value for name, value in zip(names, values, strict=False) if value is not None}


@dataclass(frozen=True)
class Counted(Measuring):
    """Rows and columns of a log's statistics, by SQL over their rows."""

    statistic: str
    sql: str  # to name, title and value, or also low and high; see intent.toml

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Count one row; nothing where the log has nothing of it, or cannot tell."""
        row: LogRow = subject.run
        shop, description = row.shop, row.shop.description
        if shop.cannot(self.statistic):
            return ()
        about, options = description.about, description.options
        command, words = "", ("diptych", "intent", "describe", shop.log.folder, "--out", "description")
        if isinstance(shop.log, Log):
            command = command_line(words, SessionOptions(**about["session_options"]), options)
        values = self.counted(description.rows, options.ddof).get(row.name, {})
        on = {"sessions": about["counts"]["sessions"], "protocol": shop.protocol}
        return row.measured(values, description, command, split="all", **on)

    def counted(self, of: Statistics, ddof: int = 0) -> Values:
        """Return all numbers, shares in per cent; of what is suppressed there is none."""
        pa, values = require("pyarrow", purpose="counting a log"), Values()
        with require("duckdb", purpose="counting a log").connect() as database:
            database.execute("SET VARIABLE ddof = ?", [ddof])
            for name in (one for one in ORDER if one in self.sql):
                kinds = dict.fromkeys(STATISTICS.get(name).columns.split(), pa.float64())
                kinds |= {one: pa.string() for one in _TEXTS if one in kinds}
                kinds |= {one: pa.bool_() for one in _FLAGS if one in kinds}
                rows = [
                    {
                        key: None if isinstance(row.get(key), str) and key not in _TEXTS else row.get(key)
                        for key in kinds
                    }
                    for row in of(name)
                ]
                database.register(name, pa.Table.from_pylist(rows, pa.schema(kinds)))
            for name, title, *ends in database.execute(self.sql).fetchall():
                if name is not None and (found := numbers(title, *ends, scale=1.0)):
                    values.setdefault(name.replace(" ", "-"), {}).update(found)
        return values

    def withhold(self, results: Results) -> Results:
        """Return the numbers of a stored study as far as the control in force discloses them."""
        found = opened(results.evidence(), Description)
        if not found:
            return results
        shown = self.counted(found[0].rows)
        entries = []
        for entry in results.entries:
            (one,) = entry.measurements
            kept = {name: value for name, value in one.values.items() if name in shown.get(entry.row, {})}
            entries.append(replace(entry, measurements=(replace(one, values=kept),)))
        return replace(results, entries=tuple(entries))


@dataclass(frozen=True)
class Predicted(Measuring):
    """A model with a feature set in a setting: F1 in per cent at each step, and what else is known of it."""

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Evaluate a model for all of its rows; nothing where a setting has too few sessions of either kind."""
        row: LogRow = subject.run
        model, feature_set, setting = row.name.rsplit("-", 2)
        evaluation = row.shop.evaluation(model, setting)
        if evaluation is None:
            return ()
        folds, split = (evaluation.protocol.options[name] for name in ("folds", "split"))
        how = f"{folds}-fold cross-validation" if folds > 1 else "one split"
        how += "" if split == "random" else f" by {split}"
        values: dict[str, float] = {}
        for cell in evaluation.cells:
            whole = cell["set"] == "all" and feature_set == "extended"  # all columns, and no steps
            if whole or (cell["set"], cell["setting"]) == (feature_set, setting):
                step = "whole" if whole else cell["step"]
                for measure, prefix in _MEASURES.items():
                    ends = cell[f"{measure}_low"], cell[f"{measure}_high"]
                    values |= numbers(f"{prefix}{step}", cell[measure], *ends)
                    gain = (cell.get(f"{measure}_gain{end}") for end in ("", "_low", "_high"))
                    values |= numbers(f"gain {prefix}{step}", *gain)
                values[f"base rate {step}"] = 100.0 * cell["base_rate"]
                values[f"always buy {step}"] = 100.0 * cell["always_buy_f1"]
        return _evaluated(row, evaluation, values, f"{how}, balanced classes", setting)


@dataclass(frozen=True)
class Importance(Measuring):
    """The importance of each feature to the random forest, per setting; and what static ones are, step by step."""

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Measure one feature, or all static ones; nothing where no model had it."""
        row: LogRow = subject.run
        made = {setting: row.shop.evaluation(FOREST, setting) for setting in SETTINGS}
        each = {setting: one for setting, one in made.items() if one is not None}
        if not each:
            return ()
        stand_ins = row.shop.stand_ins
        found = importances([one for who, of in each.items() for one in of_setting(of, who, stand_ins)])
        values, (evaluation, *_) = found.get(row.name, {}), each.values()
        return _evaluated(row, evaluation, values, "importance by impurity of a random forest")


def of_setting(
    evaluation: Evaluation, setting: str, stand_ins: Mapping[str, Sequence[str]]
) -> list[Mapping[str, Any]]:
    """Return the importances in a setting; of whole sessions those of the features that columns stand for."""
    if not stand_ins:
        return [row for row in evaluation.importance if row["setting"] == setting]
    found: list[Mapping[str, Any]] = []
    for feature, columns in stand_ins.items():
        mine = [row for row in evaluation.importance if row["feature"] in columns]
        sums = {kind: sum(row[kind] or 0.0 for row in mine) for kind in ("impurity", "permutation")}
        on = {"feature": feature, "setting": setting, "set": "extended", "step": WHOLE_SESSION}
        found += [{**mine[0], **sums, **on}] if mine else []
    return found


def _evaluated(
    row: LogRow, evaluation: Evaluation, values: Mapping[str, float], protocol: str, setting: str = ""
) -> tuple[Measurement, ...]:
    shop, cells = row.shop, [cell for cell in evaluation.cells if setting in ("", cell["setting"])]
    cells = cells or list(evaluation.cells)
    first = min((cell["step"] for cell in cells), default=0)
    sessions = {cell["setting"]: int(cell["sessions"]) for cell in cells if cell["step"] == first}
    command = ""
    if shop.sample(setting) is shop.features:  # a sample cannot be drawn by hand
        words = ("diptych", "intent", "evaluate", shop.features.folder, "--out", "evaluation")
        command = command_line(
            words, shop.evaluating(evaluation.protocol.options["models"][0]), left_out=["jobs"]
        )
    on = {"split": f"{setting} sessions of 12 pages and more".lstrip(), "sessions": sum(sessions.values())}
    return row.measured(values, evaluation, command, protocol=protocol, **on)


def importances(rows: Sequence[Mapping[str, Any]]) -> Values:
    """Return what features with the extended set are worth, in per cent, by the mean over steps from 1 on."""
    values: Values = {}
    for setting in SETTINGS:
        mine = [row for row in rows if (row["setting"], row["set"]) == (setting, "extended")]
        later = [row for row in mine if row["step"] != 0]
        for kind, column in (("impurity", setting), ("permutation", f"{setting}, permutation")):
            for feature, worth in mean_importance(later, kind).items():
                values.setdefault(feature, {})[column] = 100.0 * worth
        if setting == SETTINGS[0]:
            shares = static_shares([row for row in mine if row["step"] >= 0], "impurity")
            values["static"] = {f"at step {step}": 100.0 * share for step, share in shares.items()}
    return values


@dataclass(frozen=True)
class Declared(Measuring):
    """Declare whether a feature may change during a session, is in the baseline, and is of the visitor's history."""

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        feature = FEATURES.get(subject.run.name)
        values = {"dynamic": float(feature.dynamic), "baseline": float(feature.baseline)}
        values["history"] = float(feature.group == "history")
        protocol = "what may change during a session, and what the baseline has"
        on = Measured("features", "declared", protocol=protocol)
        return (Measurement(values, on, "diptych.commerce.purchase_intent.features"),)


def further(study: Study, evidence: Evidence) -> Further:
    """Return a statistic as the page of a description shows it, or charts and declared tables of predictions."""
    kind, given = study.measure["kind"], dict(study.figures)
    declared = given.pop("tables", ())
    if kind == "counted":
        found = opened(evidence, Description)
        return Further(*_described(study.measure["statistic"], found[0]), **given) if found else Further()
    evaluations = opened(evidence, Evaluation)
    if kind == "importance":
        charts = importance_charts([row for one in evaluations for row in one.importance])
    else:
        grid = Grid([cell for one in evaluations for cell in one.cells])
        charts = [chart for measure in (*_MEASURES, *_GAINS) for chart in step_charts(grid, measure)]
    return Further(_by_step(study, evidence, declared), charts, **given)


def opened(evidence: Evidence, kind: type[Made]) -> list[Made]:
    folders = dict.fromkeys(folder.resolve() for folders in evidence.kept.values() for folder in folders)
    return [kind.open(folder) for folder in folders if folder.is_dir()]


def _described(name: str, description: Description) -> tuple[list[Table], list[Chart]]:
    shown, least = name.removesuffix("-quantiles"), DisclosureControl.current().least
    note = f"{STATISTICS.get(name).description}. In brackets: 95 % intervals. "
    note += f"Counts below {least}, and what follows from them, are not shown. " if least > 1 else ""
    tables = []
    for one in () if name in _NOT_LISTED else description.tables(shown):
        rows = [[Cell(cell.line) for cell in row] for row in one.rows]
        whole = f"{one.caption}: all that the log has"
        tables.append(replace(one, caption=whole, rows=rows, after=f"{note}{one.after}".strip()))
    return tables, description.charts(shown)


def _by_step(study: Study, evidence: Evidence, declared: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return the tables that the paper's file declares: a column for each step that was measured."""
    labels = {row.name: row.label for row in study.rows if row.name in evidence.figures}
    steps = [one.name for one in study.columns if evidence.only(list(labels), one.name)]
    tables = []
    for given in declared if steps else ():
        rows = []
        for line in given["lines"]:
            names = fnmatch.filter(labels, line["rows"])
            for name in names[:1] if "label" in line else names:
                cells = (_cell(evidence, name, f"{line['columns']}{step}") for step in steps)
                rows.append((line.get("label", labels[name]), *cells))
        tables += [Table.of(given["title"], given["after"], ("row", *steps), rows)] if rows else []
    return tables


def _cell(evidence: Evidence, row: str, column: str) -> str:
    figures = [evidence.figure(row, column + end) for end in ("", LOW, HIGH)]
    value, *ends = (None if one is None else f"{one.mean:.1f}" for one in figures)
    return (value or "–") if None in ends else f"{value} [{', '.join(map(str, ends))}]"
