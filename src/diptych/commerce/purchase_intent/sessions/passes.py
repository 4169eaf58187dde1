"""A pass: some files of events in, their part of the three tables out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from diptych.commerce.purchase_intent.engine import Engine
from diptych.commerce.purchase_intent.sessions.assign import ORDER, assigned, needed
from diptych.commerce.purchase_intent.sessions.gather import (
    counted,
    pages_table,
    queries_table,
    sessions_table,
)
from diptych.commerce.purchase_intent.sessions.schema import SessionOptions
from diptych.core.errors import DataError
from diptych.core.extras import require

__all__ = ["Pass", "passes", "run_pass"]

_WORTH_A_PASS = 100_000
"""Events; files with fewer share a pass."""


@dataclass(frozen=True)
class Pass:
    """What is read together.

    Attributes:
        files: of events; no session has events outside.
        events: how many there are.
    """

    files: tuple[Path, ...]
    events: int


def passes(files: Sequence[Path], options: SessionOptions, engine: Engine) -> Iterator[Pass]:
    """Passes over a log's files.

    Everything of one client is in one file, so that a pass needs the memory of a few files at most. A visitor's
    clients are in any of them, and sessions by visitor take one pass over everything, which the engine spills.
    """
    pq = require("pyarrow.parquet", "commerce", "reading a log")
    most = None if options.by == "visitor" else engine.rows_at_once
    together: list[Path] = []
    events = 0
    for file in files:
        rows = pq.read_metadata(file).num_rows
        alone = most is not None and rows >= _WORTH_A_PASS
        if together and most is not None and (alone or events + rows > most):
            yield Pass(tuple(together), events)
            together, events = [], 0
        together.append(file)
        events += rows
        if alone:
            yield Pass(tuple(together), events)
            together, events = [], 0
    if together:
        yield Pass(tuple(together), events)


def run_pass(engine: Engine, one: Pass, options: SessionOptions, folder: Path, number: int) -> None:
    """Write one part of each table.

    Files of events are in the order that sessions by client need, and an engine that can make use of it does; that
    they are is checked in passing, and where they are not they are sorted after all.

    Raises:
        DataError: two events have the same number.
    """
    is_so = options.by == "client" and len(one.files) == 1
    if _write(engine, one, options, folder, number, is_so=is_so):
        return
    if not is_so or not _write(engine, one, options, folder, number, is_so=False):
        raise DataError(f"two events of {one.files[0]} have the same number", "import the log again")


def _write(
    engine: Engine, one: Pass, options: SessionOptions, folder: Path, number: int, *, is_so: bool
) -> bool:
    """Write the tables' parts; False, and nothing, where events did not come in order."""
    events, keys = needed(engine.read(one.files), options)
    with (
        engine.ordered(events, keys, ORDER, is_so=is_so) as ordered,
        engine.held(assigned(ordered, keys, options)) as rows,
    ):
        misplaced = rows.aggregate(n=rows.count(where=rows.misplaced))
        if engine.to_arrow(misplaced).column("n")[0].as_py():
            return False
        with engine.held(counted(rows, ordered)) as counts:
            for name, table in (
                ("sessions", sessions_table(rows, counts, ordered)),
                ("pages", pages_table(rows, counts, ordered, options)),
                ("queries", queries_table(rows, counts, ordered)),
            ):
                engine.write(table, folder / name / f"part-{number:04d}.parquet")
    return True
