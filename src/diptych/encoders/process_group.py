"""Processes that are started, watched and ended together.

The first error of one ends all and is raised here as what it is. A request to stop is passed on and
answered by each when it comes to it; Ctrl-C reaches all of them at once, so they do not listen to it
themselves. None is left when this process ends, even if it is killed.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, TypeAlias

from diptych.core import errors
from diptych.core.errors import DiptychError, UsageError
from diptych.encoders.sides import Side

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

__all__ = ["ProcessGroup"]

Work: TypeAlias = Callable[[int, Any, Callable[[], bool]], None]

_LOOK_SECONDS = 0.2


class ProcessGroup:
    """Processes that do one job.

    Args:
        work: (rank, job, should_stop), called in each process; one that can be imported.
        job: what each is told; pickled on the way, in memory.
        count: how many.
        should_stop: asked all the time here; what it says is what theirs says.
    """

    def __init__(self, work: Work, job: Any, count: int, should_stop: Callable[[], bool]) -> None:
        context = get_context("spawn")
        self._should_stop = should_stop
        self._stop = context.Event()
        self._failures = context.SimpleQueue()
        self._processes = [
            context.Process(
                target=_worked, args=(work, rank, job, os.getpid(), self._stop, self._failures), daemon=True
            )
            for rank in range(count)
        ]

    def run(self, sides: Sequence[Side]) -> None:
        """Start them, show how far ``sides`` are, and end together.

        Raises:
            UsageError: the job cannot be pickled.
            DiptychError: that of the first process that failed; the others are ended.
        """
        try:
            with _deaf_to_interrupts():
                for process in self._processes:
                    _start(process)
            for side in sides:
                self._watch(side)
            while self._going_on():
                pass
            self._raise_failure()
        finally:
            for process in self._processes:
                if process.is_alive():
                    process.terminate()
                if process.pid is not None:
                    process.join()

    def _watch(self, side: Side) -> None:
        before, going = side.rows.done(), True
        with side.bar(before) as bar:
            while going and before < side.rows.plan.count:
                going = self._going_on()
                done = side.rows.done()
                if done > before:
                    bar.advance(done - before)
                before = done

    def _going_on(self) -> bool:
        """Wait a little; whether some process still works and none has failed."""
        if self._should_stop():
            self._stop.set()
        working = [process.sentinel for process in self._processes if process.is_alive()]
        if working:
            wait(working, timeout=_LOOK_SECONDS)
        return not self._failed() and any(process.is_alive() for process in self._processes)

    def _failed(self) -> list[int]:
        return [rank for rank, process in enumerate(self._processes) if process.exitcode not in (None, 0)]

    def _raise_failure(self) -> None:
        failed = self._failed()
        if not failed:
            return
        if not self._failures.empty():
            raise _error_of(*self._failures.get())
        code = self._processes[failed[0]].exitcode or 0
        which = f"process {failed[0] + 1} of {len(self._processes)}"
        if code < 0:
            raise DiptychError(
                f"{which} was ended by signal {-code}",
                "if memory ran out, use fewer processes; the same command goes on",
            )
        raise DiptychError(
            f"{which} failed; what it said stands above",
            'in a script, call this below if __name__ == "__main__":',
        )


def _worked(work: Work, rank: int, job: Any, parent: int, stop: Any, failures: Any) -> None:
    """One process, from its start to its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        work(rank, job, lambda: bool(stop.is_set()) or os.getppid() != parent)
    except DiptychError as error:
        failures.put((type(error).__name__, error.message, error.fix))
        sys.exit(1)


def _start(process: SpawnProcess) -> None:
    try:
        process.start()
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UsageError(
            f"the collection cannot be handed to other processes: {error}", "use one process"
        ) from error


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes that are started inside ignore Ctrl-C from their first moment."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _error_of(name: str, message: str, fix: str) -> DiptychError:
    """The error of another process, of its own class."""
    kind: type[DiptychError] = getattr(errors, name, DiptychError)
    error = kind.__new__(kind)
    DiptychError.__init__(error, message, fix)
    return error
