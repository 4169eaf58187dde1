"""Evaluate: every model on every feature set, setting and step, in cross-validation (thesis section 6.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from diptych.commerce.purchase_intent.evaluation import measures
from diptych.commerce.purchase_intent.evaluation.fitting import Fitting
from diptych.commerce.purchase_intent.evaluation.measures import RESAMPLED, Persons
from diptych.commerce.purchase_intent.evaluation.result import (
    PREDICTION,
    RESULTS,
    Evaluation,
    FoldResult,
    Protocol,
    Unit,
    folds_of,
    joined,
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

REPEATS = 3  # permutations of every feature, in every fold
_INNER_FOLDS = 5  # of a training part, one in so many is held back for the threshold and the calibration
_FLIPS = 2000  # of the test of extended against baseline features

Given = tuple[FeatureTable, Sequence[Fold], EvaluateOptions, str]
"""What every unit is run on: the table, folds of all its sessions, the options, the model of importances."""
Row = dict[str, Any]
Measured = tuple[Row, np.ndarray, dict[str, np.ndarray]]
"""A cell, its predictions, and its resamples."""


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
    how, results = _resolved(features, given), folder / RESULTS
    folds = _folds(features, how)
    places = (how.settings or (), how.steps or ())
    reasons = {of: _why_not(features, folds, *of) for of in product(*places)}
    left_out = [{"setting": one, "step": step, "reason": why} for (one, step), why in reasons.items() if why]
    if all(reasons.values()):
        first = "{setting}, step {step}: {reason}".format(**left_out[0])
        raise DataError(f"nothing can be evaluated: {first}", "import more of the log")
    version = require("sklearn", "commerce", "evaluating models").__version__
    about, plan = _about(features, folds, how), how.model_dump(mode="json")
    job = Job(folder, Protocol(features.fingerprint, plan, version, about), FoldResult, noun="folds")
    grid = [Unit(*of) for of in product(*places[:1], how.sets or (), *places[1:], how.models or ())]
    grid = [unit for unit in grid if not reasons[unit.setting, unit.step]]
    units = {unit.key(fold): (unit, fold) for unit in grid for fold in range(len(folds))}
    table = features if given.jobs == 1 or not features.folder.name else features.folder  # a sample has none
    job.run(units, fold_result, processes=given.jobs, setup=_begin, setup_args=(table, how))
    found = Evaluation.open(folder) if results.exists() else None
    if found is None or found.samples != given.samples:
        results.unlink(missing_ok=True)
        persons = Persons(features.persons, Bootstrap(given.samples, seed=given.seed))
        measured = _measured(job, features, how, grid, persons)
        found = Evaluation(Protocol.open(folder), given.samples, *measured, left_out)
    page(found)
    if not results.exists():
        found.save(results, of=found.protocol.key)  # by which the folder is finished
    return Evaluation.open(folder)


def _begin(features: FeatureTable | Path, how: EvaluateOptions) -> Given:
    """Prepare a process, which opens the table itself."""
    table, names = open_features(features) if isinstance(features, Path) else features, how.models or []
    forests = (name for name in names if MODELS.get(name).has_impurity)
    return table, _folds(table, how), how, next(forests, names[0]) if how.importance else ""


def _resolved(features: FeatureTable, given: EvaluateOptions) -> EvaluateOptions:
    """Return the options with what the preset stands for, without those that no fold depends on."""
    (folds, some), split, plain = PRESETS[given.preset], SPLITS.get(given.split), EvaluateOptions()
    models = [one.name for one in MODELS if given.preset in one.presets]
    steps = [one for one in features.steps if some is None or one in some] or features.steps
    return given.model_copy(
        update={
            "models": chosen_of("model", models if given.models is None else given.models, MODELS.names()),
            "settings": chosen_of("setting", given.settings, features.settings),
            "sets": chosen_of("feature set", given.sets, features.sets),
            "steps": chosen_of("step", steps if given.steps is None else given.steps, features.steps),
            "folds": given.folds or min(split.default_folds, folds),
            **{name: getattr(plain, name) for name in ("preset", "samples", "jobs")},
        }
    )


def chosen_of(kind: str, requested: Iterable[Any] | None, known: Sequence[Any]) -> list[Any]:
    """Return the requested members, all where None, in the known order; unknown ones are refused."""
    chosen = set(known if requested is None else requested)
    if not chosen:
        raise UsageError(f"no {kind} was requested", f"name a {kind}, or none for the preset's")
    for name in sorted(chosen - set(known)):
        raise UnknownNameError(kind, str(name), map(str, known))
    return [name for name in known if name in chosen]


def _folds(features: FeatureTable, how: EvaluateOptions) -> list[Fold]:
    """Return the folds of all sessions of a table; every population's are made of them."""
    if how.split == "time" and not features.about["has_times"]:
        raise UsageError("the table does not say when sessions were", "--split random")
    if not features.labels.any() or features.labels.all():
        which = "every session ends" if len(features) and features.labels.all() else "no session ends"
        raise DataError(f"{which} in a purchase: nothing can be trained", "import more of the log")
    return SPLITS.get(how.split).folds(SplitInput.of(features), how.folds or 1, how.seed)


def _parts(fold: Fold, population: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    train, test = (np.intersect1d(part, population, assume_unique=True) for part in fold)
    return train, test


def _why_not(features: FeatureTable, folds: Sequence[Fold], setting: str, step: int) -> str:
    """Return why a setting and step cannot be evaluated; nothing where it can."""
    parts = [_parts(fold, features.population(setting, step)) for fold in folds]
    tested = features.labels[np.concatenate([test for _, test in parts])]
    if not len(tested):
        return "no session to test on"
    if tested.all() or not tested.any():
        return f"{tested.sum():,} purchases among {len(tested):,} test sessions"
    untrained = [number for number, (train, test) in enumerate(parts, 1) if len(test) and not len(train)]
    return f"no session to train fold {untrained[0]} on" if untrained else ""


def _about(features: FeatureTable, folds: Sequence[Fold], how: EvaluateOptions) -> dict[str, Any]:
    """Return the table, and what a reader has to know of it, of the split and of the models."""
    split, persons = SPLITS.get(how.split), features.persons
    sizes = [np.unique([len(part) for part in parts]) for parts in zip(*folds, strict=True)]
    trained, tested = (" to ".join(f"{n:,}" for n in of[[0, -1]][: len(of)]) for of in sizes)
    n = sum(len(fold.test) for fold in folds)
    shared = sum(int(np.isin(persons[test], persons[train]).sum()) for train, test in folds)
    notes = [*features.about.get("notes", ()), f"split {split.name}: {split.description}"]
    notes += [f"{len(folds)} folds, trained on {trained} sessions, tested on {tested}; "
              f"{shared / n:.1%} of test sessions are of persons with a session in training"]  # fmt: skip
    if len(folds) == 1 and (left := len(features) - len(folds[0].train) - n):
        notes.append(f"{left:,} sessions had begun and not ended when the test part began: in neither part")
    notes += [f"{one.label}: {one.description}" for one in map(MODELS.get, how.models or ())]
    table = {name: features.about[name] for name in ("name", "kind")}
    table |= {"line": features.describe(), "compat": features.compat}
    return {"features": table, "diptych": __version__, "notes": notes}


def fold_result(given: Given, which: tuple[Unit, int]) -> FoldResult:
    """Fit features and a model on the training part of a fold, and predict its test part."""
    (features, folds, how, forest), (unit, fold) = given, which
    check_stop("stopped: finished folds are kept")
    train, test = _parts(folds[fold], features.population(unit.setting, unit.step))
    place = Fitting(features, *unit, how.balanced, how.seed)
    fitted, model = place.fit(train)
    X = fitted.matrix(features.at(test, unit.step))
    found, importance = np.empty(len(test), PREDICTION), np.empty((0, 1 + REPEATS))
    found["row"], found["fold"], found["score"] = test, fold, model.scores(X)
    found["p"], found["threshold"], why_not = _calibrated(place, model, found["score"], train, how)
    if unit.model == forest:
        seed = int(np.random.SeedSequence([how.seed, fold]).generate_state(1)[0])
        importance = importance_of(model, fitted, X, features.labels[test], seed)
    remarks = {"the model is a constant": model.reason, "not calibrated": why_not}
    noted = [f"{name}: {why}" for name, why in remarks.items() if why]
    return FoldResult(found, importance, (*noted, *model.warnings))


def _calibrated(
    place: Fitting, model: FittedModel, raw: np.ndarray, train: np.ndarray, how: EvaluateOptions
) -> tuple[np.ndarray | float, float, str]:
    """Return probabilities, the threshold on them, and why there are none.

    Both suit the scores that a model fitted without a part of the training sessions gives to that part.
    """
    split, labels = SPLITS.get(how.split), place.table.labels
    if not how.inner:
        return np.nan, np.nan, ""
    if model.constant is not None:
        share = float(labels[train].mean())  # of all constants, F1 likes best to buy always
        return share, share, ""
    try:
        number = min(_INNER_FOLDS, split.default_folds)
        inner = split.folds(SplitInput.of(place.table, train), number, how.seed)[0]
        held, x = place.cross_fit([Fold(train[inner.train], train[inner.test])])
        platt = measures.fit_platt(x, labels[held])
    except DataError as error:
        return np.nan, np.nan, f"inside the training part: {error.message}"
    threshold = measures.best_threshold(platt.probabilities(x), labels[held])
    return platt.probabilities(measures.log_odds(raw, model.model)), threshold, ""


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
            return measures.average_precision(model.scores(X[taken[:, owner], columns]), truth)

        permuted = require("sklearn.inspection", "commerce", "importances").permutation_importance
        how = {"scoring": precision, "n_repeats": REPEATS, "random_state": seed}
        found[:, 1:] = permuted(model.pipeline, rows, labels, **how).importances
    if model.pipeline is not None and model.model.has_impurity:
        found[:, 0] = np.bincount(owner, model.pipeline[-1].feature_importances_, len(names))
    return found


def _measured(
    job: Job[FoldResult], table: FeatureTable, how: EvaluateOptions, grid: Sequence[Unit], persons: Persons
) -> tuple[list[Row], list[Row]]:
    """Return cells and importances."""
    measured, importance = {}, []
    for unit in track(grid, "measuring", len(grid), "models, settings and steps"):
        folds = folds_of(job, unit, how.folds or 1)
        measured[unit] = _cell(unit, folds, table.labels, persons)
        importance += _importance_rows(unit, folds, table)
    _add_gains(measured, table.labels, persons)
    return [cell for cell, *_ in measured.values()], importance


def _cell(unit: Unit, folds: list[FoldResult], labels: np.ndarray, persons: Persons) -> Measured:
    """Measure all folds' test sessions together.

    That is less biased than a mean over folds (Forman and Scholz, Apples-to-apples in cross-validation studies, SIGKDD
    Explorations 2010).
    """
    model, found = MODELS.get(unit.model), joined(folds)
    scores, labels, known = found["score"], labels[found["row"]], ~np.isnan(found["p"])
    predicted = {"f1": (scores >= model.threshold, labels)}
    if known.any():
        predicted["best_f1"] = (found["p"] >= found["threshold"], labels & known)
    samples = persons.of_scores(found["row"], scores, labels, predicted)
    raw = measures.of_probabilities(scores, labels) if model.output == "probability" else {}
    calibrated = measures.of_probabilities(found["p"][known], labels[known]) if known.any() else {}
    thresholds = [fold.predictions["threshold"][0] for fold in folds if len(fold.predictions)]
    cell = {
        **unit._asdict(),
        "label": model.label,
        **measures.measure(scores, labels, model.threshold),
        "best_f1": float(measures.f1(*predicted["best_f1"])) if known.any() else None,
        "threshold": float(np.nanmean(thresholds)) if known.any() else None,
        "brier_prior": float(labels.mean() * (1 - labels.mean())),
        **{one: raw.get(one) for one in ("brier", "reliability")},
        **{f"{one}_calibrated": calibrated.get(one) for one in ("brier", "reliability")},
        "remarks": dict(Counter(one for fold in folds for one in fold.remarks)),
        **persons.ends(samples, *RESAMPLED, "best_f1"),
    }
    return {key: None if value != value else value for key, value in cell.items()}, found, samples


def _add_gains(measured: Mapping[Unit, Measured], labels: np.ndarray, persons: Persons) -> None:
    """Add what the extended set has more than the baseline, on the same sessions and resamples of persons.

    Of the calibrated Brier score, a mean over sessions, the difference is tested over persons, corrected for all tests.
    """
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
    for (cell, *_), test in zip(
        tested, paired(columns, clusters, how=persons.how, flips=_FLIPS), strict=True
    ):
        values = {"": test.difference, "_low": test.low, "_high": test.high, "_p": test.corrected}
        cell |= {f"brier_calibrated_gain{name}": value for name, value in values.items()}


def _importance_rows(unit: Unit, folds: Sequence[FoldResult], table: FeatureTable) -> list[Row]:
    """Return one row per feature, the most important by permutation first: means over folds."""
    worth = np.ma.masked_invalid(np.stack([one.importance for one in folds], axis=1))
    impurity, drops = worth[..., 0].mean(axis=1), worth[..., 1:]
    columns = (impurity, drops.mean(axis=(1, 2)), drops.std(axis=(1, 2), ddof=1))
    rows = []
    for feature, *of in zip(table.features(*unit[:3]), *(one.tolist() for one in columns), strict=False):
        named = {"feature": feature.name, "dynamic": feature.dynamic}
        values = zip(("impurity", "permutation", "permutation_sd"), of, strict=True)
        rows.append(unit._asdict() | named | dict(values))
    return sorted(rows, key=lambda row: (-(row["permutation"] or 0.0), row["feature"]))
