"""Sessions of a log: bucket by bucket, one pass each, whatever the size of the log."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from diptych.commerce.purchase_intent.engine import Engine, open_engine
from diptych.commerce.purchase_intent.sessions.keys import check_key
from diptych.commerce.purchase_intent.sessions.passes import passes, run_pass
from diptych.commerce.purchase_intent.sessions.schema import PAGES, QUERIES, SESSIONS, SessionOptions
from diptych.commerce.purchase_intent.sessions.session_tables import FORMAT, MARKER, SessionTables
from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.extras import require
from diptych.core.files import atomic_folder, one_at_a_time, write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.progress import task
from diptych.data.logs.log import Log
from diptych.data.logs.schema import Column

__all__ = ["SESSIONS_FOLDER", "sessionise"]

SESSIONS_FOLDER = "sessions"
"""Where a log keeps its sessions."""

_COLUMNS = {"sessions": SESSIONS, "pages": PAGES, "queries": QUERIES}


def sessionise(
    log: Log,
    options: SessionOptions | None = None,
    *,
    engine: Engine | None = None,
    folder: Path | None = None,
) -> SessionTables:
    """The sessions of a log: made when they are not there, or are those of another log or other options.

    Args:
        log: of events.
        options: what a session is.
        engine: that runs the passes; DuckDB when not given. Engines do not differ in what they make.
        folder: of the tables; in the log's own folder, by the name of the options, when not given.

    Raises:
        UnknownNameError: no such key of sessions.
        UsageError: no gap, no pages, or sessions given by a log that brings none; or the folder holds other things.
        DataError: the log is damaged.
        StorageError: the tables cannot be written.
    """
    options = options or SessionOptions()
    _check(options)
    folder = folder or log.folder / SESSIONS_FOLDER / options.key
    known_as = fingerprint("sessions", FORMAT, log.fingerprint, asdict(options))
    with one_at_a_time(folder):
        there = _there(folder)
        if there is not None and there.fingerprint == known_as:
            return there
        with (
            atomic_folder(folder, MARKER) as inside,
            open_engine() if engine is None else nullcontext(engine) as runs,
        ):
            _write_tables(log, options, runs, inside)
            about = {
                "format": FORMAT,
                "log": log.name,
                "zone": log.zone,
                "log_fingerprint": log.fingerprint,
                "options": asdict(options),
                "counts": _counts(runs, inside),
                "fingerprint": known_as,
            }
            write_json(inside / MARKER, about)
    return SessionTables.open(folder)


def _check(options: SessionOptions) -> None:
    check_key(options.by)
    if not 0 < options.gap_minutes < float("inf"):
        raise UsageError(f"the gap is {options.gap_minutes:g} minutes", "more than 0; 30 is usual")
    if options.pages < 1:
        raise UsageError(f"{options.pages} first pages are to be kept", "at least 1")


def _there(folder: Path) -> SessionTables | None:
    try:
        return SessionTables.open(folder)
    except (DataError, StorageError):
        return None  # not there, or damaged: made again


def _write_tables(log: Log, options: SessionOptions, engine: Engine, folder: Path) -> None:
    for name in _COLUMNS:
        (folder / name).mkdir()
    files = log.buckets
    if not files:
        _write_nothing(folder)
        return
    if options.by == "given":
        events = engine.read(files)
        found = engine.to_arrow(events.aggregate(n=events.given_session.count()))
        if log.n_events and not found.column("n")[0].as_py():
            raise UsageError(f"{log.name} brings no sessions of its own", "take them by client")
    with task("sessions", log.n_events, "events") as bar:
        for number, one in enumerate(passes(files, options, engine)):
            run_pass(engine, one, options, folder, number)
            bar.advance(one.events)


def _write_nothing(folder: Path) -> None:
    """The tables of a log without events."""
    pa = require("pyarrow", "commerce", "writing sessions")
    pq = require("pyarrow.parquet", "commerce", "writing sessions")
    for name, columns in _COLUMNS.items():
        pq.write_table(_schema(pa, columns).empty_table(), folder / name / "part-0000.parquet")


def _schema(pa: Any, columns: tuple[Column, ...]) -> Any:
    kinds = {"bool": pa.bool_(), "double": pa.float64()}
    return pa.schema([(one.name, kinds.get(one.type) or getattr(pa, one.type)()) for one in columns])


def _counts(engine: Engine, folder: Path) -> dict[str, int]:
    pq = require("pyarrow.parquet", "commerce", "writing sessions")
    sessions = engine.read(sorted((folder / "sessions").iterdir()))
    counted = sessions.aggregate(
        events=sessions.n_events.sum().fill_null(0),
        sessions=sessions.count(),
        identified=sessions.visitor_id.count(),
        purchases=sessions.count(where=sessions.purchase),
        several_visitors=sessions.count(where=sessions.n_visitors > 1),
    )
    rows = {
        name: sum(pq.read_metadata(file).num_rows for file in (folder / name).iterdir())
        for name in ("pages", "queries")
    }
    counts: dict[str, int] = engine.to_arrow(counted).to_pylist()[0]
    return counts | rows
