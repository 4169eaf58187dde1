"""Tasks in several processes that were started for them, each with one thing that is made once in every process.

Ctrl-C is for the process that started them: it lets every one finish what it is at, and a process whose starter was
killed ends by itself.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any, TypeVar

from diptych.core.errors import DiptychError

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

_POLL = 0.5  # seconds between two looks at whether to stop

Task = TypeVar("Task")
Done = TypeVar("Done")


def run_in_processes(
    tasks: Sequence[Task],
    jobs: int,
    begin: Callable[..., Any],
    given: tuple[Any, ...],
    run: Callable[[Any, Task, Callable[[], bool]], Done],
    done: Callable[[Done], None],
    should_stop: Callable[[], bool],
    kept: str,
) -> None:
    """Run ``tasks`` in ``jobs`` processes until the end, or until ``should_stop`` says so.

    Args:
        should_stop: asked twice a second.
    """
    context = multiprocessing.get_context(
        "spawn"
    )  # a fork would share locks of threads that it does not have
    stop = context.Event()
    try:
        with ProcessPoolExecutor(jobs, context, _begin, (begin, given, run, stop)) as pool:
            try:
                waiting: set[Future[Done]] = {pool.submit(_run, task) for task in tasks}
                while waiting:
                    ended, waiting = wait(waiting, _POLL, FIRST_COMPLETED)
                    for future in ended:
                        if not future.cancelled():
                            done(future.result())
                    if should_stop() and not stop.is_set():
                        stop.set()
                        waiting = {future for future in waiting if not future.cancel()}
            except BaseException:
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    except BrokenProcessPool:
        raise DiptychError(
            f"a process was killed, perhaps for want of memory: {kept} is kept",
            "the same command goes on; give it fewer --jobs",
        ) from None


_made: Any = None
_act: Callable[[Any, Any, Callable[[], bool]], Any] | None = None
_stop: Event | None = None


def _begin(begin: Callable[..., Any], given: tuple[Any, ...], run: Callable[..., Any], stop: Event) -> None:
    """What a process does first."""
    global _made, _act, _stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _made, _act, _stop = begin(*given), run, stop


def _end_with_parent() -> None:
    """A process whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _run(task: Any) -> Any:
    assert _act is not None
    assert _stop is not None
    return _act(_made, task, _stop.is_set)
