"""How far it is: bars with rate and time left on a terminal, a line now and then in a log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from diptych.cli.console import console, is_main_process
from diptych.core.context import Reporter, Task, report_to

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

_WORTH_SHOWING = 2.0  # seconds
_BETWEEN_LINES = 10.0


class _Clock:
    """What both kinds of task count: steps, rate, seconds left."""

    def __init__(self, total: int | None, done: int) -> None:
        self.total, self.done = total, done
        self._begun_with, self._start = done, time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start

    @property
    def rate(self) -> str:
        per_second = (self.done - self._begun_with) / max(1e-9, self.seconds)
        return f"{per_second:,.0f}/s" if per_second >= 10 else f"{per_second:.1f}/s"

    @property
    def left(self) -> str:
        gained = self.done - self._begun_with
        if self.total is None or not gained:
            return "?"
        seconds = round((self.total - self.done) * self.seconds / gained)
        return f"{seconds // 60}:{seconds % 60:02d}"


class _BarTask:
    def __init__(self, bars: Progress, number: TaskID, clock: _Clock) -> None:
        self._bars, self.number, self.clock = bars, number, clock

    def advance(self, steps: int = 1, note: str = "") -> None:
        self.clock.done += steps
        self._bars.update(self.number, advance=steps, rate=self.clock.rate, note=note)


class _Bars(Reporter):
    """Bars on a terminal; those of more than two seconds stay."""

    def __init__(self, terminal: Console) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}  {task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("[dim]{task.fields[note]}"),
            console=terminal,
            refresh_per_second=4,
        )
        self._running = 0

    def start(self, description: str, total: int | None, unit: str, done: int) -> Task:
        if not self._running:
            self._bars.start()
        self._running += 1
        number = self._bars.add_task(description, total=total, completed=done, unit=unit, rate="", note="")
        return _BarTask(self._bars, number, _Clock(total, done))

    def finish(self, task: Task) -> None:
        assert isinstance(task, _BarTask)
        self._bars.stop_task(task.number)
        if task.clock.seconds < _WORTH_SHOWING:
            self._bars.remove_task(task.number)
        self._running -= 1
        if not self._running:
            self._bars.stop()
            for number in self._bars.task_ids:
                self._bars.remove_task(number)


class _LineTask:
    def __init__(self, log: Console, description: str, unit: str, clock: _Clock) -> None:
        self._log, self._description, self._unit, self.clock = log, description, unit, clock
        self._note, self._last = "", 0.0

    def advance(self, steps: int = 1, note: str = "") -> None:
        self.clock.done += steps
        self._note = note
        if self.clock.seconds - self._last >= _BETWEEN_LINES:
            self._last = self.clock.seconds
            self.line(f"{self.clock.left} left")

    def line(self, ending: str) -> None:
        """Where it stands, in one line."""
        of = "" if self.clock.total is None else f"/{self.clock.total:,}"
        parts = [
            f"{self._description} {self.clock.done:,}{of} {self._unit}",
            self.clock.rate,
            ending,
            self._note,
        ]
        self._log.print("  ".join(part for part in parts if part), markup=False)


class _Lines(Reporter):
    """A line every ten seconds, for logs and pipes."""

    def __init__(self, log: Console) -> None:
        self._log = log

    def start(self, description: str, total: int | None, unit: str, done: int) -> Task:
        return _LineTask(self._log, description, unit, _Clock(total, done))

    def finish(self, task: Task) -> None:
        assert isinstance(task, _LineTask)
        if task.clock.seconds >= _WORTH_SHOWING:
            task.line(f"in {task.clock.seconds:.0f} s")


@contextmanager
def progress() -> Iterator[None]:
    """Show the progress of everything inside the block, on standard error."""
    if not is_main_process():
        yield
        return
    target = console(stderr=True)
    with report_to(_Bars(target) if target.is_terminal else _Lines(target)):
        yield
