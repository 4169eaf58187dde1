"""The work of a grid in processes of their own, each of which opens the table itself.

A process computes with one thread, so that what it computes does not depend on how many there are. Ctrl-C is for
the process that started them: it lets every one finish the model that it is at.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.commerce.purchase_intent.evaluation.cells import Unit, step_text
from diptych.commerce.purchase_intent.evaluation.plan import make_folds
from diptych.commerce.purchase_intent.evaluation.protocol import Protocol
from diptych.commerce.purchase_intent.evaluation.unit import Work
from diptych.core.errors import DiptychError
from diptych.core.progress import Task

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

__all__ = ["run_in_processes"]

_POLL = 0.5  # seconds between two looks at whether to stop


def run_in_processes(
    work: Work, units: Sequence[Unit], jobs: int, bar: Task, should_stop: Callable[[], bool]
) -> int:
    """Run units in ``jobs`` processes; gives how many models were fitted before the end or the stop.

    Raises:
        DiptychError: a process was killed.
    """
    context = multiprocessing.get_context(
        "spawn"
    )  # a fork would share locks of threads that it does not have
    stop = context.Event()
    given = (work.features.folder, work.folder, work.protocol, stop)
    finished = 0
    try:
        with ProcessPoolExecutor(jobs, context, _begin, given) as pool:
            try:
                waiting: set[Future[tuple[Unit, int]]] = {pool.submit(_run, unit) for unit in units}
                while waiting:
                    done, waiting = wait(waiting, _POLL, FIRST_COMPLETED)
                    for future in done:
                        if not future.cancelled():
                            unit, count = future.result()
                            bar.advance(
                                count, f"{unit.setting} {unit.feature_set}, step {step_text(unit.step)}"
                            )
                            finished += count
                    if should_stop() and not stop.is_set():
                        stop.set()
                        waiting = {future for future in waiting if not future.cancel()}
            except BaseException:
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    except BrokenProcessPool:
        raise DiptychError(
            "a process was killed, perhaps for want of memory: every model that was fitted is kept",
            "the same command goes on; give it fewer --jobs",
        ) from None
    return finished


_work: Work | None = None
_stop: Event | None = None


def _begin(features: Path, folder: Path, protocol: Protocol, stop: Event) -> None:
    """What a process does first."""
    from diptych.commerce.purchase_intent.features.table import open_features

    global _work, _stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    table = open_features(features)
    folds = make_folds(table, protocol.split, protocol.folds, protocol.seed)
    _work, _stop = Work(table, folds, protocol, folder), stop


def _end_with_parent() -> None:
    """A process whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _run(unit: Unit) -> tuple[Unit, int]:
    assert _work is not None
    assert _stop is not None
    return unit, sum(1 for _ in _work.run(unit, _stop.is_set))
