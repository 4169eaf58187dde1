"""What is predicted from a shop's log, what features are worth to that and how they are declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from diptych.commerce.purchase_intent.evaluation import Evaluation, contrast
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
from diptych.studies.results import Measurement, Measuring
from diptych.studies.sources import Subject
from diptych.studies.study import Study
from diptych.studies.verdict import Measured

_ANONYMOUS = SETTINGS[0]
_MEASURES = {"f1": "", "average_precision": "AP "}
_BASE, _ALWAYS, _GAIN = "base rate ", "always buy ", "gain "  # begin the names of columns
_SKILL = ((_BASE, "purchase sessions, %"), (_ALWAYS, "F1 of calling each a purchase, %"))
_TABLES = {  # what stands below them, and what their columns begin with
    "Average precision": ("In per cent, with 95 % intervals of resampled persons.", "AP "),
    "What the extended set gains, F1": (
        "In points, with 95 % intervals of the same resampled persons. The anonymous baseline has no "
        "feature at step 0.",
        _GAIN,
    ),
    "What the extended set gains, average precision": ("As above.", f"{_GAIN}AP "),
}
_WITHOUT_SKILL = (
    "An F1 of a sample rich in purchases is high whatever the model; average precision without skill is the "
    "share of purchase sessions."
)


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
        values = predictions(evaluation, feature_set, setting)
        return _measured(row, evaluation, values, (setting,), f"{how}, balanced classes")


@dataclass(frozen=True)
class Importance(Measuring):
    """What each feature is worth to the random forest, per setting; and what static ones are, step by step."""

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Measure one feature, or all static ones; nothing where no model had it."""
        row: LogRow = subject.run
        evaluation = row.shop.evaluation(FOREST)
        values = importances(evaluation.importance).get(row.name)
        return _measured(row, evaluation, values, SETTINGS, "importance by impurity of a random forest")


def _measured(
    row: LogRow, evaluation: Evaluation, values: Mapping[str, float] | None, settings: Sequence[str], how: str
) -> tuple[Measurement, ...]:
    shop, cells = row.shop, [cell for cell in evaluation.cells if cell["setting"] in settings]
    first = min((cell["step"] for cell in cells), default=0)
    sessions = {cell["setting"]: int(cell["sessions"]) for cell in cells if cell["step"] == first}
    what = f"{settings[0]} sessions" if len(settings) == 1 else "sessions"
    split = f"{what} of 12 pages and more"
    on = Measured(shop.log.name, split, sessions=sum(sessions.values()), protocol=how)
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


def predictions(evaluation: Evaluation, feature_set: str, setting: str) -> dict[str, float]:
    """Return the numbers of the one model that was evaluated, all in per cent."""
    values: dict[str, float] = {}
    for cell in evaluation.cells:
        if (cell["set"], cell["setting"]) == (feature_set, setting):
            for measure, prefix in _MEASURES.items():
                ends = cell[f"{measure}_low"], cell[f"{measure}_high"]
                values |= numbers(f"{prefix}{cell['step']}", cell[measure], *ends)
            values[f"{_BASE}{cell['step']}"] = 100.0 * cell["base_rate"]
            values[f"{_ALWAYS}{cell['step']}"] = 100.0 * cell["always_buy_f1"]
    if feature_set != "extended":
        return values
    gains = [gain for gain in evaluation.gains if gain["setting"] == setting and gain["measure"] in _MEASURES]
    for gain in gains:
        column = f"{_GAIN}{_MEASURES[gain['measure']]}{gain['step']}"
        values |= numbers(column, gain["difference"], gain["low"], gain["high"])
    first, *later = sorted({gain["step"] for gain in gains}) or [None]
    if setting == _ANONYMOUS and first == 0 and later:
        (model,) = evaluation.protocol.models
        signs = {"baseline": -1.0, "extended": 1.0}
        terms = [(sign, (setting, one, 0, model)) for one, sign in signs.items()]
        terms += [(-signs[one] / len(later), (setting, one, step, model)) for step in later for one in signs]
        for measure, prefix in _MEASURES.items():
            ahead = contrast(evaluation, terms, measure=measure)
            values |= numbers(f"{prefix}{_GAIN}0 less others", ahead.difference, ahead.low, ahead.high)
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
        if setting == _ANONYMOUS:
            shares = static_shares(mine, "impurity")
            values["static"] = {f"at step {step}": 100.0 * share for step, share in shares.items()}
    return values


def importance_further(study: Study, evidence: Evidence) -> Further:
    """Return Figure 6.6."""
    evaluations = kept_in(evidence, Evaluation.open)
    charts = importance_charts([row for one in evaluations for row in one.importance])
    note = (
        "Of the random forest with the extended set; bars are means over the steps with pages. Impurity is as "
        "published; permutation is on held-out sessions."
    )
    return Further((), charts, (), "Importance", note)


def predictions_further(study: Study, evidence: Evidence) -> Further:
    """Return Figure 6.7; average precision, gains of the extended set, and what a model without skill would have."""
    evaluations = kept_in(evidence, Evaluation.open)
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
    firsts = {who: row for who in SETTINGS for row in reversed(labels) if row.endswith(f"-{who}")}

    def table(caption: str, after: str, lines: Iterable[tuple[str, str, str]]) -> Table:
        """Return a table of lines: their labels, rows, and what the names of columns begin with."""
        cells = (
            (label, *(_cell(evidence, row, f"{begin}{n}") for n in steps)) for label, row, begin in lines
        )
        return Table.of(caption, after, ("row", *steps), cells)

    tables = []
    for caption, (after, begin) in _TABLES.items():
        rows = [row for row in labels if _GAIN not in begin or "-extended-" in row]
        tables += [table(caption, after, [(labels[row], row, begin) for row in rows])] if rows else []
    skill = [(f"{who}: {what}", row, begin) for who, row in firsts.items() for begin, what in _SKILL]
    return [*tables, table("Without skill", _WITHOUT_SKILL, skill)] if steps else []


def _cell(evidence: Evidence, row: str, column: str) -> str:
    """Return a number with its interval, where it has one."""
    figures = [evidence.figure(row, column + end) for end in ("", LOW, HIGH)]
    value, *ends = (None if one is None else f"{one.mean:.1f}" for one in figures)
    return (value or "–") if None in ends else f"{value} [{', '.join(map(str, ends))}]"
