"""One process pool: tasks in worker processes that end with the process that started them."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from diptych.core.context import stop_when, stopping
from diptych.core.errors import DiptychError

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

_POLL = 0.5  # seconds between two looks at whether to stop

Task = TypeVar("Task")
Done = TypeVar("Done")


def in_processes(
    tasks: Sequence[Task],
    work: Callable[..., Done],
    processes: int,
    setup: Callable[..., Any] | None = None,
    setup_args: tuple[Any, ...] = (),
    *,
    ordered: bool = False,
) -> Iterator[Done]:
    """Yield ``work(task)`` of all tasks as they end, or in the tasks' order.

    With one process, or one task, everything happens in this one. Workers are plain interpreters that do
    not import the program which started them (no ``if __name__ == "__main__"`` is needed), ignore Ctrl-C
    and see this process's stop condition as their own (:func:`diptych.core.context.stopping`); on a stop,
    tasks that have begun may end and the others are dropped.

    Args:
        tasks: picklable, as are ``work``, ``setup``, ``setup_args`` and results.
        processes: at most so many.
        setup: called once in every process; ``work`` gets its result as its first argument.

    Raises:
        DiptychError: a worker was killed; or what a task raised.
    """
    processes = min(processes, len(tasks))
    if processes <= 1:
        bound = _bound(work, setup, setup_args)
        for task in tasks:
            if stopping():
                return
            yield bound(task)
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy locks that other threads hold
    stop = context.Event()
    arguments = (stop, _kept, work, setup, setup_args)
    try:
        with ProcessPoolExecutor(processes, context, _begin, arguments) as pool:
            try:
                with _without_main():
                    futures: list[Future[Done]] = [pool.submit(_run, task) for task in tasks]
                waiting = {futures[0]} if ordered else set(futures)
                given = 1
                while waiting:
                    ended, waiting = wait(waiting, _POLL, FIRST_COMPLETED)
                    for future in ended:
                        if not future.cancelled():
                            yield future.result()
                        if ordered and given < len(futures):
                            waiting = {futures[given]}
                            given += 1
                    if stopping() and not stop.is_set():
                        stop.set()
                        for future in futures:
                            future.cancel()
            except BaseException:
                stop.set()
                pool.shutdown(cancel_futures=True)  # no worker writes any more when the lock is released
                raise
    except BrokenProcessPool:
        raise DiptychError(
            "a worker process was killed, perhaps for lack of memory; finished work is kept",
            "the same command resumes; give it fewer processes",
        ) from None


@contextmanager
def _without_main() -> Iterator[None]:
    """Hide the program from workers that are spawned: they would import it, and run what it does not guard."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _bound(
    work: Callable[..., Done], setup: Callable[..., Any] | None, setup_args: tuple[Any, ...]
) -> Callable[..., Done]:
    return work if setup is None else partial(work, setup(*setup_args))


_worker: tuple[Event, Callable[..., Any]] | None = None


def _begin(stop: Event, keep_memory: bool, *work: Any) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if keep_memory:
        keep_freed_memory()
    _worker = stop, _bound(*work)


def _end_with_parent() -> None:
    """End this worker when the process that started it is killed; it would wait for tasks for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _run(task: Any) -> Any:
    assert _worker is not None
    stop, work = _worker
    with stop_when(stop.is_set):
        return work(task)


# On Linux the C library gives each large block back to the system when it is freed, so that a network on the CPU spends
# up to two thirds of its time having the same pages zeroed again and again. One call at the start of a program makes it
# two to three times faster; the price is that the process keeps up to 2 GB that it no longer needs.

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_TWO_GB = 2**31 - 1
_kept = False  # whether it was done, so that processes that this one starts do likewise


def keep_freed_memory() -> bool:
    """Tell glibc's allocator to keep large blocks, and return whether it does; elsewhere nothing happens.

    A setting of the whole process, so the command line makes it and the library does not.
    """
    global _kept
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    _kept = bool(mallopt(_M_MMAP_MAX, 0)) and bool(mallopt(_M_TRIM_THRESHOLD, _TWO_GB))
    return _kept
