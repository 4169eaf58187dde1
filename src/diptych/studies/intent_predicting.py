"""Columns that are measures of prediction: F1 and average precision step by step, and importance of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from diptych.core.table import Table
from diptych.studies.intent_prediction_checks import AHEAD, AP, GAIN
from diptych.studies.intent_rows import MODELS, SETS, SETTINGS, beside, prediction_row
from diptych.studies.log_checks import HIGH, LOW, known, shown
from diptych.studies.study import Measurement, Subject
from diptych.studies.verdict import Evidence, Measured

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.evaluation import Evaluation
    from diptych.studies.logs import LogRow


FOREST = "random-forest"
"""Whose importances there are: the thesis's primary model."""

STATIC = "static"
"""The row of all static features together."""

_VERSION = 2
BASE, ALWAYS = "base rate ", "always buy "
"""Begin the columns of what a model without skill has at a step."""

_MEASURES = {"": "f1", AP: "average_precision"}
_PER_CENT = 100.0
_DECLARED = "what may change during a session, and what the baseline has"


@dataclass(frozen=True)
class Predicted:
    """A model with a feature set in a setting: F1 in per cent at each step, and what else is known of it."""

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on besides the log and what a person chooses."""
        return {"kind": "prediction", "version": _VERSION}

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """One row; nothing where its setting has too few sessions of either kind."""
        row: LogRow = subject.run
        model = next(name for name in MODELS if row.row.name.startswith(f"{name}-"))
        evaluation = row.workshop.evaluation(model)
        of_model = row.workshop.once(f"predictions of {model}", lambda: predictions(evaluation, model))
        values = of_model.get(row.row.name)
        if not values:
            return ()
        setting = next(name for name in SETTINGS if row.row.name.endswith(f"-{name}"))
        return (_measurement(row, evaluation, values, setting),)


@dataclass(frozen=True)
class Importance:
    """What each feature is worth to the random forest, per setting; and what static ones are, step by step."""

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on besides the log and what a person chooses."""
        return {"kind": "importance", "version": _VERSION}

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """One feature, or all static ones; nothing where no model had it."""
        row: LogRow = subject.run
        evaluation = row.workshop.evaluation(FOREST)
        values = importances(evaluation.importance).get(row.row.name)
        if not values:
            return ()
        found = _measurement(row, evaluation, values, "")
        on = replace(found.on, protocol="importance by impurity of a random forest")
        return (replace(found, on=on),)


@dataclass(frozen=True)
class Declared:
    """Whether a feature may change during a session, is in the baseline, and is of the visitor's history."""

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on."""
        return {"kind": "features", "declared": _declared(), "version": _VERSION}

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """One feature, as it is declared."""
        values = _declared().get(subject.run.row.name)
        on = Measured("features", "declared", protocol=_DECLARED)
        return (
            () if values is None else (Measurement(values, on, "diptych.commerce.purchase_intent.features"),)
        )


def _declared() -> dict[str, dict[str, float]]:
    from diptych.commerce.purchase_intent.features import FEATURES

    return {
        one.name: {
            "dynamic": float(one.dynamic),
            "baseline": float(one.baseline),
            "history": float(one.group == "history"),
        }
        for one in FEATURES
        if one.default
    }


# From an evaluation to cells ---------------------------------------------------------------------------------


def predictions(evaluation: Evaluation, model: str) -> dict[str, dict[str, float]]:
    """Row → column → number, shares in per cent, of one model's evaluation."""
    values: dict[str, dict[str, float]] = {}
    for cell in evaluation.cells:
        if cell["model"] != model:
            continue
        columns = values.setdefault(prediction_row(model, cell["set"], cell["setting"]), {})
        step = cell["step"]
        for column, measure in _MEASURES.items():
            ends = {LOW: cell[f"{measure}_low"], HIGH: cell[f"{measure}_high"]}
            named = {f"{column}{step}": cell[measure]} | {
                f"{column}{step}{end}": value for end, value in ends.items()
            }
            columns |= _scaled(named)
        columns |= _scaled({f"{BASE}{step}": cell["base_rate"], f"{ALWAYS}{step}": cell["always_buy_f1"]})
    for gain in evaluation.gains:
        prefix = next((name for name, measure in _MEASURES.items() if measure == gain["measure"]), None)
        row = values.get(prediction_row(model, SETS[1], gain["setting"]))
        if prefix is None or row is None or gain["model"] != model:
            continue
        name = f"{GAIN}{prefix}{gain['step']}"
        row |= _scaled({name: gain["difference"], name + LOW: gain["low"], name + HIGH: gain["high"]})
    anonymous = values.get(prediction_row(model, SETS[1], SETTINGS[0]))
    if anonymous is not None:
        anonymous |= _ahead(evaluation, model, SETTINGS[0])
    return values


def _ahead(evaluation: Evaluation, model: str, setting: str) -> dict[str, float]:
    """By how much the gain at step 0 is above the mean of the others, with an interval of the same resamples."""
    from diptych.commerce.purchase_intent.evaluation import contrast

    steps = sorted(
        cell["step"]
        for cell in evaluation.cells
        if cell["setting"] == setting
        and cell["set"] == SETS[1]
        and evaluation.cell(setting, SETS[0], cell["step"], model) is not None
    )
    if len(steps) < 2 or steps[0] != 0:
        return {}
    others = len(steps) - 1
    terms = [
        (
            (1.0 if feature_set == SETS[1] else -1.0) * (1.0 if step == 0 else -1.0 / others),
            (setting, feature_set, step, model),
        )
        for step in steps
        for feature_set in SETS
    ]
    values: dict[str, float] = {}
    for prefix, measure in _MEASURES.items():
        found = contrast(evaluation, terms, measure=measure)
        name = prefix + AHEAD
        values |= _scaled({name: found.difference, name + LOW: found.low, name + HIGH: found.high})
    return values


def importances(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Feature → column → number in per cent: impurity of the extended set, by the mean over steps from 1 on."""
    values: dict[str, dict[str, float]] = {}
    static: dict[str, float] = {}
    for setting in SETTINGS:
        mine = [row for row in rows if row["setting"] == setting and row["set"] == SETS[1]]
        later = [row for row in mine if row["step"] > 0 and row["impurity"] is not None]
        for name in dict.fromkeys(row["feature"] for row in later):
            of_feature = [row for row in later if row["feature"] == name]
            columns = values.setdefault(name, {})
            for kind, column in (("impurity", setting), ("permutation", f"{setting}, permutation")):
                worth = [row[kind] for row in of_feature if row[kind] is not None]
                if worth:
                    columns[column] = _PER_CENT * sum(worth) / len(worth)
        if setting == SETTINGS[0]:
            for step in sorted({row["step"] for row in mine}):
                shares = [row for row in mine if row["step"] == step and row["impurity"] is not None]
                total = sum(row["impurity"] for row in shares)
                if total > 0:
                    kept = sum(row["impurity"] for row in shares if not row["dynamic"])
                    static[f"at step {step}"] = _PER_CENT * kept / total
    return {**values, **({STATIC: static} if static else {})}


def _measurement(
    row: LogRow, evaluation: Evaluation, values: Mapping[str, float], setting: str
) -> Measurement:
    cells = [cell for cell in evaluation.cells if setting in ("", cell["setting"])]
    first = min((cell["step"] for cell in cells), default=0)
    sessions = {cell["setting"]: int(cell["sessions"]) for cell in cells if cell["step"] == first}
    protocol = evaluation.protocol
    folds = f"{protocol.folds}-fold cross-validation" if protocol.folds > 1 else "one split"
    way = "" if protocol.split == "random" else f" by {protocol.split}"
    on = Measured(
        row.workshop.log.name,
        f"{setting} sessions of 12 pages and more".strip(),
        sessions=sum(sessions.values()),
        protocol=f"{folds}{way}, {'balanced' if protocol.balanced else 'unbalanced'} classes",
    )
    return Measurement(
        values,
        on,
        evaluation.line(),
        commands=row.workshop.evaluated_by(protocol.models[0]),
        kept=beside(evaluation.folder, row.folder),
    )


def _scaled(given: Mapping[str, float | None]) -> dict[str, float]:
    return {name: _PER_CENT * value for name, value in given.items() if value is not None}


def evaluations_of(evidence: Evidence) -> list[Evaluation]:
    """The evaluations that rows were measured from, each once; those that are gone are left out."""
    from diptych.commerce.purchase_intent.evaluation import Evaluation

    folders = dict.fromkeys(folder.resolve() for folders in evidence.kept.values() for folder in folders)
    return [Evaluation.open(folder) for folder in folders if folder.is_dir()]


def prediction_tables(evidence: Evidence) -> list[Table]:
    """Average precision, gains of the extended set, and what a model without skill would have."""
    rows = {
        prediction_row(model, feature_set, setting): f"{MODELS[model]}, {feature_set}, {setting}"
        for setting in SETTINGS
        for feature_set in SETS
        for model in MODELS
    }
    there = [row for row in rows if row in evidence.figures]
    steps = [str(step) for step in range(11) if any(known(evidence, [(row, str(step))]) for row in there)]
    if not there or not steps:
        return []
    gained = [row for row in there if f"-{SETS[1]}-" in row]
    tables = [
        ("Average precision", "In per cent, with 95 % intervals of resampled persons.", there, AP, 1),
        (
            "What the extended set gains, F1",
            "In points, with 95 % intervals of the same resampled persons. The anonymous baseline has no feature at "
            "step 0.",
            gained,
            GAIN,
            1,
        ),
        ("What the extended set gains, average precision", "As above.", gained, f"{GAIN}{AP}", 1),
    ]
    found = [
        Table.of(
            title,
            note,
            ("row", *steps),
            tuple(
                (rows[row], *(_cell(evidence, row, f"{column}{step}", digits) for step in steps))
                for row in shown_rows
            ),
        )
        for title, note, shown_rows, column, digits in tables
        if shown_rows
    ]
    return [*found, _without_skill(evidence, there, steps)]


def _without_skill(evidence: Evidence, rows: Sequence[str], steps: Sequence[str]) -> Table:
    lines = []
    for setting in SETTINGS:
        row = next((one for one in rows if one.endswith(f"-{setting}")), None)
        if row is not None:
            for column, title in (
                (BASE, "purchase sessions, %"),
                (ALWAYS, "F1 of calling each a purchase, %"),
            ):
                cells = (_cell(evidence, row, f"{column}{step}", 1) for step in steps)
                lines.append((f"{setting}: {title}", *cells))
    return Table.of(
        "Without skill",
        "An F1 of a sample rich in purchases is high whatever the model; average precision without skill is the "
        "share of purchase sessions.",
        ("", *steps),
        tuple(lines),
    )


def _cell(evidence: Evidence, row: str, column: str, decimals: int) -> str:
    return shown(evidence, (row, column), decimals) if known(evidence, [(row, column)]) else "–"
