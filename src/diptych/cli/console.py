"""What a person sees: tables, one-line errors with their way out, bars with rate and time left."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from diptych.core.errors import DiptychError
from diptych.core.progress import Reporter, Task, report_to

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["console", "fail", "is_main_process", "next_step", "print_table", "progress", "say"]


def is_main_process() -> bool:
    """Whether this process is the one that talks (of several that train together)."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


def console(stderr: bool = False) -> Console:
    """A Rich console; silent in all processes of a training but the first."""
    from rich.console import Console

    return Console(stderr=stderr, quiet=not is_main_process(), highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """Print one line."""
    console().print(text, markup=False)


def next_step(command: str) -> None:
    """Say in one line what to do next."""
    console().print(f"[dim]next:[/dim] {command}")


def fail(error: DiptychError) -> int:
    """Print an error as one line with its hint; gives the exit code."""
    if is_main_process():
        from rich.text import Text

        line = Text("error: ", style="bold red").append(error.message, style="not bold default")
        console(stderr=True).print(line)
        if error.fix:
            console(stderr=True).print(
                Text("  fix: ", style="bold").append(error.fix, style="not bold default")
            )
    return error.exit_code


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> None:
    """Print a table: first column left, the others right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)
    if caption:
        console().print(Text(caption, style="dim"))


class _RichReporter(Reporter):
    """Bars on standard error."""

    def __init__(self) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}  {task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            TextColumn("[dim]{task.fields[note]}"),
            console=console(stderr=True),
            refresh_per_second=4,
        )
        self._running = 0

    def start(self, description: str, total: int | None, unit: str, done: int) -> Task:
        if self._running == 0:
            self._progress.start()
        self._running += 1
        number = self._progress.add_task(
            description, total=total, completed=done, unit=unit, rate="", note=""
        )
        return _RichTask(self._progress, number, done)

    def finish(self, task: Task) -> None:
        assert isinstance(task, _RichTask)
        self._progress.stop_task(task.number)
        if not task.lasting:
            self._progress.remove_task(task.number)
        self._running -= 1
        if self._running == 0:
            self._progress.stop()
            for number in list(self._progress.task_ids):
                self._progress.remove_task(number)


class _RichTask:
    def __init__(self, progress: object, number: int, done: int) -> None:
        import time

        self._progress, self.number, self._done, self._clock = progress, number, done, time.monotonic
        self._start, self._begun = self._clock(), done

    @property
    def lasting(self) -> bool:
        """Whether it took long enough to stay on the screen."""
        return self._clock() - self._start > 2

    def advance(self, steps: int = 1, note: str = "") -> None:
        self._done += steps
        seconds = max(1e-9, self._clock() - self._start)
        rate = (self._done - self._begun) / seconds
        shown = f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"
        self._progress.update(self.number, advance=steps, rate=shown, note=note)  # type: ignore[attr-defined]


@contextmanager
def progress() -> Iterator[None]:
    """Draw the progress of everything inside the block."""
    if not is_main_process():
        yield
        return
    with report_to(_RichReporter()):
        yield
