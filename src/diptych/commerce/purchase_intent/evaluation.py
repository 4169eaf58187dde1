"""Evaluate every model on every feature set, setting and step, in cross-validation (thesis section 6.5).

A folder has ``intent_evaluation.json``, its protocol, ``units/``, every model's predictions, and last ``results.json``.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.commerce.purchase_intent import measures
from diptych.commerce.purchase_intent.features.fitting import FittedFeatures
from diptych.commerce.purchase_intent.features.table import FeatureTable, open_features
from diptych.commerce.purchase_intent.measures import RESAMPLED, Persons, Ranking
from diptych.commerce.purchase_intent.models import (
    MODELS,
    SPLITS,
    FittedModel,
    Fitting,
    Fold,
    fit_platt,
    log_odds,
)
from diptych.commerce.purchase_intent.options import EvaluateOptions
from diptych.commerce.purchase_intent.shown import evaluation_tables, left_out_lines, step_text
from diptych.core.artifact import Artifact
from diptych.core.context import check_stop, track
from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint
from diptych.core.job import Job
from diptych.core.table import Table, Tabular
from diptych.core.version import __version__
from diptych.metrics.bootstrap import Bootstrap
from diptych.metrics.paired import paired

PREDICTION = np.dtype(
    [(name, "f8") for name in ("score", "p", "threshold")] + [("row", "i8"), ("fold", "i8")]
)
"""A test session of a table: its score, calibrated probability and the threshold of that (NaN where there is none)."""

REPEATS = 3  # permutations of every feature, in every fold
_PRESETS = {
    "paper": (10, range(-1, 99)),
    "fast": (5, (-1, 0, 1, 5, 10)),
}  # folds, steps; models declare theirs
_INNER_FOLDS = 5  # of a training part, one in so many is held back for the threshold and the calibration
_FLIPS = 2000  # of the test of extended against baseline features
_MOST_REMARKS = 9
_EVALUATE = "diptych intent evaluate FEATURES --out EVALUATION"

Row = dict[str, Any]
Measured = tuple[Row, np.ndarray, dict[str, np.ndarray]]  # a cell, its predictions, and its resamples
Given = tuple[FeatureTable, Sequence[Fold], EvaluateOptions]


class Unit(NamedTuple):
    """A model at a setting, feature set and step."""

    setting: str
    set: str
    step: int
    model: str

    @property
    def key(self) -> str:
        return f"{self.setting}-{self.set}-{step_text(self.step)}-{self.model}"


@dataclass(frozen=True, eq=False)
class UnitResult(Artifact, kind="intent_unit"):
    """The unit that is kept: what a model predicts for the test parts of all folds."""

    predictions: np.ndarray  # (m,) of PREDICTION, by row
    importance: (
        np.ndarray
    )  # (folds, features, 1 + repeats): by impurity, then average precision lost by permutation
    remarks: dict[str, int]  # what went not as it should, in how many folds


@dataclass(frozen=True)
class IntentProtocol(Artifact, kind="intent_evaluation", version=3, recreate=_EVALUATE):
    """The grid of an evaluation, and how it is evaluated."""

    features: str  # fingerprint of the table
    options: Row  # of EvaluateOptions, with what a preset stands for
    scikit_learn: str  # its version
    about: Row = field(default_factory=dict, compare=False)  # the table, notes for readers

    @property
    def key(self) -> str:
        return fingerprint(self.features, self.options, self.scikit_learn)


@dataclass(frozen=True, eq=False)
class Evaluation(Tabular, Artifact, kind="results", version=4, recreate=_EVALUATE):
    """A finished evaluation: its folder, its protocol and its numbers."""

    protocol: IntentProtocol
    samples: int  # resamples of persons, of which intervals are
    cells: list[Row]  # per setting, set, step and model; NAME_gain: the extended set's less the baseline's
    importance: list[Row]  # one per setting, set, step and feature
    left_out: list[Row]  # settings and steps that could not be evaluated, each with its reason
    folder: Path = field(init=False, default=Path(), compare=False)

    @property
    def notes(self) -> list[str]:
        """Notes for a reader of the numbers; last what went not as it should, counted over the grid."""
        counts = Counter(remark for cell in self.cells for remark in cell["remarks"])
        most, n = counts.most_common(_MOST_REMARKS), len(self.cells)
        return [*self.protocol.about["notes"], *(f"{one} of {n} cells: {remark}" for remark, one in most)]

    def predictions(self, setting: str, feature_set: str, step: int, model: str) -> np.ndarray:
        """Return what a model predicts for every test session, (m,) of :data:`PREDICTION`."""
        job = Job(self.folder, self.protocol, UnitResult)
        return UnitResult.open(job.path(Unit(setting, feature_set, step, model).key)).predictions

    def tables(self) -> list[Table]:
        return evaluation_tables(self.cells, self.importance)

    def lines(self) -> list[str]:
        return [*left_out_lines(self.left_out), *self.notes, self.line()]

    def line(self) -> str:
        how, line = self.protocol.options, self.protocol.about["features"]["line"]
        names = ("split", "folds", "balanced", "inner", "seed")
        line += "".join(f"; {name} {str(how[name]).lower()}" for name in names)
        line += f"; scikit-learn {self.protocol.scikit_learn}"
        return f"{line}; 95 % intervals of {self.samples:,} resamples of persons"


def evaluate(
    features: FeatureTable,
    folder: Path | str,
    *,
    page: Callable[[Evaluation], object] = lambda found: None,
    **options: Any,
) -> Evaluation:
    """Evaluate models on a table of features, or resume where an earlier call was stopped or killed.

    Every model is kept as soon as it is there. The numbers do not depend on ``jobs``.

    Args:
        page: writes a page into the folder before the evaluation counts as finished.
        options: fields of :class:`~diptych.commerce.purchase_intent.options.EvaluateOptions`.

    Raises:
        MismatchError: the folder holds an evaluation of another protocol.
    """
    given, folder = EvaluateOptions.read(options, "an evaluation"), Path(folder)
    how, results = _resolved(features, given), folder / Evaluation.marker()
    folds = _folds(features, how)
    reasons, tested = dict[tuple[str, int], str](), np.concatenate([fold.test for fold in folds])
    for of in product(how.settings or (), how.steps or ()):
        labels = features.labels[np.intersect1d(tested, features.population(*of))]
        n, bought = len(labels), labels.sum()
        reasons[of] = "" if 0 < bought < n else f"{bought:,} purchases among {n:,} test sessions"
    left_out = refused(reasons, "evaluated")
    version = require("sklearn", "commerce", "evaluating models").__version__
    about, plan = _about(features, folds, how), how.model_dump(mode="json")
    job = Job(folder, IntentProtocol(features.fingerprint, plan, version, about), UnitResult, noun="models")
    parts = product(how.settings or (), how.sets or (), how.steps or (), how.models or ())
    grid = [unit for unit in map(Unit._make, parts) if not reasons[unit.setting, unit.step]]
    units = {unit.key: unit for unit in grid}
    job.run(
        units, unit_result, processes=given.jobs, setup=_begin, setup_args=(features.shared(given.jobs), how)
    )
    found = Evaluation.open(folder) if results.exists() else None
    if found is None or found.samples != given.samples:
        results.unlink(missing_ok=True)
        persons = Persons(features.persons, Bootstrap(given.samples, seed=given.seed))
        found = Evaluation(
            IntentProtocol.open(folder), given.samples, *_measured(job, features, grid, persons), left_out
        )
    page(found)
    if not results.exists():
        found.save(results)  # by which the folder is finished
    return Evaluation.open(folder)


def _begin(features: FeatureTable | Path, how: EvaluateOptions) -> Given:
    table = open_features(features)
    return table, _folds(table, how), how


def _resolved(features: FeatureTable, given: EvaluateOptions) -> EvaluateOptions:
    """Return the options with what the preset stands for, without those that no fold depends on."""
    folds, steps = _PRESETS[given.preset]
    models = [one.name for one in MODELS if given.preset in one.presets]
    chosen = {
        "models": chosen_of("model", models if given.models is None else given.models, MODELS.names()),
        "settings": chosen_of("setting", given.settings, features.settings),
        "sets": chosen_of("feature set", given.sets, features.sets),
        "steps": chosen_of(
            "step", given.steps or [one for one in features.steps if one in steps], features.steps
        ),
        "folds": given.folds or min(SPLITS.get(given.split).default_folds, folds),
    }
    same = EvaluateOptions().model_dump(include={"preset", "samples", "jobs"})
    return given.model_copy(update=chosen | same)


def chosen_of(kind: str, requested: Iterable[Any] | None, known: Sequence[Any]) -> list[Any]:
    """Return the requested members, all where None, in the known order; unknown ones are refused."""
    chosen = set(known if requested is None else requested)
    if not chosen:
        raise UsageError(f"no {kind} was requested", f"name a {kind}, or none for the preset's")
    for name in sorted(chosen - set(known)):
        raise UnknownNameError(kind, str(name), map(str, known))
    return [name for name in known if name in chosen]


def refused(reasons: Mapping[tuple[str, int], str], what: str) -> list[Row]:
    """Return the settings and steps of which nothing can be made, and why; DataError where they are all."""
    found = [{"setting": one, "step": step, "reason": why} for (one, step), why in reasons.items() if why]
    if all(reasons.values()):
        first = "{setting}, step {step}: {reason}".format(**found[0])
        raise DataError(f"nothing can be {what}: {first}", "import more of the log")
    return found


def _folds(features: FeatureTable, how: EvaluateOptions) -> list[Fold]:
    if how.split == "time" and not features.about["has_times"]:
        raise UsageError("the table does not say when sessions were", "--split random")
    return SPLITS.get(how.split).folds(features, how.folds or 1, how.seed)


def _about(features: FeatureTable, folds: Sequence[Fold], how: EvaluateOptions) -> Row:
    """Return the table, and what a reader has to know of it, of the split and of the models."""
    split, persons = SPLITS.get(how.split), features.persons
    trained, tested = (sum(map(len, parts)) for parts in zip(*folds, strict=True))
    shared = sum(np.isin(persons[test], persons[train]).sum() for train, test in folds) / tested
    notes = [*features.about.get("notes", ()), f"split {split.name}: {split.description}"]
    part = f"trained on {trained / len(folds):,.0f} sessions each, tested on {tested:,} in all"
    notes += [f"{part}; {shared:.1%} of test sessions are of persons with a session in training"]
    notes += [f"{one.label}: {one.description}" for one in map(MODELS.get, how.models or ())]
    table = {name: features.about[name] for name in ("name", "kind")}
    table |= {"line": features.describe(), "compat": features.compat}
    return {"features": table, "diptych": __version__, "notes": notes}


def unit_result(given: Given, unit: Unit) -> UnitResult:
    features, folds, how = given
    foremost = min(map(MODELS.get, how.models or ()), key=lambda one: not one.has_impurity).name
    population, place = (
        features.population(unit.setting, unit.step),
        Fitting(features, *unit, how.balanced, how.seed),
    )
    predictions, importance, remarks = [], [], Counter[str]()
    for number, fold in enumerate(folds):
        check_stop("stopped: finished models are kept")
        train, test = (np.intersect1d(part, population, assume_unique=True) for part in fold)
        fitted, model = place.fit(train)
        X = fitted.matrix(features.at(test, unit.step))
        found = np.empty(len(test), PREDICTION)
        found["row"], found["fold"], found["score"] = test, number, model.scores(X)
        found["p"], found["threshold"], why_not = _calibrated(place, model, found["score"], train, how)
        if how.importance and unit.model == foremost:
            seed = int(np.random.SeedSequence([how.seed, number]).generate_state(1)[0])
            importance.append(importance_of(model, fitted, X, features.labels[test], seed))
        noted = {"the model is a constant": model.reason, "not calibrated": why_not}
        remarks.update([f"{name}: {why}" for name, why in noted.items() if why] + list(model.warnings))
        predictions.append(found)
    found = np.concatenate(predictions)
    kept = np.array(importance) if importance else np.empty((0, 0, 1 + REPEATS))
    return UnitResult(found[np.argsort(found["row"], kind="stable")], kept, dict(remarks))


def _calibrated(
    place: Fitting, model: FittedModel, raw: np.ndarray, train: np.ndarray, how: EvaluateOptions
) -> tuple[np.ndarray | float, float, str]:
    """Return probabilities and their threshold, fitted on a held-back part of training; and why there are none."""
    split, labels = SPLITS.get(how.split), place.table.labels
    if not how.inner:
        return np.nan, np.nan, ""
    if model.constant is not None:
        share = float(labels[train].sum() / max(1, len(train)))
        return share, share, ""  # of all constants, F1 likes best to buy always
    try:
        number = min(_INNER_FOLDS, split.default_folds)
        held, x = place.cross_fit(split.folds(place.table, number, how.seed, train)[:1])
        platt = fit_platt(x, labels[held])
    except DataError as error:
        return np.nan, np.nan, f"inside the training part: {error.message}"
    threshold = measures.best_threshold(platt.probabilities(x), labels[held])
    return platt.probabilities(log_odds(raw, model.model)), threshold, ""


def importance_of(
    model: FittedModel, fitted: FittedFeatures, X: np.ndarray, labels: np.ndarray, seed: int
) -> np.ndarray:
    """Return what every feature is worth to a model: by impurity, and by permutation of held-out values.

    A feature's columns are taken together in both: what scikit-learn permutes are the numbers of the sessions that a
    feature is taken from. Sources: Breiman, Random forests, Machine Learning 2001; Strobl et al., Bias in random forest
    variable importance measures, BMC Bioinformatics 2007.
    """
    names, columns = [one.name for one in fitted.features], np.arange(X.shape[1])
    owner = np.array([names.index(one) for one in fitted.owners], dtype=np.int64)
    found = np.full((len(names), 1 + REPEATS), np.nan)
    if labels.any() and names:
        rows = np.tile(np.arange(len(X))[:, None], (1, len(names)))

        def precision(_: object, taken: np.ndarray, truth: np.ndarray) -> float:
            ranking = Ranking(model.scores(X[taken[:, owner], columns]), truth)
            return float(ranking.values()["average_precision"])

        permuted = require("sklearn.inspection", "commerce", "importances").permutation_importance
        how = {"scoring": precision, "n_repeats": REPEATS, "random_state": seed}
        found[:, 1:] = permuted(model.pipeline, rows, labels, **how).importances
    if model.pipeline is not None and model.model.has_impurity:
        found[:, 0] = np.bincount(owner, model.pipeline[-1].feature_importances_, len(names))
    return found


def _measured(
    job: Job[UnitResult], table: FeatureTable, grid: Sequence[Unit], persons: Persons
) -> tuple[list[Row], list[Row]]:
    measured, importance = {}, []
    for unit in track(grid, "measuring", len(grid), "models, settings and steps"):
        result = UnitResult.open(job.path(unit.key))
        measured[unit] = _cell(unit, result, table.labels, persons)
        importance += _importance_rows(unit, result, table)
    _add_gains(measured, table.labels, persons)
    return [cell for cell, *_ in measured.values()], importance


def _cell(unit: Unit, result: UnitResult, labels: np.ndarray, persons: Persons) -> Measured:
    """Measure all folds' test sessions together, less biased than a mean over folds (Forman, Scholz, 2010)."""
    model, found = MODELS.get(unit.model), result.predictions
    scores, labels, known = found["score"], labels[found["row"]], ~np.isnan(found["p"])
    predicted = {"f1": (scores >= model.threshold, labels)}
    if known.any():
        predicted["best_f1"] = (found["p"] >= found["threshold"], labels & known)
    samples = persons.of_scores(found["row"], scores, labels, predicted)
    raw = measures.of_probabilities(scores, labels) if model.output == "probability" else {}
    calibrated = measures.of_probabilities(found["p"][known], labels[known]) if known.any() else {}
    thresholds = found["threshold"][np.unique(found["fold"], return_index=True)[1]]
    cell = {
        **unit._asdict(),
        "label": model.label,
        **measures.measure(scores, labels, model.threshold),
        "best_f1": float(measures.f1(*predicted["best_f1"])) if known.any() else None,
        "threshold": float(np.nanmean(thresholds)) if known.any() else None,
        "brier_prior": float(labels.mean() * (1 - labels.mean())),
        **{one: raw.get(one) for one in ("brier", "reliability")},
        **{f"{one}_calibrated": calibrated.get(one) for one in ("brier", "reliability")},
        "remarks": result.remarks,
        **persons.ends(samples, *RESAMPLED, "best_f1"),
    }
    return {key: None if value != value else value for key, value in cell.items()}, found, samples


def _add_gains(measured: Mapping[Unit, Measured], labels: np.ndarray, persons: Persons) -> None:
    """Add the extended set's gains over the baseline, by resamples of persons; of the Brier score tested, corrected."""
    tested: list[tuple[Row, np.ndarray, np.ndarray]] = []
    for unit, (cell, p, samples) in measured.items():
        base = unit._replace(set="baseline")
        if unit.set != "extended" or base not in measured:
            continue
        theirs, other, others = measured[base]
        for measure in (*RESAMPLED, "best_f1"):
            if None not in (cell[measure], theirs[measure]):
                gain = f"{measure}_gain"
                cell[gain] = cell[measure] - theirs[measure]
                more = {gain: samples[measure] - others[measure]} if samples else {}
                cell |= persons.ends(more, gain)
        errors = [(one["p"] - labels[one["row"]]) ** 2 for one in (p, other)]
        if not np.isnan(errors).any():
            tested.append((cell, errors[0] - errors[1], persons.persons[p["row"]]))
    columns, clusters = [[one] for _, one, _ in tested], [one for _, _, one in tested]
    tests = paired(columns, clusters, how=persons.how, flips=_FLIPS)
    for (cell, *_), test in zip(tested, tests, strict=True):
        values = {"": test.difference, "_low": test.low, "_high": test.high, "_p": test.corrected}
        cell |= {f"brier_calibrated_gain{name}": value for name, value in values.items()}


def _importance_rows(unit: Unit, result: UnitResult, table: FeatureTable) -> list[Row]:
    """Return one row per feature, the most important by permutation first: means over folds."""
    if not len(result.importance):
        return []
    worth = np.ma.masked_invalid(np.stack([*result.importance], axis=1))
    drops = worth[..., 1:].mean(axis=(1, 2)), worth[..., 1:].std(axis=(1, 2), ddof=1)
    columns = [one.tolist() for one in (worth[..., 0].mean(axis=1), *drops)]
    names, rows = ("impurity", "permutation", "permutation_sd"), []
    for feature, *of in zip(table.features(*unit[:3]), *columns, strict=False):
        named = {"feature": feature.name, "dynamic": feature.dynamic}
        rows.append(unit._asdict() | named | dict(zip(names, of, strict=True)))
    return sorted(rows, key=lambda row: (-(row["permutation"] or 0.0), row["feature"]))
