"""Console output: lines, tables, and errors in one line with their way out."""

from __future__ import annotations

import json
import logging
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import TYPE_CHECKING, Any

from typer import Exit

from diptych.core.context import report_to, stop_when
from diptych.core.errors import DiptychError
from diptych.core.table import Table, harmless

if TYPE_CHECKING:
    from rich.console import Console


# Characters per line of a table that goes to a file or another program.
FILE_WIDTH = 160


def is_main_process() -> bool:
    """Return whether this process prints (of several that train together)."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


def console(stderr: bool = False) -> Console:
    """A Rich console; silent in all processes of a training but the first."""
    from rich.console import Console

    console = Console(stderr=stderr, quiet=not is_main_process(), highlight=False, soft_wrap=True)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = FILE_WIDTH
    return console


# What a verb prints, kept for ``--json``.
_collected: ContextVar[dict[str, list[Any]] | None] = ContextVar("collected", default=None)
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


@contextmanager
def output(as_json: bool, quiet: bool) -> Iterator[None]:
    """Print one JSON object of everything that is printed inside the block, or only tables."""
    kept: dict[str, list[Any]] = {"tables": [], "lines": [], "next": []}
    collected, code = kept if as_json else None, None
    tokens = _collected.set(collected), _quiet.set(quiet)
    try:
        try:
            yield
        except Exit as ended:
            code = ended
        if collected is not None and is_main_process():
            printed = json.dumps(collected, ensure_ascii=False, allow_nan=False, indent=1)
            sys.stdout.write(printed + "\n")
        if code is not None:
            raise code
    finally:
        _collected.reset(tokens[0])
        _quiet.reset(tokens[1])


def say(text: str) -> None:
    if (collected := _collected.get()) is not None:
        collected["lines"].append(text)
    elif not _quiet.get():
        console().print(harmless(text), markup=False)


def warn(text: str, head: str = "warning") -> None:
    """Print one line that a reader must not miss; ``--quiet`` keeps it."""
    if (collected := _collected.get()) is not None:
        collected["lines"].append(f"{head}: {text}")
    else:
        _headed(f"{head}: ", "bold red", text, "bold not red")


def _headed(head: str, style: str, text: str, rest: str, stderr: bool = False) -> None:
    from rich.text import Text

    console(stderr).print(Text(head, style=style).append(harmless(text), style=rest))


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
    """Say in one line what to do next: commands as lists of words; ``open`` is what this system opens pages with."""
    viewer = {"darwin": "open", "win32": "start"}.get(sys.platform, "xdg-open")
    lines = [
        one if isinstance(one, str) else shlex.join(viewer if word == "open" else str(word) for word in one)
        for one in commands
    ]
    if (collected := _collected.get()) is not None:
        collected["next"] += lines
    elif not _quiet.get():
        _headed("next: ", "dim", ", or: ".join(lines), "not dim")


def fail(error: DiptychError) -> int:
    """Print an error as one line with its hint; gives the exit code."""
    if is_main_process():
        _headed("error: ", "bold red", error.message, "not bold default", stderr=True)
        if error.fix:
            _headed("  fix: ", "bold", error.fix, "not bold default", stderr=True)
    return error.exit_code


def show(*shown: Table | str) -> None:
    for one in shown:
        if isinstance(one, str):
            say(one)
        elif (collected := _collected.get()) is not None:
            collected["tables"].append(one.content())
        else:
            console().print(one)


@contextmanager
def progress() -> Iterator[None]:
    """Show the progress of everything inside the block, on standard error."""
    if not is_main_process() or _quiet.get():
        yield
        return
    from diptych.report.progress import Bars, Lines

    target = console(stderr=True)
    with report_to(Bars(target) if target.is_terminal else Lines(target)):
        yield


@contextmanager
def stop_on_signal() -> Iterator[None]:
    """Let Ctrl-C or a termination signal be the stop of the work inside the block."""
    requested = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal requested
        if requested:
            raise KeyboardInterrupt
        requested = True
        os.write(2, b"\nstopping at the next safe point; once more stops at once\n")

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with stop_when(lambda: requested):
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
