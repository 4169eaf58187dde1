"""What is predicted from a shop's log, what features are worth to that and how they are declared."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from diptych.commerce.purchase_intent.evaluation import Evaluation
from diptych.commerce.purchase_intent.evaluation.shown import (
    Grid,
    gain_charts,
    importance_charts,
    mean_importance,
    static_shares,
    step_charts,
)
from diptych.commerce.purchase_intent.features import FEATURES
from diptych.commerce.purchase_intent.features.table import SETTINGS
from diptych.core.options import command_line
from diptych.core.table import Table
from diptych.studies.compare import Further
from diptych.studies.counted import Values, numbers
from diptych.studies.evidence import HIGH, LOW, Evidence
from diptych.studies.logs import FOREST, LogRow, kept_in
from diptych.studies.results import Measured, Measurement, Measuring
from diptych.studies.sources import Subject
from diptych.studies.study import Study

_MEASURES = {"f1": "", "average_precision": "AP "}  # what their columns begin with


@dataclass(frozen=True)
class Predicted(Measuring):
    """A model with a feature set in a setting: F1 in per cent at each step, and what else is known of it."""

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Evaluate a model for all of its rows; nothing where a setting has too few sessions of either kind."""
        row: LogRow = subject.run
        model, feature_set, setting = row.name.rsplit("-", 2)
        evaluation = row.shop.evaluation(model)
        folds, split = evaluation.protocol.folds, evaluation.protocol.split
        how = f"{folds}-fold cross-validation" if folds > 1 else "one split"
        how += "" if split == "random" else f" by {split}"
        values = _predictions(evaluation, feature_set, setting)
        return _measured(row, evaluation, values, f"{how}, balanced classes", setting)


@dataclass(frozen=True)
class Importance(Measuring):
    """What each feature is worth to the random forest, per setting; and what static ones are, step by step."""

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Measure one feature, or all static ones; nothing where no model had it."""
        evaluation = subject.run.shop.evaluation(FOREST)
        values = importances(evaluation.importance).get(subject.run.name, {})
        return _measured(subject.run, evaluation, values, "importance by impurity of a random forest")


def _measured(
    row: LogRow, evaluation: Evaluation, values: Mapping[str, float], protocol: str, setting: str = ""
) -> tuple[Measurement, ...]:
    shop, cells = row.shop, [cell for cell in evaluation.cells if setting in ("", cell["setting"])]
    first = min((cell["step"] for cell in cells), default=0)
    sessions = {cell["setting"]: int(cell["sessions"]) for cell in cells if cell["step"] == first}
    split = f"{setting} sessions of 12 pages and more".lstrip()
    on = Measured(shop.log.name, split, sessions=sum(sessions.values()), protocol=protocol)
    command = ""
    if shop.sample is shop.features:  # a sample cannot be drawn by hand
        words = ("diptych", "intent", "evaluate", shop.features.folder, "--out", "evaluation")
        command = command_line(words, shop.evaluating(evaluation.protocol.models[0]), left_out=["jobs"])
    return row.measured(values, on, evaluation.line(), evaluation.folder, command)


@dataclass(frozen=True)
class Declared(Measuring):
    """Whether a feature may change during a session, is in the baseline, and is of the visitor's history."""

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Return one feature as it is declared."""
        feature = FEATURES.get(subject.run.name)
        values = {"dynamic": float(feature.dynamic), "baseline": float(feature.baseline)}
        values["history"] = float(feature.group == "history")
        protocol = "what may change during a session, and what the baseline has"
        on = Measured("features", "declared", protocol=protocol)
        return (Measurement(values, on, "diptych.commerce.purchase_intent.features"),)


def _predictions(evaluation: Evaluation, feature_set: str, setting: str) -> dict[str, float]:
    values: dict[str, float] = {}
    for cell in evaluation.cells:
        if (cell["set"], cell["setting"]) == (feature_set, setting):
            for measure, prefix in _MEASURES.items():
                ends = cell[f"{measure}_low"], cell[f"{measure}_high"]
                values |= numbers(f"{prefix}{cell['step']}", cell[measure], *ends)
            values[f"base rate {cell['step']}"] = 100.0 * cell["base_rate"]
            values[f"always buy {cell['step']}"] = 100.0 * cell["always_buy_f1"]
    for gain in evaluation.gains if feature_set == "extended" else ():
        if gain["setting"] == setting and gain["measure"] in _MEASURES:
            column = f"gain {_MEASURES[gain['measure']]}{gain['step']}"
            values |= numbers(column, gain["difference"], gain["low"], gain["high"])
    return values


def importances(rows: Sequence[Mapping[str, Any]]) -> Values:
    """Return what features with the extended set are worth, in per cent, by the mean over steps from 1 on."""
    values: Values = {}
    for setting in SETTINGS:
        mine = [row for row in rows if (row["setting"], row["set"]) == (setting, "extended")]
        later = [row for row in mine if row["step"] > 0]
        for kind, column in (("impurity", setting), ("permutation", f"{setting}, permutation")):
            for feature, worth in mean_importance(later, kind).items():
                values.setdefault(feature, {})[column] = 100.0 * worth
        if setting == SETTINGS[0]:
            shares = static_shares(mine, "impurity")
            values["static"] = {f"at step {step}": 100.0 * share for step, share in shares.items()}
    return values


def charts_and_tables(study: Study, evidence: Evidence) -> Further:
    """Return charts of the evaluations that rows were read from, and the tables that the paper's file declares."""
    evaluations = kept_in(evidence, Evaluation.open)
    if study.measure["kind"] == "importance":
        charts = importance_charts([row for one in evaluations for row in one.importance])
    else:
        grid = Grid([cell for one in evaluations for cell in one.cells])
        charts = [chart for measure in _MEASURES for chart in step_charts(grid, measure)]
        charts += gain_charts(grid, [gain for one in evaluations for gain in one.gains])
    labels = {row.name: row.label for row in study.rows if row.name in evidence.figures}
    steps = [one.name for one in study.columns if evidence.only(list(labels), one.name)]
    tables = []
    for given in study.figures.get("tables", ()) if steps else ():
        rows = []
        for line in given["lines"]:
            names = fnmatch.filter(labels, line["rows"])
            for name in names[:1] if "label" in line else names:
                cells = (_cell(evidence, name, f"{line['columns']}{step}") for step in steps)
                rows.append((line.get("label", labels[name]), *cells))
        if rows:
            tables.append(Table.of(given["title"], given["after"], ("row", *steps), rows))
    return Further(tables, charts, (), study.figures["title"], study.figures["note"])


def _cell(evidence: Evidence, row: str, column: str) -> str:
    figures = [evidence.figure(row, column + end) for end in ("", LOW, HIGH)]
    value, *ends = (None if one is None else f"{one.mean:.1f}" for one in figures)
    return (value or "–") if None in ends else f"{value} [{', '.join(map(str, ends))}]"
