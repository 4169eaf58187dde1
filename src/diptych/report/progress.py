"""Progress bars: on a terminal, as lines of a log, in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

from diptych.core.context import Reporter, Task

if TYPE_CHECKING:
    from rich.console import Console

_WORTH_SHOWING = 2.0  # seconds
_BETWEEN_LINES = 10.0
_BETWEEN_FRAMES = 0.25


class _Counted:
    """A task's steps, rate and seconds left; ``show`` is called with the steps of each advance."""

    last = 0.0
    note = ""

    def __init__(self, key: Any, total: int | None, done: int, show: Callable[[_Counted, int], None]) -> None:
        self.key, self.total, self.done, self._show = key, total, done, show
        self._begun_with, self._start = done, time.monotonic()

    def advance(self, steps: int = 1, note: str = "") -> None:
        self.done, self.note = self.done + steps, note
        self._show(self, steps)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start

    @property
    def rate(self) -> str:
        per_second = (self.done - self._begun_with) / max(1e-9, self.seconds)
        if per_second < 0.1:
            return f"{60 * per_second:.1f}/min"
        return f"{per_second:,.0f}/s" if per_second >= 10 else f"{per_second:.1f}/s"

    @property
    def left(self) -> str:
        gained = self.done - self._begun_with
        if self.total is None or not gained:
            return "?"
        seconds = round((self.total - self.done) * self.seconds / gained)
        return f"{seconds // 60}:{seconds % 60:02d}"


class Bars(Reporter):
    """Bars on a terminal; those of more than two seconds stay."""

    def __init__(self, terminal: Console) -> None:
        from rich import progress as rich

        columns = "{task.description}", rich.BarColumn(bar_width=24), rich.MofNCompleteColumn()
        rate = "{task.fields[unit]}  {task.fields[rate]}", rich.TimeElapsedColumn(), "left"
        note = rich.TimeRemainingColumn(), "[dim]{task.fields[note]}"
        self._bars = rich.Progress(*columns, *rate, *note, console=terminal, refresh_per_second=4)
        self._running = 0

    def start(self, description: str, total: int | None, unit: str, done: int) -> Task:
        if not self._running:
            self._bars.start()
        self._running += 1
        key = self._bars.add_task(description, total=total, completed=done, unit=unit, rate="", note="")
        return _Counted(key, total, done, self._show)

    def _show(self, task: _Counted, steps: int) -> None:
        self._bars.update(task.key, advance=steps, rate=task.rate, note=task.note)

    def finish(self, task: Task) -> None:
        assert isinstance(task, _Counted)
        self._running -= 1
        self._bars.stop_task(task.key)
        if task.seconds < _WORTH_SHOWING:
            self._bars.remove_task(task.key)
        if not self._running:
            self._bars.stop()
            for number in self._bars.task_ids:
                self._bars.remove_task(number)


class Lines(Reporter):
    """A line every ten seconds, for logs and pipes."""

    def __init__(self, log: Console) -> None:
        self._log = log

    def start(self, description: str, total: int | None, unit: str, done: int) -> Task:
        return _Counted((description, unit), total, done, self._show)

    def _show(self, task: _Counted, steps: int) -> None:
        if task.seconds - task.last >= _BETWEEN_LINES:
            task.last = task.seconds
            self._line(task, f"{task.left} left")

    def _line(self, task: _Counted, ending: str) -> None:
        description, unit = task.key
        of = "" if task.total is None else f"/{task.total:,}"
        parts = [f"{description} {task.done:,}{of} {unit}", task.rate, ending, task.note]
        self._log.print("  ".join(filter(None, parts)), markup=False)

    def finish(self, task: Task) -> None:
        assert isinstance(task, _Counted)
        if task.seconds >= _WORTH_SHOWING:
            self._line(task, f"in {task.seconds:.0f} s")


class NotebookBars(Reporter):
    """A bar below the cell; one of less than two seconds goes away."""

    def start(self, description: str, total: int | None, unit: str, done: int) -> Task:
        from IPython.display import HTML, display

        handle = display(HTML(""), display_id=True)
        return _Counted((description, unit, handle), total, done, self._show)

    def _show(self, task: _Counted, steps: int) -> None:
        if task.seconds - task.last >= _BETWEEN_FRAMES:
            task.last = task.seconds
            self._draw(task, f"{task.left} left")

    def _draw(self, task: _Counted, ending: str) -> None:
        from IPython.display import HTML

        description, unit, handle = task.key
        total = "" if task.total is None else f" max={task.total}"
        of = "" if task.total is None else f"/{task.total:,}"
        words = escape(f"{task.done:,}{of} {unit}  {task.rate}  {ending}  {task.note}")
        handle.update(HTML(f"{escape(description)} <progress value={task.done}{total}></progress> {words}"))

    def finish(self, task: Task) -> None:
        from IPython.display import HTML

        assert isinstance(task, _Counted)
        if task.seconds < _WORTH_SHOWING:
            task.key[2].update(HTML(""))
        else:
            self._draw(task, f"in {task.seconds:.0f} s")


def in_notebook() -> bool:
    """Return whether a notebook's kernel runs this process."""
    shell = sys.modules.get("IPython")
    kinds = () if shell is None else type(shell.get_ipython()).__mro__
    return any(one.__name__ == "ZMQInteractiveShell" for one in kinds)


def terminal_bars() -> Bars:
    """Return bars on standard error."""
    from rich.console import Console

    return Bars(Console(stderr=True, highlight=False, soft_wrap=True))
