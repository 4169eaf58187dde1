"""Evaluate: every model on every feature set, setting and step, in cross-validation (thesis section 6.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.purchase_intent.evaluation.measures import Persons
from diptych.commerce.purchase_intent.evaluation.plan import (
    PRESETS,
    FoldResult,
    FoldScores,
    Place,
    Plan,
    Preset,
    Protocol,
    Unit,
    chosen_models,
    make_folds,
    plan_of,
)
from diptych.commerce.purchase_intent.evaluation.result import (
    RESULTS,
    Evaluation,
    Results,
    finished,
    intervals_of,
    job_of,
    with_table,
)
from diptych.commerce.purchase_intent.evaluation.summary import (
    RESAMPLED,
    folds_of,
    importance_rows,
    pool,
    summarise,
)
from diptych.commerce.purchase_intent.evaluation.unit import Work
from diptych.commerce.purchase_intent.models import MODELS
from diptych.commerce.purchase_intent.options import EvaluateOptions
from diptych.commerce.purchase_intent.splits import SPLITS, Fold
from diptych.core.artifact import decode, encode
from diptych.core.context import task
from diptych.core.errors import (
    DataError,
    MismatchError,
    NumericalError,
    UnknownNameError,
    UsageError,
)
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint_arrays
from diptych.metrics.bootstrap import Bootstrap

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable


_Samples = dict[tuple[Place, str], dict[str, np.ndarray]]


Page = Callable[[Evaluation], object]
"""Writes what belongs to an evaluation's folder besides, before that is finished."""


def write_results(
    folder: Path, features: FeatureTable, plan: Plan, protocol: Protocol, how: Bootstrap, page: Page | None
) -> Evaluation:
    """Measure what is kept of every place and model."""
    persons = Persons.of(features.persons, how)
    cells: list[dict[str, Any]] = []
    samples: _Samples = {}
    importance = []
    with task("measuring", len(plan.places) * len(protocol.models), "cells") as bar:
        for place in plan.places:
            folds = folds_of(job_of(folder, protocol), place, plan.folds)
            for model in protocol.models:
                pooled = pool(folds, model, features.labels)
                samples[place, model] = pooled.resampled(persons)
                cells.append(summarise(place, pooled, samples[place, model], persons))
                bar.advance(1, f"{place.setting} {place.feature_set}: {model}")
            parts = [one.importance for one in folds if one.importance is not None]
            if parts:
                importance += importance_rows(place, parts, protocol.importance_model)
    results = Results(
        intervals=intervals_of(how),
        cells=cells,
        gains=_gains(cells, samples, persons),
        importance=importance,
        left_out=[one._asdict() for one in plan.left_out],
        notes=_notes(cells),
        labels=features.labels,
        persons=features.persons,
    )
    if page is not None:  # before the results, by which the folder is finished
        arrays: dict[str, np.ndarray] = {}
        page(Evaluation(folder, protocol, decode(Results, encode(results, arrays), arrays)))
    results.save(folder / RESULTS, of=protocol.key)
    return Evaluation.open(folder)


def _gains(cells: list[dict[str, Any]], samples: _Samples, persons: Persons) -> list[dict[str, Any]]:
    """What the extended set has more than the baseline, on the same sessions and the same resamples of persons."""
    found = []
    of_baseline = {
        (cell["setting"], cell["step"], cell["model"]): cell for cell in cells if cell["set"] == "baseline"
    }
    for cell in cells:
        other = of_baseline.get((cell["setting"], cell["step"], cell["model"]))
        if cell["set"] != "extended" or other is None:
            continue
        mine, theirs = (
            samples[Place(one["setting"], one["set"], one["step"]), one["model"]] for one in (cell, other)
        )
        for measure in RESAMPLED:
            if cell[measure] is None or other[measure] is None:
                continue
            low, high = (None, None)
            if measure in mine and measure in theirs:
                low, high = persons.interval(mine[measure] - theirs[measure])
            found.append(
                {
                    **{name: cell[name] for name in ("setting", "step", "model")},
                    "measure": measure,
                    "baseline": other[measure],
                    "extended": cell[measure],
                    "difference": cell[measure] - other[measure],
                    "low": low,
                    "high": high,
                }
            )
    return found


def _notes(cells: list[dict[str, Any]]) -> list[str]:
    """What went not as it should, counted over the grid."""
    notes = []
    for name, said in (
        ("constant_folds", "have folds in which the model is a constant"),
        ("uncalibrated_folds", "have folds whose probabilities could not be calibrated"),
    ):
        concerned = [cell for cell in cells if cell[name]]
        if concerned:
            reasons = sorted({reason for cell in concerned for reason in cell["remarks"]})
            notes.append(f"{len(concerned)} of {len(cells)} cells {said}: {'; '.join(reasons[:3])}")
    unconverged = sum(any("ConvergenceWarning" in one for one in cell["remarks"]) for cell in cells)
    if unconverged:
        notes.append(f"{unconverged} of {len(cells)} cells have models that stopped before they converged")
    return notes


def _begin(features: FeatureTable | Path, protocol: Protocol) -> Work:
    """Prepare a process, which opens the table itself.

    A process computes with one thread, so that what it computes does not depend on how many there are.
    """
    from diptych.commerce.purchase_intent.features.table import open_features

    table = open_features(features) if isinstance(features, Path) else features
    return Work(table, make_folds(table, protocol.split, protocol.folds, protocol.seed), protocol)


def evaluate(
    features: FeatureTable, folder: Path | str, *, page: Page | None = None, **options: Any
) -> Evaluation:
    """Evaluate models on a table of features, or go on where an earlier call was stopped or killed.

    Every model and fold is kept as soon as it is there. The numbers do not depend on ``jobs``.

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
    base, split = PRESETS[given.preset], SPLITS.get(given.split)
    how = Bootstrap(given.samples, seed=given.seed)
    protocol = Protocol(
        features=features.fingerprint,
        models=tuple(_some("model", base.models if given.models is None else chosen_models(given.models))),
        settings=tuple(_among("setting", given.settings, features.settings)),
        sets=tuple(_among("feature set", given.sets, features.sets)),
        steps=tuple(_steps(given.steps, features, base)),
        split=split.name,
        folds=given.folds or min(split.default_folds, base.folds),
        scikit_learn=sklearn.__version__,
        **given.model_dump(include={"balanced", "inner", "importance", "seed"}),
    )
    parts = make_folds(features, protocol.split, protocol.folds, protocol.seed)
    plan = plan_of(features, parts, protocol)
    protocol = with_table(protocol, features, _about(features, parts, protocol))
    job_of(folder, protocol).run(
        {unit.key: unit for unit in plan.units()},
        Work.run,
        processes=given.jobs,
        setup=_begin,
        setup_args=(features if given.jobs == 1 else features.folder, protocol),
    )
    there = finished(folder, protocol, how)
    if there is None:
        return write_results(folder, features, plan, protocol, how, page)
    if page is not None:
        page(there)
    return there


def _some(kind: str, names: Sequence[Any]) -> Sequence[Any]:
    if not names:
        raise UsageError(f"no {kind} was asked for", f"name a {kind}, or none for the preset's")
    return names


def _among(kind: str, asked: Iterable[str] | None, known: Sequence[str]) -> Sequence[str]:
    """What was asked for, in the order of the table."""
    if asked is None:
        return known
    wanted = set(asked)
    for name in sorted(wanted):
        if name not in known:
            raise UnknownNameError(kind, name, known)
    return _some(kind, [name for name in known if name in wanted])


def _steps(asked: Iterable[int] | None, features: FeatureTable, preset: Preset) -> Sequence[int]:
    if asked is None:
        chosen = [step for step in features.steps if preset.steps is None or step in preset.steps]
        return chosen or features.steps
    names = [str(step) for step in features.steps]
    return [int(step) for step in _among("step", map(str, asked), names)]


def _about(features: FeatureTable, folds: Sequence[Fold], protocol: Protocol) -> dict[str, Any]:
    """What ``the protocol`` says besides the protocol."""
    split, labels = SPLITS.get(protocol.split), features.labels
    sizes = []
    for fold in folds:
        known = np.isin(features.persons[fold.test], features.persons[fold.train])
        sizes.append(
            {
                "train": len(fold.train),
                "train_purchases": int(labels[fold.train].sum()),
                "test": len(fold.test),
                "test_purchases": int(labels[fold.test].sum()),
                "test_of_persons_in_training": int(known.sum()),
            }
        )
    notes = [f"split {split.name}: {split.description}"]
    tested = sum(size["test"] for size in sizes)
    shared = sum(size["test_of_persons_in_training"] for size in sizes)
    if shared:
        notes.append(f"{shared / tested:.1%} of test sessions are of persons with a session in training")
    left = len(features) - len(folds[0].train) - tested
    if len(folds) == 1 and left:
        notes.append(f"{left:,} sessions had begun and not ended when the test part began: in neither part")
    models = [MODELS.get(name) for name in protocol.models]
    decisions = [one.label for one in models if one.output == "decision"]
    if decisions:
        notes.append(
            f"{', '.join(decisions)}: decisions, from 0 on a purchase; others are probabilities, from 0.5 on"
        )
    unweighed = [one.label for one in models if one.weighting == "none"]
    if protocol.balanced and unweighed:
        notes.append(f"no weights for classes in {', '.join(unweighed)}: fitted on the sessions as they are")
    return {
        "split": {"name": split.name, "description": split.description, "folds": sizes},
        "models": {one.name: {"label": one.label, "description": one.description} for one in models},
        "notes": notes,
    }


@dataclass(frozen=True, eq=False)
class GivenScores:
    """Probabilities of one setting and step.

    Attributes:
        probabilities: (m,) in [0, 1], of the rows of ``features.population(setting, step)``.
        threshold: from which on a purchase is predicted, where one was chosen on other sessions; NaN for none.
    """

    probabilities: np.ndarray
    threshold: float = float("nan")


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
    folder, how = Path(folder), bootstrap or Bootstrap()
    if not scores:
        raise DataError(f"{name} gives no scores", "train it on a log with these settings")
    for (setting, step), given in scores.items():
        _check(features, setting, step, given)
    settings = [one for one in features.settings if any(setting == one for setting, _ in scores)]
    steps = [one for one in features.steps if any(step == one for _, step in scores)]
    content = fingerprint_arrays(
        {f"{setting}/{step}": given.probabilities for (setting, step), given in scores.items()}
        | {
            f"{setting}/{step}/threshold": np.float64(given.threshold)
            for (setting, step), given in scores.items()
        }
    )
    protocol = Protocol(
        features=features.fingerprint,
        models=(MODELS.get(model).name,),
        settings=tuple(settings),
        sets=(feature_set or features.sets[-1],),
        steps=tuple(steps),
        split="given",
        folds=1,
        balanced=False,
        inner=True,
        importance=False,
        seed=0,
        scikit_learn="",
        scorer=f"{name} ({content})",
    )
    everything = np.arange(len(features))
    grid = plan_of(features, [Fold(everything, everything)], protocol)
    plan = Plan(
        places=tuple(place for place in grid.places if (place.setting, place.step) in scores),
        folds=1,
        left_out=tuple(one for one in grid.left_out if (one.setting, one.step) in scores),
    )
    if not plan.places:
        raise DataError(f"no setting and step that {name} scores has purchases", "score a log that has some")
    protocol = with_table(protocol, features, _given_about(features, protocol, trained_on))
    units = {}
    for place in plan.places:
        given, rows = scores[place.setting, place.step], features.population(place.setting, place.step)
        p = given.probabilities
        fold = FoldScores(rows, p, p, given.threshold, "none", "probability")
        units[Unit(*place, 0).key] = FoldResult({model: fold})
    job_of(folder, protocol).run(units, _as_given)
    return write_results(folder, features, plan, protocol, how, page)


def _as_given(fold: FoldResult) -> FoldResult:
    return fold


def _check(features: FeatureTable, setting: str, step: int, given: GivenScores) -> None:
    rows = len(features.population(setting, step))
    p = given.probabilities
    if p.shape != (rows,):
        raise MismatchError(f"{setting}, step {step}: {rows:,} sessions and scores of shape {p.shape}")
    wrong = np.flatnonzero(~((p >= 0) & (p <= 1)))
    if len(wrong):
        raise NumericalError(
            f"{setting}, step {step}: the score of row {int(wrong[0])} is {p[wrong[0]]}, no probability"
        )


def _given_about(features: FeatureTable, protocol: Protocol, trained_on: str) -> dict[str, object]:
    notes = []
    if trained_on == features.fingerprint:
        notes.append("the scorer was trained on these very sessions: these numbers are no test of it")
    model = MODELS.get(protocol.models[0])
    return {
        "split": {"name": "given", "description": "all sessions of the table", "folds": []},
        "models": {model.name: {"label": model.label, "description": model.description}},
        "notes": notes,
    }
