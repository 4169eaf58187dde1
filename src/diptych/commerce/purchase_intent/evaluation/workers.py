"""The work of a grid in processes of their own, each of which opens the table itself.

A process computes with one thread, so that what it computes does not depend on how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from diptych.commerce.purchase_intent.evaluation.cells import Unit, step_text
from diptych.commerce.purchase_intent.evaluation.plan import make_folds
from diptych.commerce.purchase_intent.evaluation.protocol import Protocol
from diptych.commerce.purchase_intent.evaluation.unit import Work
from diptych.core import crowd
from diptych.core.progress import Task

__all__ = ["run_in_processes"]


def run_in_processes(
    work: Work, units: Sequence[Unit], jobs: int, bar: Task, should_stop: Callable[[], bool]
) -> int:
    """Run units in ``jobs`` processes; gives how many models were fitted before the end or the stop.

    Raises:
        DiptychError: a process was killed.
    """
    finished = 0

    def done(ended: tuple[Unit, int]) -> None:
        nonlocal finished
        unit, count = ended
        bar.advance(count, f"{unit.setting} {unit.feature_set}, step {step_text(unit.step)}")
        finished += count

    given = (work.features.folder, work.folder, work.protocol)
    kept = "every model that was fitted"
    crowd.run_in_processes(units, jobs, _begin, given, _run, done, should_stop, kept)
    return finished


def _begin(features: Path, folder: Path, protocol: Protocol) -> Work:
    from diptych.commerce.purchase_intent.features.table import open_features

    table = open_features(features)
    folds = make_folds(table, protocol.split, protocol.folds, protocol.seed)
    return Work(table, folds, protocol, folder)


def _run(work: Work, unit: Unit, should_stop: Callable[[], bool]) -> tuple[Unit, int]:
    return unit, sum(1 for _ in work.run(unit, should_stop))
