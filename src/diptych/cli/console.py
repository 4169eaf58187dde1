"""What a person sees: lines, tables, and errors in one line with their way out."""

from __future__ import annotations

import json
import logging
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import TYPE_CHECKING, Any

from typer import Exit

from diptych.core.context import Reporter, Task, report_to, stop_when
from diptych.core.errors import DiptychError
from diptych.core.table import Table, harmless

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID


FILE_WIDTH = 160
"""Characters per line of a table that goes to a file or another program."""


def is_main_process() -> bool:
    """Whether this process is the one that talks (of several that train together)."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


def console(stderr: bool = False) -> Console:
    """A Rich console; silent in all processes of a training but the first."""
    from rich.console import Console

    console = Console(stderr=stderr, quiet=not is_main_process(), highlight=False, soft_wrap=True)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = FILE_WIDTH
    return console


class _Collected:
    """What a verb prints, kept for ``--json``."""

    def __init__(self) -> None:
        self.tables: list[dict[str, Any]] = []
        self.lines: list[str] = []
        self.next: list[str] = []


_collected: ContextVar[_Collected | None] = ContextVar("collected", default=None)
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


@contextmanager
def output(as_json: bool, quiet: bool) -> Iterator[None]:
    """Print one JSON object of everything that is printed inside the block, or tables alone."""
    collected = _Collected() if as_json else None
    tokens = _collected.set(collected), _quiet.set(quiet)
    try:
        try:
            yield
        except Exit:
            _print_json(collected)
            raise
        _print_json(collected)
    finally:
        _collected.reset(tokens[0])
        _quiet.reset(tokens[1])


def _print_json(collected: _Collected | None) -> None:
    if collected is not None and is_main_process():
        sys.stdout.write(json.dumps(vars(collected), ensure_ascii=False, allow_nan=False, indent=1) + "\n")


def say(text: str) -> None:
    """Print one line."""
    if (collected := _collected.get()) is not None:
        collected.lines.append(text)
    elif not _quiet.get():
        console().print(harmless(text), markup=False)


def warn(text: str, head: str = "warning") -> None:
    """Print one line that a reader must not miss; ``--quiet`` keeps it."""
    if (collected := _collected.get()) is not None:
        collected.lines.append(f"{head}: {text}")
        return
    from rich.text import Text

    console().print(Text(f"{head}: ", style="bold red").append(harmless(text), style="bold not red"))


class _Saying(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


@contextmanager
def messages() -> Iterator[None]:
    """Print what studies log inside the block, one line before each training and measurement."""
    logger, handler = logging.getLogger("diptych.studies"), _Saying()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def next_step(*commands: str | Sequence[object]) -> None:
    """Say in one line what to do next: commands as lists of words, which are quoted for a shell, or sentences."""
    from rich.text import Text

    lines = [one if isinstance(one, str) else shlex.join(map(str, one)) for one in commands]
    if (collected := _collected.get()) is not None:
        collected.next += lines
        return
    if _quiet.get():
        return
    said = ", or: ".join(lines)
    console().print(Text("next: ", style="dim").append(harmless(said), style="not dim"))


def fail(error: DiptychError) -> int:
    """Print an error as one line with its hint; gives the exit code."""
    if is_main_process():
        from rich.text import Text

        line = Text("error: ", style="bold red").append(harmless(error.message), style="not bold default")
        console(stderr=True).print(line)
        if error.fix:
            console(stderr=True).print(
                Text("  fix: ", style="bold").append(harmless(error.fix), style="not bold default")
            )
    return error.exit_code


def show(*shown: Table | str) -> None:
    """Print tables, each as wide as the terminal allows, and lines."""
    for one in shown:
        if isinstance(one, str):
            say(one)
        elif (collected := _collected.get()) is not None:
            collected.tables.append(one.content())
        else:
            console().print(one)


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
    if not is_main_process() or _quiet.get():
        yield
        return
    target = console(stderr=True)
    with report_to(_Bars(target) if target.is_terminal else _Lines(target)):
        yield


@contextmanager
def stop_on_signal() -> Iterator[None]:
    """Let Ctrl-C or a termination signal be the stop of the work inside the block."""
    asked = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        os.write(2, b"\nstopping at the next safe point; once more stops at once\n")

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with stop_when(lambda: asked):
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
