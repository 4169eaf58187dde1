"""Do the cells of a grid that are missing, in this process or in several, to the same bits."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING

from diptych.commerce.category_to_image.evaluation.cell import Cell, CellName
from diptych.commerce.category_to_image.evaluation.work import Work
from diptych.core.errors import DiptychError, Interrupted, StorageError, UsageError
from diptych.core.progress import Task, task

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

__all__ = ["run_grid"]

_POLL = 0.5  # seconds between two looks at whether to stop
_STOPPED = ("stopped: every model that was measured is kept", "the same command goes on")

Stop = Callable[[], bool]


def run_grid(work: Work, jobs: int = 1, should_stop: Stop = lambda: False) -> int:
    """Make every cell that is not there yet, or is damaged.

    Args:
        work: what cells need.
        jobs: processes.
        should_stop: asked between cells, and while one is trained.

    Returns:
        How many had to be made.

    Raises:
        Interrupted: ``should_stop`` said so; the same call goes on.
        UsageError: no processes.
        DiptychError: a process was killed; or what a cell raised.
    """
    if jobs < 1:
        raise UsageError(f"{jobs} jobs: at least one process is needed")
    names = list(work.names())
    todo = [name for name in names if not _there(work, name)]
    with task("models", len(names), "models", len(names) - len(todo)) as bar:
        if jobs == 1 or len(todo) < 2:
            for name in todo:
                if should_stop():
                    raise Interrupted(*_STOPPED)
                work.run(name, should_stop)
                bar.advance(1, name.text)
        elif _run_in_processes(work, todo, min(jobs, len(todo)), bar, should_stop) < len(todo):
            raise Interrupted(*_STOPPED)
    return len(todo)


def _there(work: Work, name: CellName) -> bool:
    file = name.file(work.folder)
    if not file.is_file():
        return False
    try:
        Cell.open(file)
    except StorageError:
        return False
    return True


def _run_in_processes(work: Work, todo: Sequence[CellName], jobs: int, bar: Task, should_stop: Stop) -> int:
    context = multiprocessing.get_context(
        "spawn"
    )  # a fork would share locks of threads that it does not have
    stop = context.Event()
    finished = 0
    try:
        with ProcessPoolExecutor(jobs, context, _begin, (work, stop)) as pool:
            try:
                waiting: set[Future[CellName | None]] = {pool.submit(_run, name) for name in todo}
                while waiting:
                    done, waiting = wait(waiting, _POLL, FIRST_COMPLETED)
                    for future in done:
                        if not future.cancelled() and (name := future.result()) is not None:
                            bar.advance(1, name.text)
                            finished += 1
                    if should_stop() and not stop.is_set():
                        stop.set()
                        waiting = {future for future in waiting if not future.cancel()}
            except BaseException:
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    except BrokenProcessPool:
        raise DiptychError(
            "a process was killed, perhaps for want of memory: every model that was measured is kept",
            "the same command goes on; give it fewer --jobs",
        ) from None
    return finished


_work: Work | None = None
_stop: Event | None = None


def _begin(work: Work, stop: Event) -> None:
    """What a process does first."""
    global _work, _stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started them lets them finish
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _work, _stop = work, stop


def _end_with_parent() -> None:
    """A process whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _run(name: CellName) -> CellName | None:
    assert _work is not None
    assert _stop is not None
    if _stop.is_set():
        return None
    try:
        _work.run(name, _stop.is_set)
    except Interrupted:
        return None
    return name
