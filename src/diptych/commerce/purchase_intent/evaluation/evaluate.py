"""Evaluate: every model on every feature set, setting and step, in cross-validation (thesis section 6.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from diptych.commerce.purchase_intent.evaluation.measures import (
    Persons,
    average_precision,
    best_threshold,
    fit_platt,
    log_odds,
)
from diptych.commerce.purchase_intent.evaluation.result import (
    RESULTS,
    Evaluation,
    FoldImportance,
    FoldResult,
    FoldScores,
    Protocol,
    Results,
    Unit,
    folds_of,
    gains_of,
    importance_rows,
    pool,
    summarise,
)
from diptych.commerce.purchase_intent.features.fitting import Feature, FittedFeatures, fit_features
from diptych.commerce.purchase_intent.features.table import FeatureTable, open_features
from diptych.commerce.purchase_intent.models import MODELS, FittedModel, fit_model
from diptych.commerce.purchase_intent.options import EvaluateOptions
from diptych.commerce.purchase_intent.splits import SPLITS, Fold, split_input
from diptych.core.context import check_stop, task
from diptych.core.errors import (
    DataError,
    MismatchError,
    NumericalError,
    StorageError,
    UnknownNameError,
    UsageError,
)
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint_arrays
from diptych.core.job import Job
from diptych.core.version import __version__
from diptych.metrics.bootstrap import Bootstrap

Page = Callable[[Evaluation], object]
"""Writes what belongs to an evaluation's folder besides, before that is finished."""

PRESETS: Mapping[str, tuple[int, tuple[int, ...] | None]] = {"paper": (10, None), "fast": (5, (0, 1, 5, 10))}
"""Folds where the split makes equal ones, and steps of a table of steps, all when None; models declare theirs."""

_ORDER = (
    "random-forest logistic-regression k-nearest svm neural-network gradient-boosting hist-gradient-boosting"
)
"""Models in the order of thesis section 6.5; any other comes after them."""

REPEATS = 3
"""Permutations of every feature, in every fold."""

_INNER_FOLDS = 5
"""Of a training part, one in so many is held back for the threshold and the calibration."""


def make_folds(features: FeatureTable, protocol: Protocol) -> list[Fold]:
    """Return the folds of all sessions of a table; every population's are made of them."""
    way = SPLITS.get(protocol.split)
    if way.name == "time" and not features.has_times:
        raise UsageError("the table does not say when sessions were", "--split random")
    if not features.labels.any() or features.labels.all():
        what = "every session ends" if len(features) and features.labels.all() else "no session ends"
        raise DataError(f"{what} in a purchase: nothing can be trained", "import more of the log")
    return way.folds(split_input(features), protocol.folds, protocol.seed)


def _inside(rows: np.ndarray, population: np.ndarray) -> np.ndarray:
    """Return those of rising ``rows`` that are in a rising ``population``."""
    return np.intersect1d(rows, population, assume_unique=True)


Plan = tuple[list[Unit], list[dict[str, Any]]]
"""Settings, sets and steps that can be evaluated, as their first folds; and those left out, with the reason."""


def plan_of(features: FeatureTable, folds: Sequence[Fold], protocol: Protocol) -> Plan:
    """Return what of a protocol's grid can be evaluated."""
    cells = [(setting, step) for setting in protocol.settings for step in protocol.steps]
    reasons = {(setting, step): _reason(features, folds, setting, step) for setting, step in cells}
    left_out = [{"setting": one, "step": step, "reason": why} for (one, step), why in reasons.items() if why]
    units = [
        Unit(setting, feature_set, step)
        for setting in protocol.settings
        for feature_set in protocol.sets
        for step in protocol.steps
        if not reasons[setting, step]
    ]
    if not units:
        first = "{setting}, step {step}: {reason}".format(**left_out[0])
        raise DataError(f"nothing can be evaluated: {first}", "import more of the log")
    return units, left_out


def _reason(features: FeatureTable, folds: Sequence[Fold], setting: str, step: int) -> str:
    """Return why a setting and step cannot be evaluated; nothing where it can."""
    population = features.population(setting, step)
    parts = [(_inside(fold.train, population), _inside(fold.test, population)) for fold in folds]
    tested = np.concatenate([test for _, test in parts])
    if not len(tested):
        return "no session to test on" if len(population) else "no session"
    bought = int(features.labels[tested].sum())
    if not 0 < bought < len(tested):
        return f"{bought:,} purchases among {len(tested):,} test sessions"
    untrained = [number for number, (train, test) in enumerate(parts, 1) if len(test) and not len(train)]
    return f"no session to train fold {untrained[0]} on" if untrained else ""


@dataclass(frozen=True, eq=False)
class _Part:
    """Features fitted on some sessions, as matrices of those and of others."""

    fitted: FittedFeatures
    train: np.ndarray
    train_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray

    def fit(self, name: str, how: Protocol) -> FittedModel:
        """Fit a model on the training sessions."""
        return fit_model(name, self.train, self.train_labels, balanced=how.balanced, seed=how.seed)


@dataclass(frozen=True, eq=False)
class Work:
    """What every unit of a grid needs: the table, the folds of all its sessions, and what is done."""

    features: FeatureTable
    folds: Sequence[Fold]
    protocol: Protocol

    @classmethod
    def begin(cls, features: FeatureTable | Path, protocol: Protocol) -> Work:
        """Prepare a process, which opens the table itself."""
        table = open_features(features) if isinstance(features, Path) else features
        return cls(table, make_folds(table, protocol), protocol)

    def run(self, unit: Unit) -> FoldResult:
        """Fit every model of a unit: features on its training part alone, then model after model."""
        how, scores, importance = self.protocol, {}, None
        population, fold = self.features.population(unit.setting, unit.step), self.folds[unit.fold]
        train, test = _inside(fold.train, population), _inside(fold.test, population)
        outer = self._part(unit, train, test)
        inner = self._inner(unit, train) if how.inner else ""
        for name in how.models:
            check_stop("stopped: finished folds are kept")
            fitted = outer.fit(name, how)
            raw = fitted.scores(outer.test)
            calibrated, threshold, reason = _calibrated(fitted, raw, outer, inner, how)
            scores[name] = FoldScores(
                test, raw, calibrated, threshold, fitted.reason, reason, fitted.warnings
            )
            if name == how.importance_model:
                chosen, owners, seed = outer.fitted.features, outer.fitted.owners, [how.seed, unit.fold]
                importance = importance_of(fitted, chosen, owners, outer.test, outer.test_labels, seed)
        return FoldResult(scores, importance)

    def _part(self, unit: Unit, train: np.ndarray, test: np.ndarray) -> _Part:
        table = self.features
        view, others = table.at(train, unit.step), table.at(test, unit.step)
        fitted = fit_features(table.features(unit.setting, unit.feature_set, unit.step), view)
        given, wanted = table.labels[train], table.labels[test]
        return _Part(fitted, fitted.matrix(view), given, fitted.matrix(others), wanted)

    def _inner(self, unit: Unit, train: np.ndarray) -> _Part | str:
        """Return the training part divided in the same way, features fitted anew; or why it cannot be."""
        split, given = SPLITS.get(self.protocol.split), split_input(self.features).take(train)
        try:
            fold = split.folds(given, min(_INNER_FOLDS, split.default_folds), self.protocol.seed)[0]
        except DataError as error:
            return f"the training part cannot be divided: {error.message}"
        return self._part(unit, train[fold.train], train[fold.test])


def _calibrated(
    fitted: FittedModel, raw: np.ndarray, outer: _Part, inner: _Part | str, how: Protocol
) -> tuple[np.ndarray, float, str]:
    """Return probabilities, the threshold on them, and why there are none.

    A model of the same kind is fitted without the part that is held back; the sigmoid and the threshold
    that suit its scores there are taken over.
    """
    none = np.full(len(raw), np.nan)
    if how.inner and fitted.constant is not None:
        # the share of purchases; of all constants, F1 likes best to buy always
        share = float(outer.train_labels.mean())
        return np.full(len(raw), share), share, ""
    if isinstance(inner, str):
        return none, np.nan, inner
    model = inner.fit(fitted.name, how)
    if model.constant is not None:
        return none, np.nan, f"inside the training part: {model.reason}"
    x = log_odds(model.scores(inner.test), model.model)
    try:
        platt = fit_platt(x, inner.test_labels)
    except DataError as error:
        return none, np.nan, error.message
    threshold = best_threshold(platt.probabilities(x), inner.test_labels)
    return platt.probabilities(log_odds(raw, fitted.model)), threshold, ""


def importance_of(
    fitted: FittedModel,
    features: Sequence[Feature],
    owners: Sequence[str],
    X: np.ndarray,
    labels: np.ndarray,
    seed: Sequence[int],
) -> FoldImportance:
    """Return what every feature is worth to a fitted model: by impurity, and by permutation of held-out values.

    Impurity (thesis Figure 6.6) is counted on training sessions and favours features with many values. Permutation
    asks what the model loses on sessions that it has not seen, when a feature says of each what is true of another.
    A feature's columns (``owners`` names the feature of each), e.g. those of its categories, are taken together in
    both; scikit-learn's ``permutation_importance`` takes columns one by one.

    Sources: Breiman, Random forests, Machine Learning 2001; Strobl et al., Bias in random forest variable importance
    measures, BMC Bioinformatics 2007.
    """
    names = [feature.name for feature in features]
    columns = [np.flatnonzero([owner == name for owner in owners]) for name in names]
    drops = np.full((len(names), REPEATS), np.nan)
    if labels.any():
        whole, random = average_precision(fitted.scores(X), labels), np.random.default_rng(list(seed))
        for number, repeat in np.ndindex(drops.shape):
            changed, mine = X.copy(), columns[number]
            changed[:, mine] = X[np.ix_(random.permutation(len(X)), mine)]
            drops[number, repeat] = whole - average_precision(fitted.scores(changed), labels)
    impurity = np.full(len(names), np.nan)
    if fitted.pipeline is not None and fitted.model.has_impurity:
        impurity = np.array([fitted.pipeline[-1].feature_importances_[mine].sum() for mine in columns])
    dynamic = np.array([feature.dynamic for feature in features], dtype=bool)
    return FoldImportance(tuple(names), dynamic, impurity, drops)


def write_results(
    folder: Path, features: FeatureTable, plan: Plan, protocol: Protocol, how: Bootstrap, page: Page | None
) -> Evaluation:
    """Measure what is kept of every cell, unless that was done, and write the page, then the numbers."""
    intervals = {"samples": how.samples, "confidence": how.confidence, "seed": how.seed}
    try:
        results = Results.open(folder / RESULTS, of=protocol.key)
    except StorageError:
        results = None  # computed again from the folds
    if results is None or results.intervals != intervals:
        results = replace(_measure(folder, features, plan, protocol, how), intervals=intervals)
        (folder / RESULTS).unlink(missing_ok=True)
    found = Evaluation(folder, protocol, results)
    if page is not None:  # before the results, by which the folder is finished
        page(found)
    if not (folder / RESULTS).exists():
        results.save(folder / RESULTS, of=protocol.key)
    return found


def _measure(folder: Path, features: FeatureTable, plan: Plan, protocol: Protocol, how: Bootstrap) -> Results:
    persons, job = Persons.of(features.persons, how), _job(folder, protocol)
    cells: list[dict[str, Any]] = []
    samples: list[Mapping[str, np.ndarray]] = []
    importance: list[dict[str, Any]] = []
    units, left_out = plan
    with task("measuring", len(units) * len(protocol.models), "cells") as bar:
        for unit in units:
            folds = folds_of(job, unit, protocol.folds)
            for name in protocol.models:
                model = MODELS.get(name)
                output = "probability" if protocol.scorer else model.output
                pooled = pool([one.scores[name] for one in folds], name, features.labels, output)
                samples.append(pooled.resampled(persons))
                weighting = model.weighting if protocol.balanced else "none"
                cells.append(summarise(unit, pooled, weighting, persons, samples[-1]))
                bar.advance(1, f"{unit.setting} {unit.feature_set}: {name}")
            parts = [one.importance for one in folds if one.importance is not None]
            importance += importance_rows(unit, parts, protocol.importance_model)
    gains = gains_of(cells, samples, persons)
    return Results({}, cells, gains, importance, left_out, _notes(cells), features.labels, features.persons)


def _notes(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what went not as it should, counted over the grid."""
    notes = []
    for name, what in (
        ("constant_folds", "have folds in which the model is a constant"),
        ("uncalibrated_folds", "have folds whose probabilities could not be calibrated"),
    ):
        concerned = [cell for cell in cells if cell[name]]
        if concerned:
            reasons = sorted({reason for cell in concerned for reason in cell["remarks"]})
            notes.append(f"{len(concerned)} of {len(cells)} cells {what}: {'; '.join(reasons[:3])}")
    unconverged = sum(any("ConvergenceWarning" in one for one in cell["remarks"]) for cell in cells)
    if unconverged:
        notes.append(f"{unconverged} of {len(cells)} cells have models that stopped before they converged")
    return notes


def _job(folder: Path, protocol: Protocol) -> Job[FoldResult]:
    return Job(folder, protocol, FoldResult, noun="folds")


def evaluate(
    features: FeatureTable, folder: Path | str, *, page: Page | None = None, **options: Any
) -> Evaluation:
    """Evaluate models on a table of features, or resume where an earlier call was stopped or killed.

    Every fold is kept as soon as it is there. The numbers do not depend on ``jobs``.

    Args:
        features: the table, in its folder.
        folder: where the evaluation is, or will be.
        page: writes a page into the folder before it is finished.
        options: fields of :class:`~diptych.commerce.purchase_intent.options.EvaluateOptions`.

    Raises:
        UnknownNameError: a name that there is not.
        UsageError: a list without members, a folder of other things, a split by time without times.
        DataError: nothing can be trained.
        MismatchError: the folder holds an evaluation of another protocol.
        StorageError: another process evaluates there just now; or it cannot be written.
        Interrupted: a stop was asked for; the same call resumes.
    """
    sklearn, folder = require("sklearn", "commerce", "evaluating models"), Path(folder)
    given = EvaluateOptions.read(options, "an evaluation")
    (most_folds, some_steps), split = PRESETS[given.preset], SPLITS.get(given.split)
    names = (
        [one.name for one in MODELS if given.preset in one.presets] if given.models is None else given.models
    )
    steps = [step for step in features.steps if some_steps is None or step in some_steps] or features.steps
    if given.steps is not None:
        steps = [int(one) for one in _among("step", map(str, given.steps), list(map(str, features.steps)))]
    protocol = Protocol(
        features=features.fingerprint,
        models=tuple(_some("model", _in_order(names))),
        settings=tuple(_among("setting", given.settings, features.settings)),
        sets=tuple(_among("feature set", given.sets, features.sets)),
        steps=tuple(steps),
        split=split.name,
        folds=given.folds or min(split.default_folds, most_folds),
        scikit_learn=sklearn.__version__,
        **given.model_dump(include={"balanced", "inner", "importance", "seed"}),
    )
    folds = make_folds(features, protocol)
    plan = plan_of(features, folds, protocol)
    protocol = replace(protocol, about=_about(features, folds, protocol))
    units = [unit._replace(fold=fold) for unit in plan[0] for fold in range(len(folds))]
    table = (
        features if given.jobs == 1 or not features.folder.name else features.folder
    )  # a sample has no folder
    _job(folder, protocol).run(
        {unit.key: unit for unit in units},
        Work.run,
        processes=given.jobs,
        setup=Work.begin,
        setup_args=(table, protocol),
    )
    return write_results(folder, features, plan, protocol, Bootstrap(given.samples, seed=given.seed), page)


def _some(kind: str, names: Sequence[Any]) -> Sequence[Any]:
    if not names:
        raise UsageError(f"no {kind} was asked for", f"name a {kind}, or none for the preset's")
    return names


def _among(kind: str, asked: Iterable[str] | None, known: Sequence[str]) -> Sequence[str]:
    """Return what was asked for, in the order of the table."""
    if asked is None:
        return known
    wanted = set(asked)
    for name in sorted(wanted):
        if name not in known:
            raise UnknownNameError(kind, name, known)
    return _some(kind, [name for name in known if name in wanted])


def _in_order(names: Iterable[str]) -> list[str]:
    """Return each model once, in the order of tables."""
    known, order = {MODELS.get(name).name for name in names}, _ORDER.split()
    return sorted(known, key=lambda name: (order.index(name) if name in order else len(order), name))


def _about(features: FeatureTable, folds: Sequence[Fold], protocol: Protocol) -> dict[str, Any]:
    """Return what readers are told of the table, the split and the models."""
    split, labels = SPLITS.get(protocol.split), features.labels
    sizes = [
        {
            "train": len(fold.train),
            "train_purchases": int(labels[fold.train].sum()),
            "test": len(fold.test),
            "test_purchases": int(labels[fold.test].sum()),
            "test_of_persons_in_training": int(
                np.isin(features.persons[fold.test], features.persons[fold.train]).sum()
            ),
        }
        for fold in folds
    ]
    notes = [f"split {split.name}: {split.description}"]
    tested, shared = (sum(size[name] for size in sizes) for name in ("test", "test_of_persons_in_training"))
    if shared:
        notes.append(f"{shared / tested:.1%} of test sessions are of persons with a session in training")
    left = len(features) - sizes[0]["train"] - tested
    if len(sizes) == 1 and left:
        notes.append(f"{left:,} sessions had begun and not ended when the test part began: in neither part")
    models = [MODELS.get(name) for name in protocol.models]
    if names := ", ".join(one.label for one in models if one.output == "decision"):
        notes.append(f"{names}: decisions, from 0 on a purchase; others are probabilities, from 0.5 on")
    names = ", ".join(one.label for one in models if one.weighting == "none")
    if protocol.balanced and names:
        notes.append(f"no weights for classes in {names}: fitted on the sessions as they are")
    return _told(features, protocol, notes, name=split.name, description=split.description, folds=sizes)


def _told(features: FeatureTable, protocol: Protocol, notes: Sequence[str], **split: Any) -> dict[str, Any]:
    table = {
        "name": features.about["name"],
        "line": features.describe(),
        "kind": features.about["kind"],
        "compat": features.compat,
        "fingerprint": features.fingerprint,
    }
    models = [MODELS.get(name) for name in protocol.models]
    return {
        "features": table,
        "diptych": __version__,
        "split": split,
        "models": {one.name: {"label": one.label, "description": one.description} for one in models},
        "notes": [*features.about.get("notes", ()), *notes],
    }


@dataclass(frozen=True, eq=False)
class GivenScores:
    """Probabilities of one setting and step."""

    probabilities: np.ndarray  # (m,) in [0, 1], of the rows of ``features.population(setting, step)``
    threshold: float = float("nan")  # from which on a purchase is predicted, where one was chosen elsewhere


def evaluate_scores(
    features: FeatureTable,
    scores: Mapping[tuple[str, int], GivenScores],
    folder: Path | str,
    *,
    model: str,
    name: str,
    trained_on: str = "",
    feature_set: str | None = None,
    bootstrap: Bootstrap | None = None,
    page: Page | None = None,
) -> Evaluation:
    """Measure given probabilities against what happened; the folder is one of an evaluation."""
    folder = Path(folder)
    if not scores:
        raise DataError(f"{name} gives no scores", "train it on a log with these settings")
    arrays: dict[str, np.ndarray] = {}
    for (setting, step), given in scores.items():
        p, n = given.probabilities, len(features.population(setting, step))
        if p.shape != (n,):
            raise MismatchError(f"{setting}, step {step}: {n:,} sessions and scores of shape {p.shape}")
        wrong = np.flatnonzero(~((p >= 0) & (p <= 1)))
        if len(wrong):
            row = int(wrong[0])
            raise NumericalError(
                f"{setting}, step {step}: the score of row {row} is {p[row]}, no probability"
            )
        arrays |= {f"{setting}/{step}": p, f"{setting}/{step}/threshold": np.asarray(given.threshold)}
    protocol = Protocol(
        features=features.fingerprint,
        models=(MODELS.get(model).name,),
        settings=tuple(one for one in features.settings if any(setting == one for setting, _ in scores)),
        sets=(feature_set or features.sets[-1],),
        steps=tuple(one for one in features.steps if any(step == one for _, step in scores)),
        split="given",
        folds=1,
        balanced=False,
        inner=True,
        importance=False,
        seed=0,
        scikit_learn="",
        scorer=f"{name} ({fingerprint_arrays(arrays)})",
    )
    everything = np.arange(len(features))
    units, left_out = plan_of(features, [Fold(everything, everything)], protocol)
    units = [unit for unit in units if (unit.setting, unit.step) in scores]
    left_out = [one for one in left_out if (one["setting"], one["step"]) in scores]
    if not units:
        raise DataError(f"no setting and step that {name} scores has purchases", "score a log that has some")
    own = trained_on == features.fingerprint
    notes = ["the scorer was trained on these very sessions: these numbers are no test of it"] if own else []
    split = {"name": "given", "description": "all sessions of the table", "folds": []}
    protocol = replace(protocol, about=_told(features, protocol, notes, **split))
    folds = {}
    for unit in units:
        given, rows = scores[unit.setting, unit.step], features.population(unit.setting, unit.step)
        p = given.probabilities
        folds[unit.key] = FoldResult({model: FoldScores(rows, p, p, given.threshold)})
    _job(folder, protocol).run(folds, _as_given)
    return write_results(folder, features, (units, left_out), protocol, bootstrap or Bootstrap(), page)


def _as_given(fold: FoldResult) -> FoldResult:
    return fold
