"""What a person sees: lines, tables, and errors in one line with their way out."""

from __future__ import annotations

import logging
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from diptych.core.errors import DiptychError

if TYPE_CHECKING:
    from rich.console import Console

FILE_WIDTH = 160
"""Characters per line of a table that goes to a file or another program."""


_ACTING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What a terminal would obey rather than show, or could not print: names out of data may hold it."""


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


def say(text: str) -> None:
    """Print one line."""
    console().print(harmless(text), markup=False)


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

    said = ", or: ".join(one if isinstance(one, str) else shlex.join(map(str, one)) for one in commands)
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


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Sequence[str] = (),
    caption: str = "",
) -> None:
    """Print a table; the columns in ``numbers`` are aligned to the right."""
    from rich.text import Text

    from diptych.core.table import Cell, Table

    cells = [[Cell(harmless(cell)) for cell in row] for row in rows]
    table = Table(harmless(title), columns, cells).rich(numbers)
    console().print(table)
    if caption:
        console().print(Text(harmless(caption), style="dim"))


def harmless(text: str) -> str:
    """Show what a terminal would obey."""
    return _ACTING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
