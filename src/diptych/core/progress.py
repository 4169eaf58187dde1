"""How long work says how far it is, without printing: library code tracks, the CLI draws.

Library code wraps its loops in :func:`track`; nothing happens unless a reporter is installed with
:func:`report_to`, which the CLI does with a Rich bar that shows rate and time left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar("T")


class Task(Protocol):
    """One bar."""

    def advance(self, steps: int = 1, note: str = "") -> None:
        """Say that ``steps`` more units are done, with an optional short note (a loss, a score)."""


class Reporter(Protocol):
    """Whatever draws the bars."""

    def start(self, description: str, total: int | None, unit: str, done: int) -> Task:
        """Show a new bar."""

    def finish(self, task: Task) -> None:
        """The work of a bar is over, done or not."""


class _Silent:
    def advance(self, steps: int = 1, note: str = "") -> None:
        pass


_reporter: ContextVar[Reporter | None] = ContextVar("reporter", default=None)


@contextmanager
def report_to(reporter: Reporter | None) -> Iterator[None]:
    """Send the progress of everything inside the block to ``reporter``."""
    token = _reporter.set(reporter)
    try:
        yield
    finally:
        _reporter.reset(token)


@contextmanager
def task(description: str, total: int | None = None, unit: str = "", done: int = 0) -> Iterator[Task]:
    """A unit of work with ``total`` steps, of which ``done`` were done in an earlier life."""
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
