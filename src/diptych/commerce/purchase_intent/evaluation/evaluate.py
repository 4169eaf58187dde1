"""Evaluate: every model on every feature set, setting and step, in cross-validation (thesis section 6.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from diptych.commerce.purchase_intent.evaluation import measures
from diptych.commerce.purchase_intent.evaluation.fitting import Fitting
from diptych.commerce.purchase_intent.evaluation.measures import RESAMPLED, Persons
from diptych.commerce.purchase_intent.evaluation.result import (
    RESULTS,
    Evaluation,
    FoldResult,
    FoldScores,
    Protocol,
    Unit,
    folds_of,
)
from diptych.commerce.purchase_intent.features.fitting import FittedFeatures
from diptych.commerce.purchase_intent.features.table import FeatureTable, open_features
from diptych.commerce.purchase_intent.models import MODELS, FittedModel
from diptych.commerce.purchase_intent.options import EvaluateOptions
from diptych.commerce.purchase_intent.splits import SPLITS, Fold, SplitInput
from diptych.core.context import check_stop, track
from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.core.extras import require
from diptych.core.job import Job
from diptych.core.version import __version__
from diptych.metrics.bootstrap import Bootstrap
from diptych.metrics.paired import paired

PRESETS: dict[str, tuple[int, tuple[int, ...] | None]] = {"paper": (10, None), "fast": (5, (0, 1, 5, 10))}
"""Folds where the split makes equal ones, and steps of a table of steps, all when None; models declare theirs."""

# Thesis 6.5:
_ORDER = ["random-forest", "logistic-regression", "k-nearest", "svm", "neural-network", "gradient-boosting"]
REPEATS = 3  # permutations of every feature, in every fold
_INNER_FOLDS = 5  # of a training part, one in so many is held back for the threshold and the calibration
_FLIPS = 2000  # of the test of extended against baseline features
_MOST_REMARKS = 9


def evaluate(
    features: FeatureTable,
    folder: Path | str,
    *,
    page: Callable[[Evaluation], object] = lambda found: None,
    **options: Any,
) -> Evaluation:
    """Evaluate models on a table of features, or resume where an earlier call was stopped or killed.

    Every fold is kept as soon as it is there. The numbers do not depend on ``jobs``.

    Args:
        features: the table, in its folder.
        folder: where the evaluation is, or will be.
        page: writes a page into the folder before it is finished.
        options: fields of :class:`~diptych.commerce.purchase_intent.options.EvaluateOptions`.

    Raises:
        MismatchError: the folder holds an evaluation of another protocol.
        Interrupted: a stop was requested; the same call resumes.
    """
    given, folder = EvaluateOptions.read(options, "an evaluation"), Path(folder)
    protocol = _protocol(features, given)
    folds = _folds(features, protocol)
    places = [(setting, step) for setting in protocol.settings for step in protocol.steps]
    reasons = {place: _why_not(features, folds, *place) for place in places}
    left_out = [{"setting": one, "step": step, "reason": why} for (one, step), why in reasons.items() if why]
    if all(reasons.values()):
        first = "{setting}, step {step}: {reason}".format(**left_out[0])
        raise DataError(f"nothing can be evaluated: {first}", "import more of the log")
    grid = [
        Unit(setting, one, step)
        for setting in protocol.settings
        for one in protocol.sets
        for step in protocol.steps
    ]
    grid = [unit for unit in grid if not reasons[unit.setting, unit.step]]
    protocol = replace(protocol, about=_about(features, folds, protocol))
    job = Job(folder, protocol, FoldResult, noun="folds")
    keyed = {
        one.key: one for unit in grid for one in (unit._replace(fold=fold) for fold in range(len(folds)))
    }
    # a sample has no folder
    table = features if given.jobs == 1 or not features.folder.name else features.folder
    job.run(keyed, Work.run, processes=given.jobs, setup=Work.begin, setup_args=(table, protocol))
    how = Bootstrap(given.samples, seed=given.seed)
    intervals = {"samples": how.samples, "confidence": how.confidence, "seed": how.seed}
    found = Evaluation.open(folder) if (folder / RESULTS).exists() else None
    if found is None or found.intervals != intervals:
        (folder / RESULTS).unlink(missing_ok=True)
        measured = _measured(job, features, protocol, grid, Persons(features.persons, how))
        found = Evaluation(protocol, intervals, *measured[:3], left_out, measured[3])
        object.__setattr__(found, "folder", folder)
    page(found)
    if not (folder / RESULTS).exists():
        found.save(folder / RESULTS, of=protocol.key)  # by which the folder is finished
    return found


def _protocol(features: FeatureTable, given: EvaluateOptions) -> Protocol:
    (most_folds, some_steps), split = PRESETS[given.preset], SPLITS.get(given.split)
    names = (
        [one.name for one in MODELS if given.preset in one.presets] if given.models is None else given.models
    )
    models = {MODELS.get(name).name for name in names}
    steps = [step for step in features.steps if some_steps is None or step in some_steps] or features.steps
    return Protocol(
        features=features.fingerprint,
        models=chosen_of("model", models, sorted(models, key=lambda one: (*_ORDER, one).index(one))),
        settings=chosen_of("setting", given.settings, features.settings),
        sets=chosen_of("feature set", given.sets, features.sets),
        steps=chosen_of("step", steps if given.steps is None else given.steps, features.steps),
        split=split.name,
        folds=given.folds or min(split.default_folds, most_folds),
        scikit_learn=require("sklearn", "commerce", "evaluating models").__version__,
        **given.model_dump(include={"balanced", "inner", "importance", "seed"}),
    )


def chosen_of(kind: str, requested: Iterable[Any] | None, known: Sequence[Any]) -> tuple[Any, ...]:
    """Return the requested members, all where None, in the known order; unknown ones are refused."""
    chosen = set(known if requested is None else requested)
    if not chosen:
        raise UsageError(f"no {kind} was requested", f"name a {kind}, or none for the preset's")
    for name in sorted(chosen - set(known)):
        raise UnknownNameError(kind, str(name), map(str, known))
    return tuple(name for name in known if name in chosen)


def _folds(features: FeatureTable, protocol: Protocol) -> list[Fold]:
    """Return the folds of all sessions of a table; every population's are made of them."""
    if protocol.split == "time" and not features.about["has_times"]:
        raise UsageError("the table does not say when sessions were", "--split random")
    if not features.labels.any() or features.labels.all():
        what = "every session ends" if len(features) and features.labels.all() else "no session ends"
        raise DataError(f"{what} in a purchase: nothing can be trained", "import more of the log")
    return SPLITS.get(protocol.split).folds(SplitInput.of(features), protocol.folds, protocol.seed)


def _inside(rows: np.ndarray, population: np.ndarray) -> np.ndarray:
    return np.intersect1d(rows, population, assume_unique=True)


def _why_not(features: FeatureTable, folds: Sequence[Fold], setting: str, step: int) -> str:
    """Return why a setting and step cannot be evaluated; nothing where it can."""
    population = features.population(setting, step)
    parts = [(_inside(fold.train, population), _inside(fold.test, population)) for fold in folds]
    tested = features.labels[np.concatenate([test for _, test in parts])]
    if not len(tested):
        return "no session to test on" if len(population) else "no session"
    if tested.all() or not tested.any():
        return f"{tested.sum():,} purchases among {len(tested):,} test sessions"
    untrained = [number for number, (train, test) in enumerate(parts, 1) if len(test) and not len(train)]
    return f"no session to train fold {untrained[0]} on" if untrained else ""


def _about(features: FeatureTable, folds: Sequence[Fold], protocol: Protocol) -> dict[str, Any]:
    """Return the table, the split and the models, with what has to be noted about them."""
    split, persons, models = (
        SPLITS.get(protocol.split),
        features.persons,
        list(map(MODELS.get, protocol.models)),
    )
    shared = [int(np.isin(persons[test], persons[train]).sum()) for train, test in folds]
    names = ("train", "test", "test_of_persons_in_training")
    sizes = [
        dict(zip(names, (len(train), len(test), known), strict=True))
        for (train, test), known in zip(folds, shared, strict=True)
    ]
    notes = [*features.about.get("notes", ()), f"split {split.name}: {split.description}"]
    tested = sum(len(fold.test) for fold in folds)
    if any(shared):
        notes.append(f"{sum(shared) / tested:.1%} of test sessions are of persons with a session in training")
    left = len(features) - len(folds[0].train) - tested
    if len(folds) == 1 and left:
        notes.append(f"{left:,} sessions had begun and not ended when the test part began: in neither part")
    for one in models:
        if one.output == "decision":
            notes.append(
                f"{one.label} gives decisions, from 0 on a purchase; others probabilities, from 0.5 on"
            )
        if protocol.balanced and one.weighting == "none":
            notes.append(f"no weights for classes in {one.label}: fitted on the sessions as they are")
    table = {name: features.about[name] for name in ("name", "kind")}
    table |= {"line": features.describe(), "compat": features.compat, "fingerprint": features.fingerprint}
    parts = {"name": split.name, "description": split.description, "folds": sizes}
    labels = {one.name: {"label": one.label, "description": one.description} for one in models}
    return {"features": table, "diptych": __version__, "split": parts, "models": labels, "notes": notes}


@dataclass(frozen=True, eq=False)
class Work:
    """Run the units of a grid: the table, and the folds of all its sessions."""

    features: FeatureTable
    folds: Sequence[Fold]
    protocol: Protocol

    @classmethod
    def begin(cls, features: FeatureTable | Path, protocol: Protocol) -> Work:
        """Prepare a process, which opens the table itself."""
        table = open_features(features) if isinstance(features, Path) else features
        return cls(table, _folds(table, protocol), protocol)

    def run(self, unit: Unit) -> FoldResult:
        """Fit every model of a unit, features on its training part, and predict its test part."""
        how, scores, importance = self.protocol, {}, []
        population, fold = self.features.population(unit.setting, unit.step), self.folds[unit.fold]
        train, test = _inside(fold.train, population), _inside(fold.test, population)
        for name in how.models:
            check_stop("stopped: finished folds are kept")
            place = Fitting(self.features, *unit[:3], name, how.balanced, how.seed)
            fitted, model = place.fit(train)
            X = fitted.matrix(self.features.at(test, unit.step))
            raw = model.scores(X)
            p, threshold, why_not = self._calibrated(place, model, raw, train)
            arrays = (test, raw, p, np.full(len(test), threshold), np.full(len(test), unit.fold))
            scores[name] = FoldScores(*arrays, model.reason, why_not, model.warnings)
            if name == how.importance_model:
                seed = int(np.random.SeedSequence([how.seed, unit.fold]).generate_state(1)[0])
                importance = importance_of(model, fitted, X, self.features.labels[test], seed)
        return FoldResult(scores, importance)

    def _calibrated(
        self, place: Fitting, model: FittedModel, raw: np.ndarray, train: np.ndarray
    ) -> tuple[np.ndarray, float, str]:
        """Return probabilities, the threshold on them, and why there are none.

        Both suit the scores that a model fitted without a part of the training sessions gives to that part.
        """
        none, split, labels = np.full(len(raw), np.nan), SPLITS.get(self.protocol.split), self.features.labels
        if not self.protocol.inner:
            return none, np.nan, ""
        if model.constant is not None:
            share = float(labels[train].mean())  # of all constants, F1 likes best to buy always
            return np.full(len(raw), share), share, ""
        try:
            number = min(_INNER_FOLDS, split.default_folds)
            inner = split.folds(SplitInput.of(self.features, train), number, self.protocol.seed)[0]
            held, x = place.cross_fit([Fold(train[inner.train], train[inner.test])])
            platt = measures.fit_platt(x, labels[held])
        except DataError as error:
            return none, np.nan, f"inside the training part: {error.message}"
        threshold = measures.best_threshold(platt.probabilities(x), labels[held])
        return platt.probabilities(measures.log_odds(raw, model.model)), threshold, ""


def importance_of(
    model: FittedModel, fitted: FittedFeatures, X: np.ndarray, labels: np.ndarray, seed: int
) -> list[dict[str, Any]]:
    """Return what every feature is worth to a model: by impurity, and by permutation of held-out values.

    A feature's columns are taken together in both: what scikit-learn permutes are the numbers of the sessions that a
    feature is taken from. Sources: Breiman, Random forests, Machine Learning 2001; Strobl et al., Bias in random forest
    variable importance measures, BMC Bioinformatics 2007.
    """
    names, columns = [one.name for one in fitted.features], np.arange(X.shape[1])
    owner = np.array([names.index(one) for one in fitted.owners], dtype=np.int64)
    drops, impurity = np.full((len(names), REPEATS), np.nan), np.full(len(names), np.nan)
    if labels.any() and names:
        rows = np.tile(np.arange(len(X))[:, None], (1, len(names)))

        def precision(_: object, taken: np.ndarray, truth: np.ndarray) -> float:
            return measures.average_precision(model.scores(X[taken[:, owner], columns]), truth)

        permuted = require("sklearn.inspection", "commerce", "importances").permutation_importance
        how = {"scoring": precision, "n_repeats": REPEATS, "random_state": seed}
        drops = permuted(model.pipeline, rows, labels, **how).importances
    if model.pipeline is not None and model.model.has_impurity:
        impurity = np.bincount(owner, model.pipeline[-1].feature_importances_, len(names))
    return [
        {
            "feature": one.name,
            "dynamic": one.dynamic,
            "impurity": _plain(share),
            "drops": _plain(lost.tolist()),
        }
        for one, share, lost in zip(fitted.features, impurity, drops, strict=True)
    ]


Measured = tuple[dict[str, Any], FoldScores, dict[str, np.ndarray]]
"""A cell, its scores, and its resamples."""


def _measured(
    job: Job[FoldResult], features: FeatureTable, how: Protocol, grid: Sequence[Unit], persons: Persons
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]], list[str]]:
    """Return cells, gains, importances and remarks."""
    measured: list[Measured] = []
    importance: list[dict[str, Any]] = []
    for unit in track(grid, "measuring", len(grid), "settings and steps"):
        folds = folds_of(job, unit, how.folds)
        for name in how.models:
            parts = [one.scores[name] for one in folds]
            measured.append(_cell(unit, name, how.balanced, parts, features.labels, persons))
        importance += _importance_rows(unit, [one.importance for one in folds], how.importance_model)
    cells = [cell for cell, *_ in measured]
    return cells, _gains(measured, features.labels, persons), importance, _remarks(cells)


def _cell(
    unit: Unit, name: str, balanced: bool, parts: list[FoldScores], labels: np.ndarray, persons: Persons
) -> Measured:
    """Measure all folds' test sessions together.

    That is less biased than a mean over folds (Forman and Scholz, Apples-to-apples in cross-validation studies, SIGKDD
    Explorations 2010).
    """
    model, found = MODELS.get(name), FoldScores.joined(parts)
    scores, labels, known = found.scores, labels[found.rows], ~np.isnan(found.calibrated)
    predicted = {"f1": (scores >= model.threshold, labels)}
    if known.any():
        predicted["best_f1"] = (found.calibrated >= found.thresholds, labels & known)
    samples = persons.of_scores(found.rows, scores, labels, predicted)
    raw = measures.of_probabilities(scores, labels) if model.output == "probability" else {}
    calibrated = measures.of_probabilities(found.calibrated[known], labels[known]) if known.any() else {}
    remarks = Counter(one for part in parts for one in part.remarks)
    is_weighed = balanced and not all(part.constant for part in parts)
    cell = {
        **unit.place,
        **{"model": name, "label": model.label, "output": model.output},
        **measures.measure(scores, labels, model.threshold),
        "best_f1": measures.f1(*predicted["best_f1"]) if known.any() else None,
        "threshold": _mean([part.thresholds.mean() for part in parts if len(part.rows)]),
        "brier_prior": float(labels.mean() * (1 - labels.mean())),
        **{one: raw.get(one) for one in ("brier", "reliability")},
        **{f"{one}_calibrated": calibrated.get(one) for one in ("brier", "reliability")},
        "weighting": model.weighting if is_weighed else "none",
        "constant_folds": sum(bool(one.constant) for one in parts),
        "uncalibrated_folds": sum(bool(one.uncalibrated) for one in parts),
        "remarks": dict(sorted(remarks.items())),
        **persons.ends(samples, *RESAMPLED, "best_f1"),
    }
    return {key: _plain(value) for key, value in cell.items()}, found, samples


def _gains(measured: Sequence[Measured], labels: np.ndarray, persons: Persons) -> list[dict[str, Any]]:
    """Return what the extended set has more than the baseline, on the same sessions and resamples of persons.

    Of the calibrated Brier score, a mean over sessions, the difference is tested over persons, corrected for all tests.
    """
    found: list[dict[str, Any]] = []
    tested: list[tuple[dict[str, Any], np.ndarray, np.ndarray]] = []
    names = ("setting", "step", "model")
    of = {(*(one[0][name] for name in names), one[0]["set"]): one for one in measured}
    for key, (mine, p, samples) in of.items():
        if key[-1] != "extended" or (*key[:-1], "baseline") not in of:
            continue
        theirs, other, others = of[*key[:-1], "baseline"]
        for measure in (*RESAMPLED, "best_f1", "brier_calibrated"):
            values = {"baseline": theirs[measure], "extended": mine[measure]}
            if None in values.values():
                continue
            resampled = {"gain": samples[measure] - others[measure]} if measure in samples else {}
            low, high = persons.ends(resampled, "gain").values()
            values |= {"low": low, "high": high, "p": None, "difference": mine[measure] - theirs[measure]}
            found.append({name: mine[name] for name in names} | {"measure": measure} | values)
        errors = [(one.calibrated - labels[one.rows]) ** 2 for one in (p, other)]
        if not np.isnan(errors).any():
            tested.append((found[-1], errors[0] - errors[1], persons.persons[p.rows]))
    columns, clusters = [[one] for _, one, _ in tested], [one for _, _, one in tested]
    for (row, *_), test in zip(tested, paired(columns, clusters, how=persons.how, flips=_FLIPS), strict=True):
        row |= {"low": test.low, "high": test.high, "p": test.corrected}
    return found


def _importance_rows(unit: Unit, folds: Sequence[list[dict[str, Any]]], model: str) -> list[dict[str, Any]]:
    """Return one row per feature, the most important by permutation first: means over folds."""
    rows = []
    for parts in zip(*folds, strict=True):
        drops = np.array([one["drops"] for one in parts], dtype=np.float64).ravel()
        spread = float(np.nanstd(drops, ddof=1)) if np.isfinite(drops).sum() > 1 else None
        worth = {"impurity": _mean([one["impurity"] for one in parts]), "permutation": _mean(drops)}
        names = {name: parts[0][name] for name in ("feature", "dynamic")}
        rows.append({**unit.place, **names, **worth, "permutation_sd": spread, "model": model})
    return sorted(rows, key=lambda row: (-(row["permutation"] or 0.0), row["feature"]))


def _remarks(cells: Sequence[dict[str, Any]]) -> list[str]:
    """Return what went not as it should, counted over the grid."""
    counts = Counter(remark for cell in cells for remark in cell["remarks"])
    return [f"{count} of {len(cells)} cells: {remark}" for remark, count in counts.most_common(_MOST_REMARKS)]


def _mean(values: Sequence[float | None] | np.ndarray) -> float | None:
    usable = np.array(values, dtype=np.float64)
    usable = usable[~np.isnan(usable)]
    return float(usable.mean()) if len(usable) else None


def _plain(value: Any) -> Any:
    """Return numbers of NumPy as Python's, None for what is not defined."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, np.ndarray | np.floating):
        value = float(value)
    return None if isinstance(value, float) and np.isnan(value) else value
