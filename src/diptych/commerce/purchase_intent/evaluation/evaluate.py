"""Evaluate: every model on every feature set, setting and step, in cross-validation (thesis section 6.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.purchase_intent.evaluation.cells import Unit, step_text
from diptych.commerce.purchase_intent.evaluation.opening import begin, finished
from diptych.commerce.purchase_intent.evaluation.plan import make_folds, plan_of
from diptych.commerce.purchase_intent.evaluation.presets import Preset, chosen_models, preset_named
from diptych.commerce.purchase_intent.evaluation.protocol import Protocol
from diptych.commerce.purchase_intent.evaluation.result import MARKER, Evaluation
from diptych.commerce.purchase_intent.evaluation.results import write_results
from diptych.commerce.purchase_intent.evaluation.unit import Work
from diptych.commerce.purchase_intent.models import MODELS
from diptych.commerce.purchase_intent.splits import SPLITS, Fold, Split
from diptych.core.context import Task, stop_when, stopping, task
from diptych.core.errors import Interrupted, UnknownNameError, UsageError
from diptych.core.extras import require
from diptych.core.locking import exclusive_folder
from diptych.core.processes import in_processes
from diptych.metrics.bootstrap import Bootstrap

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable


# The work of a grid in processes of their own, each of which opens the table itself.
#
# A process computes with one thread, so that what it computes does not depend on how many there are.


def _begin(features: Path, folder: Path, protocol: Protocol) -> Work:
    from diptych.commerce.purchase_intent.features.table import open_features

    table = open_features(features)
    folds = make_folds(table, protocol.split, protocol.folds, protocol.seed)
    return Work(table, folds, protocol, folder)


def _run(work: Work, unit: Unit) -> tuple[Unit, int]:
    return unit, sum(1 for _ in work.run(unit, stopping))


Stop = Callable[[], bool]


def run_grid(work: Work, units: Sequence[Unit], jobs: int, should_stop: Stop) -> int:
    """Fit every model of every unit that is not there yet, and keep its scores."""
    if jobs < 1:
        raise UsageError(f"{jobs} jobs: at least one process is needed")
    missing = {unit: len(work.missing(unit)) for unit in units}
    todo = [unit for unit, count in missing.items() if count]
    left, total, finished = sum(missing.values()), len(units) * len(work.protocol.models), 0
    with task("fitting models", total, "models", total - left) as bar, stop_when(should_stop):
        if jobs == 1 or len(todo) < 2:
            finished = _run_here(work, todo, bar)
        else:
            given = (work.features.folder, work.folder, work.protocol)
            for unit, count in in_processes(todo, _run, jobs, _begin, given):
                bar.advance(count, f"{unit.setting} {unit.feature_set}, step {step_text(unit.step)}")
                finished += count
    if finished < left:
        raise Interrupted("stopped: every model that was fitted is kept", "the same command goes on")
    return left


def _run_here(work: Work, todo: Sequence[Unit], bar: Task) -> int:
    finished = 0
    for unit in todo:
        for model in work.run(unit, stopping):
            bar.advance(1, f"{unit.setting} {unit.feature_set}, step {step_text(unit.step)}: {model}")
            finished += 1
        if stopping():
            break
    return finished


def evaluate(
    features: FeatureTable,
    folder: Path | str,
    *,
    preset: str = "fast",
    models: Iterable[str] | None = None,
    settings: Iterable[str] | None = None,
    sets: Iterable[str] | None = None,
    steps: Iterable[int] | None = None,
    split: str = "random",
    folds: int | None = None,
    balanced: bool = True,
    inner: bool = True,
    importance: bool = True,
    seed: int = 0,
    jobs: int = 1,
    bootstrap: Bootstrap | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Evaluation:
    """Evaluate models on a table of features, or go on where an earlier call was stopped or killed.

    Every model and fold is kept as soon as it is there. The numbers do not depend on ``jobs``.

    Args:
        features: the table, in its folder.
        folder: where the evaluation is, or will be.
        preset: ``fast`` or ``paper``: what of the following is taken when it is not named.
        models: names of :data:`~diptych.commerce.purchase_intent.models.MODELS`.
        settings: ``anonymous`` and ``identified``, or ``all`` of a table of whole sessions.
        sets: ``baseline`` and ``extended``, or ``all``.
        steps: pages that are open.
        split: ``random``, ``grouped`` or ``time``.
        folds: the preset's of equal folds when None, one of a split by time.
        balanced: weigh classes equally where a model can; cells say how.
        inner: fit a threshold and a calibration inside every training part; without, training takes half the
            time and there is no tuned F1 and no calibrated probability.
        importance: compute the importance of features, of the first model that has impurities.
        seed: of splits, models, permutations.
        jobs: processes.
        bootstrap: how intervals are made, over persons.
        should_stop: asked between models.

    Raises:
        UnknownNameError: a name that there is not.
        UsageError: a list without members, no jobs, a folder of other things, a split by time without times.
        DataError: nothing can be trained.
        MismatchError: the folder holds an evaluation of another protocol.
        StorageError: another process evaluates there just now; or it cannot be written.
        Interrupted: ``should_stop`` said so; the same call goes on.
    """
    sklearn = require("sklearn", "commerce", "evaluating models")
    folder, how, base, way = Path(folder), bootstrap or Bootstrap(), preset_named(preset), SPLITS.get(split)
    protocol = Protocol(
        features=features.fingerprint,
        models=tuple(_some("model", base.models if models is None else chosen_models(models))),
        settings=tuple(_among("setting", settings, features.settings)),
        sets=tuple(_among("feature set", sets, features.sets)),
        steps=tuple(_steps(steps, features, base)),
        split=way.name,
        folds=_default_folds(way, base) if folds is None else folds,
        balanced=balanced,
        inner=inner,
        importance=importance,
        seed=seed,
        scikit_learn=sklearn.__version__,
    )
    parts = make_folds(features, protocol.split, protocol.folds, protocol.seed)
    plan = plan_of(features, parts, protocol)
    with exclusive_folder(folder, MARKER):
        begin(folder, features, protocol, _about(features, parts, protocol))
        there = finished(folder, how)
        if there is not None:
            return there
        run_grid(Work(features, parts, protocol, folder), list(plan.units()), jobs, should_stop)
        return write_results(folder, features, plan, protocol, how)


def _default_folds(split: Split, preset: Preset) -> int:
    return min(split.default_folds, preset.folds)


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
    wanted = set(asked)
    for step in sorted(wanted):
        if step not in features.steps:
            raise UnknownNameError("step", str(step), map(str, features.steps))
    return _some("step", [step for step in features.steps if step in wanted])


def _about(features: FeatureTable, folds: Sequence[Fold], protocol: Protocol) -> dict[str, Any]:
    """What ``evaluation.json`` says besides the protocol."""
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
