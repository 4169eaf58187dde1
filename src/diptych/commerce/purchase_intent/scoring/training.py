"""Train a scorer and measure it: one model per setting and step, refitted on all sessions, calibrated by cross-fitting.

While it is trained it lies in ``NAME.unfinished``, where every finished model is kept; a training of something else
begins there anew. The folder itself changes when all of it is there.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from diptych.commerce.logs.schema import SECOND
from diptych.commerce.purchase_intent.evaluation import measures
from diptych.commerce.purchase_intent.evaluation.evaluate import chosen_of
from diptych.commerce.purchase_intent.evaluation.fitting import Fitting
from diptych.commerce.purchase_intent.features.table import FeatureTable, open_features
from diptych.commerce.purchase_intent.models import FEWEST, MODELS
from diptych.commerce.purchase_intent.options import EvaluateOptions, TrainOptions
from diptych.commerce.purchase_intent.scoring.card import (
    CARD,
    EXAMPLE,
    example_session,
    measured_table,
    model_card,
)
from diptych.commerce.purchase_intent.scoring.scorer import Calibration, Scorer, StepModel, in_words, unit_key
from diptych.commerce.purchase_intent.splits import SPLITS, Fold, SplitInput
from diptych.core import files
from diptych.core.artifact import Artifact
from diptych.core.context import track
from diptych.core.draws import Draws, draw_uniform
from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint
from diptych.core.job import Job
from diptych.core.locking import exclusive_folder
from diptych.core.table import Table
from diptych.metrics.bootstrap import Bootstrap

FEWEST_FOR_STEPS = 1000
"""Sessions of either class that the steps of an isotonic calibration are fitted on at least."""

_TYPICAL = 20_000  # sessions that typical values are taken of, at most
_MOST_WORDS = 1000  # of a column with more words a scorer does not list those that it has seen
SCORES = "scores.csv"
_HEAD = ("session_id", "setting", "step", "p", "likely", "bought")


class Slices(NamedTuple):
    """(n,) bool masks; sessions that run across the end of ``fit`` are in neither."""

    fit: np.ndarray  # of the sessions that the measured model learns from
    holdout: np.ndarray  # of those that it is measured on
    split: str  # time or grouped
    note: str  # how they were divided


def slices_of(features: FeatureTable, *, split: str = "time", holdout: float = 0.2, seed: int = 0) -> Slices:
    """Cut all sessions in two, the same for every setting and step.

    ``time``: the last ones are measured on; others have to end before these begin. ``grouped``: all sessions of a
    person are in one part, drawn at random; this happens, and is noted, where all sessions begin at one time.
    """
    starts, note = features.start_us, "all sessions of a person are in one part, drawn at random"
    if split == "time" and len(starts) and starts.min() < starts.max():
        end = np.sort(starts)[min(round(len(starts) * (1 - holdout)), len(starts) - 1)]
        last = "the last sessions are measured on, by a model of those that ended before"
        return Slices(features.end_us < end, starts >= end, "time", last)
    if split == "time":
        note = f"the sessions have no times to be divided by, so that {note}"
    drawn = draw_uniform(seed, features.persons) >= 1 - holdout
    return Slices(~drawn, drawn, "grouped", note)


def person_folds(features: FeatureTable, rows: np.ndarray, options: TrainOptions) -> list[Fold]:
    """Return the folds of ``rows`` that a calibration is cross-fitted on: all sessions of a person are in one."""
    folds = SPLITS.get("grouped").folds(SplitInput.of(features, rows), options.folds, options.seed)
    return [Fold(rows[fold.train], rows[fold.test]) for fold in folds]


def why_not(features: FeatureTable, setting: str, step: int, slices: Slices, options: TrainOptions) -> str:
    """Return why there can be no model of a setting and step; nothing where there can."""
    population, labels = features.population(setting, step), features.labels
    rows = population[slices.fit[population]]
    part = f"{int(labels[rows].sum()):,} purchases among the {len(rows):,} sessions before the last part"
    needed = f"{part}: outside of each of {options.folds} folds at least {FEWEST} of either class are needed"
    try:
        folds = person_folds(features, rows, options)
    except DataError:
        return needed
    outside = (labels[fold.train] for fold in folds)
    return "" if min(min(one.sum(), (~one).sum()) for one in outside) >= FEWEST else needed


def fit_calibration(method: str, x: np.ndarray, labels: np.ndarray) -> tuple[Calibration, str]:
    """Fit a calibration to (n,) log-odds of sessions that their models were not fitted on; return it and a note."""
    platt, steps = measures.fit_platt(x, labels), None
    notes = [] if platt.slope > 0 else ["the order of cross-fitted predictions is none, or the wrong one"]
    fewest = int(min(labels.sum(), (~labels).sum()))
    if method == "isotonic" and fewest < FEWEST_FOR_STEPS:
        few = f"steps need {FEWEST_FOR_STEPS:,} sessions of either class and there are {fewest:,}"
        notes.append(f"calibrated by the sigmoid, for {few}")
    elif method == "isotonic":
        nearest = 1 / (len(labels) + 2)  # nothing that was seen is certain
        isotonic = require("sklearn.isotonic", "commerce", "isotonic calibration").IsotonicRegression
        fitted = isotonic(y_min=nearest, y_max=1 - nearest).fit(x, labels.astype(np.float64))
        steps = (tuple(map(float, fitted.X_thresholds_)), tuple(map(float, fitted.y_thresholds_)))
    return Calibration(platt, steps), "; ".join(notes)


def fit_rows(
    features: FeatureTable, setting: str, step: int, rows: np.ndarray, options: TrainOptions
) -> StepModel:
    """Fit features and model on ``rows``; calibration and thresholds on predictions of models without each fold."""
    chosen = features.sets[0] if features.is_whole else options.feature_set
    place = Fitting(features, setting, chosen, step, options.model, options.balanced, options.seed)
    held, x = place.cross_fit(person_folds(features, rows, options))
    labels = features.labels[held]
    calibration, note = fit_calibration(options.calibrate, x, labels)
    p, (fitted, model) = calibration.probabilities(x), place.fit(rows)
    draws = draw_uniform(Draws(options.seed, "background").below(1 << 31), features.session_ids[rows])
    drawn = rows[np.sort(np.argsort(draws, kind="stable")[: options.background])]
    owners, sample = np.array(fitted.owners), features.at(rows[:: max(1, len(rows) // _TYPICAL)], step)
    matrix, notes = fitted.matrix(sample), [one for one in (note, model.reason, *model.warnings) if one]
    return StepModel(
        setting=setting,
        step=step,
        features=fitted,
        model=model,
        calibration=calibration,
        threshold=measures.best_threshold(p, labels),
        cost_threshold=options.costs and measures.least_cost_threshold(p, labels, *options.costs),
        base_rate=float(labels.mean()),
        background=fitted.matrix(features.at(drawn, step)),
        typical={one.name: in_words(one, sample, matrix[:, owners == one.name]) for one in fitted.features},
        about={"weighting": model.weighting, "columns": list(fitted.names), "notes": notes},
    )


def fit_step(given: tuple[FeatureTable, Slices, TrainOptions], place: tuple[str, int]) -> StepModel:
    """Fit one setting and step on all its sessions, and measure what is fitted without the last part on that."""
    (features, slices, options), (_, step) = given, place
    rows, labels = features.population(*place), features.labels
    earlier, last = rows[slices.fit[rows]], rows[slices.holdout[rows]]
    before = fit_rows(features, *place, earlier, options)
    p = before.probabilities(features.at(last, step)) if len(last) else np.zeros(0)
    parts = {"all": rows, "without_holdout": earlier, "holdout": last}
    about = {
        "sessions": {name: len(some) for name, some in parts.items()},
        "purchases": {name: int(labels[some].sum()) for name, some in parts.items()},
        "holdout": measure(before, p, labels[last], features.persons[last], options),
    }
    final = fit_rows(features, *place, rows, options)
    return replace(final, about=final.about | about)


def measure(
    model: StepModel, p: np.ndarray, labels: np.ndarray, persons: np.ndarray, options: TrainOptions
) -> dict[str, Any] | None:
    """Return measures of (n,) probabilities with intervals over persons, and reliability; None without both classes."""
    if not len(labels) or labels.all() or not labels.any():
        return None
    found = measures.measure(p, labels, model.threshold) | measures.of_probabilities(p, labels)
    found |= {"mean_p": float(p.mean()), "threshold": model.threshold, "cost_threshold": model.cost_threshold}
    if options.costs and model.cost_threshold is not None:
        (false_alarm, missed), acted = options.costs, p >= model.cost_threshold
        found["cost"] = float((false_alarm * (acted & ~labels) + missed * (~acted & labels)).mean())
        found["cost_without"] = float(min(false_alarm * (~labels).mean(), missed * labels.mean()))
    drawn = measures.Persons(persons, Bootstrap(options.samples, options.confidence, options.seed))
    predicted = {"f1": (p >= model.threshold, labels)}
    samples = drawn.of_scores(np.arange(len(labels)), p, labels, predicted)
    return found | drawn.ends(samples, *measures.RESAMPLED)


@dataclass(frozen=True)
class TrainedOf(Artifact, kind="training", recreate="diptych intent train FEATURES --out SCORER"):
    """The fingerprint of what the models of a scorer are trained on, and how."""

    plan: str


def train(
    features: FeatureTable,
    folder: Path | str,
    *,
    options: TrainOptions | None = None,
    settings: Sequence[str] | None = None,
    steps: Sequence[int] | None = None,
    audit: dict[str, Any] | None = None,
    jobs: int = 1,
) -> Scorer:
    """Train a scorer, or open the one that was trained in just this way; its numbers do not depend on ``jobs``."""
    options, folder = options or TrainOptions(), Path(folder)
    places = _places(features, options, settings, steps)
    files.check_replaceable(folder, Scorer.marker())
    how = (options.model_dump(), [list(one) for one in places], audit)
    plan = TrainedOf(fingerprint(Scorer.FORMAT, features.fingerprint, *how))
    with suppress(StorageError):
        there = Scorer.open(folder)
        if there.about["plan"] == plan.plan:
            return there
    slices = slices_of(features, split=options.split, holdout=options.holdout, seed=options.seed)
    reasons = {place: why_not(features, *place, slices, options) for place in places}
    refused = [{"setting": one, "step": step, "reason": why} for (one, step), why in reasons.items() if why]
    if all(reasons.values()):
        first = "{setting}, step {step}: {reason}".format(**refused[0])
        raise DataError(f"nothing can be trained: {first}", "import more of the log")
    work = folder.with_name(f"{folder.name}.unfinished")
    with exclusive_folder(work, TrainedOf.marker()):
        if TrainedOf.is_at(work) and TrainedOf.open(work) != plan:  # of another training
            work.rename(left := work.with_name(f".{work.name}.left.tmp"))
            shutil.rmtree(left)
    job = Job(work, plan, StepModel, "models", "")
    fitting = {unit_key(*place): place for place, reason in reasons.items() if not reason}
    table = features if jobs == 1 or not features.folder.name else features.folder  # a sample has no folder
    job.run(fitting, fit_step, processes=jobs, setup=_begin, setup_args=(table, slices, options))
    models = [StepModel.open(job.path(key)) for key in fitting]
    about = {
        "plan": plan.plan,
        **_about_features(features),
        "options": options.model_dump(),
        "weighting": MODELS.get(options.model).weighting if options.balanced else "none",
        "slices": _about_slices(features, slices),
        "cells": [{**one.place, "base_rate": one.base_rate, **one.about} for one in models],
        "not_trained": refused,
        "audit": audit,
    }
    declared = {one.name: one for model in models for one in model.features.features}
    files.write_text(work / CARD, model_card(about, list(declared.values())))
    if not features.is_whole:
        files.write_json(work / EXAMPLE, example_session(about))
    Scorer(about).save(work / Scorer.marker())
    files.replace_folder(work, folder)
    return Scorer.open(folder)


def _begin(table: FeatureTable | Path, *given: Any) -> tuple[Any, ...]:
    return (open_features(table) if isinstance(table, Path) else table, *given)


def _places(
    features: FeatureTable, options: TrainOptions, settings: Sequence[str] | None, steps: Sequence[int] | None
) -> list[tuple[str, int]]:
    """Return settings and steps in the table's order; unknown ones are refused."""
    if features.compat == "published":
        wrong = "features made as published look at what comes later: whether the visitor logs in at all"
        raise UsageError(wrong, "make them without --compat published to train what will be used")
    MODELS.get(options.model)
    chosen_of("feature set", None if features.is_whole else [options.feature_set], features.sets)
    names = chosen_of("setting", settings or None, features.settings)
    return list(product(names, chosen_of("step", steps or None, features.steps)))


def _about_features(features: FeatureTable) -> dict[str, Any]:
    """Return what serving has to know of a table, and what a model card has of it."""
    about, days, words = features.about, "times unknown", {}
    if features.about["has_times"] and len(features):
        ends = (int(one) // SECOND for one in (features.start_us.min(), features.start_us.max()))
        zone = ZoneInfo(about["zone"])
        days = " to ".join(datetime.fromtimestamp(one, zone).date().isoformat() for one in ends)
    for name in () if features.is_whole else ("device", "channel"):
        seen = [word for word, _ in Counter(sorted(features.view.columns[name].tolist())).most_common()]
        words[name] = None if len(seen) > _MOST_WORDS else seen
    keys = ("name", "kind", "zone", "since_us", "session_options", "columns", "counts")
    return {
        **{key: about.get(key) for key in keys},
        **{key: about.get(key, []) for key in ("left_out", "kept_leaking")},
        "fingerprint": features.fingerprint,
        "vocabulary": list(features.view.vocabulary),
        "known": words,
        "days": days,
        "line": features.describe(),
    }


def _about_slices(features: FeatureTable, slices: Slices) -> dict[str, Any]:
    parts = {"all": slices.fit | True, "without_holdout": slices.fit, "holdout": slices.holdout}
    labels = {name: features.labels[part] for name, part in parts.items()}
    return {
        **{"split": slices.split, "note": slices.note},
        "left_out": int((~(slices.fit | slices.holdout)).sum()),
        "sizes": {name: len(part) for name, part in labels.items()},
        "rates": {name: float(part.mean()) if len(part) else None for name, part in labels.items()},
    }


@dataclass(frozen=True)
class ScoredTable(Artifact, kind="scores", recreate="diptych intent score SCORER TABLE --out SCORES"):
    """Scores of all sessions of a table: ``scores.csv``, and here by which scorer and how good they are."""

    about: dict[str, Any]

    def tables(self) -> list[Table]:
        """Return the measures."""
        return [measured_table(f"Measured on {self.about['measured']}", self.about["cells"])]

    def lines(self) -> list[str]:
        """Return how many scores there are, and of what."""
        return [f"{sum(cell['scored'] for cell in self.about['cells']):,} scores of {self.about['features']}"]


def score_table(
    scorer: Scorer,
    features: FeatureTable,
    folder: Path | str,
    *,
    given: EvaluateOptions | None = None,
    page: Callable[[ScoredTable, Path], object] = lambda scores, inside: None,
) -> ScoredTable:
    """Score every session of a table and measure the scores at the scorer's threshold; write the folder.

    Of the table that it was trained on, every session of which it has seen, measures are those of training.
    """
    given = given or EvaluateOptions()
    if given.models or given.sets or given.folds:
        raise UsageError("a scorer is measured as it is", "leave out --model, --set and --folds")
    own = features.fingerprint == scorer.about["fingerprint"]
    options = TrainOptions(**scorer.about["options"])
    if "samples" in given.model_fields_set:
        options = options.model_copy(update={"samples": given.samples, "seed": given.seed})
    about = {
        "scorer": scorer.describe(),
        "features": features.describe(),
        "features_fingerprint": features.fingerprint,
        "measured": "the last part, by models fitted without it" if own else "all sessions",
        "kind": scorer.about["kind"],
        "options": options.model_dump(),
        "cells": (cells := []),
    }

    def lines() -> Iterator[tuple[object, ...]]:
        scored = scorer.score_table(features, given.settings, given.steps)
        for model, rows, p in track(scored, "scoring", len(scorer.places), "models"):
            labels, place = features.labels[rows], (model.setting, model.step)
            for session, one, label in zip(features.session_ids[rows], p.tolist(), labels, strict=True):
                yield session, *place, repr(one), int(one >= model.threshold), int(label)
            measured = None if own else measure(model, p, labels, features.persons[rows], options)
            found = model.about["holdout"] if own else measured
            cells.append({**model.place, "scored": len(rows), "measures": found})

    with files.atomic_folder(folder, ScoredTable.marker()) as inside:
        files.write_csv(inside / SCORES, _HEAD, lines())
        page(made := ScoredTable(about), inside)
        made.save(inside / ScoredTable.marker())
    return made
