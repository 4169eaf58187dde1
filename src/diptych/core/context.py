"""Progress and stopping are ambient: library code reports and asks, the program decides who listens.

Long loops are wrapped in :func:`track` or :func:`task`, and call :func:`check_stop` between units that
are safe on disk. Nothing is printed and nothing stops unless a program installs a reporter
(:func:`report_to`) or a stop condition (:func:`stop_when`), as the command line does.
"""

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

from diptych.core.errors import Interrupted

T = TypeVar("T")

RESUME = "the same command resumes"


class Task(Protocol):
    """One progress bar."""

    def advance(self, steps: int = 1, note: str = "") -> None:
        """Count ``steps`` more units as done, with an optional short note (a loss, a score)."""


class Reporter(Protocol):
    """Draws progress bars."""

    def start(self, description: str, total: int | None, unit: str, done: int) -> Task:
        """Show a new bar."""

    def finish(self, task: Task) -> None:
        """Close a bar, complete or not."""


class _Silent:
    def advance(self, steps: int = 1, note: str = "") -> None:
        pass


_reporter: ContextVar[Reporter | None] = ContextVar("reporter", default=None)
_stop: ContextVar[Callable[[], bool] | None] = ContextVar("stop", default=None)


@contextmanager
def report_to(reporter: Reporter | None) -> Iterator[None]:
    """Send the progress of everything inside the block to ``reporter``."""
    token = _reporter.set(reporter)
    try:
        yield
    finally:
        _reporter.reset(token)


def reporting() -> bool:
    """Return whether progress is shown already."""
    return _reporter.get() is not None


@contextmanager
def task(description: str, total: int | None = None, unit: str = "", done: int = 0) -> Iterator[Task]:
    """Show a bar of ``total`` units, of which ``done`` were finished by an earlier call."""
    reporter = _reporter.get()
    if reporter is None:
        yield _Silent()
        return
    bar = reporter.start(description, total, unit, done)
    try:
        yield bar
    finally:
        reporter.finish(bar)


def track(items: Iterable[T], description: str, total: int | None = None, unit: str = "") -> Iterator[T]:
    """Yield ``items`` and advance a bar after each."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    with task(description, total, unit) as bar:
        for item in items:
            yield item
            bar.advance()


@contextmanager
def stop_when(condition: Callable[[], bool]) -> Iterator[None]:
    """Let work inside the block end at its next safe point once ``condition()`` is true."""
    token = _stop.set(_stop.get() if condition is stopping else condition)
    try:
        yield
    finally:
        _stop.reset(token)


def stopping() -> bool:
    """Return whether work should end at its next safe point."""
    condition = _stop.get()
    return condition is not None and condition()


def check_stop(done: str = "stopped; what is finished is kept", fix: str = RESUME) -> None:
    """Raise :class:`Interrupted` where a stop was requested; call it where everything reported is on disk."""
    if stopping():
        raise Interrupted(done, fix)
