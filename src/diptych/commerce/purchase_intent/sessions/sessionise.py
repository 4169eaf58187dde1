"""Sessions of a log: bucket by bucket, one pass each, whatever the size of the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.commerce.logs.log import Log
from diptych.commerce.logs.schema import LENGTH_ACTIONS, SECOND, UNKNOWN, Column
from diptych.commerce.purchase_intent.engine import Engine, Ordered, open_engine
from diptych.commerce.purchase_intent.options import SessionOptions
from diptych.commerce.purchase_intent.sessions.tables import (
    BUFFER,
    NOT_GIVEN,
    PAGES,
    QUERIES,
    SESSIONS,
    SessionTables,
    key_columns,
)
from diptych.core.context import task
from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.extras import require
from diptych.core.files import atomic_folder
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import taking_turns

if TYPE_CHECKING:
    import ibis.expr.types as ir


# One spelling of a query, the same on every engine.
#
# Engines' own ways differ. Final sigma is a letter of its own to Spark and Python and none to DuckDB, the dotted
# capital I becomes one character or two, a regular expression's ``\s`` is another set of blanks in each, and
# Ibis's ``strip`` cuts the letters f and v on Spark. What is done here was compared on every character of
# Unicode 14; capitals of
# alphabets that came later may be left as they are.


# What Python's str.split takes for a blank, character by character: escapes are read differently by engines.
_BLANKS = "[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
_ODD = "[^ -~]|^ | $|  "


def normalised(text: ir.StringValue) -> ir.StringValue:
    """Lower case, without blanks at the ends, others made one space; null stays null.

    The capital İ becomes i, and ς, a sigma at the end of a word, σ.
    """
    import ibis

    # Most queries are words of ASCII with one space between them, and need no more than lower case.
    letters = text.replace("İ", "i").lower().replace("ς", "σ")
    spaced = letters.re_replace(_BLANKS, " ").re_replace("^ | $", "")
    return ibis.ifelse(text.re_search(_ODD), spaced, text.lower())


# Which session an event belongs to: one pass over events in order.
#
# A session begins where the key changes or more than the gap has gone by, in whole microseconds: so exactly 30 minutes
# are no end. Sessions are numbered by counting such beginnings, pages by counting pages, and both are all that later
# steps need of the order.
#
# Texts that only a session's first event says (client, device, channel) are left out of all others, and so is a
# visitor who was known at the event before: rows stay small, and to gather a session is to take what is there.

ORDER = ("t_us", "event_id")
"""Of events within a key."""

_OF_FIRST = ("client_id", "device", "channel")
_OF_ALL = (*ORDER, "local_day", "local_hour", "local_dow", "is_purchase", "page_type", "query")


def needed(events: ir.Table, options: SessionOptions) -> tuple[ir.Table, tuple[str, ...]]:
    """The columns of events that sessions are made of, and the names of those that are the key."""
    keys = key_columns(events, options.by)
    return events.select(*_OF_ALL, *_OF_FIRST, "action", "visitor_id", **keys), tuple(keys)


def assigned(ordered: Ordered, keys: Sequence[str], options: SessionOptions) -> ir.Table:
    """Events with the number of their session."""
    import ibis

    rows, before = ordered.rows, ordered.window()
    lagged = {name: rows[name].lag().over(before) for name in {*keys, *ORDER, "visitor_id"}}
    same = reduce(and_, (rows[name] == lagged[name] for name in keys))
    in_time = rows.t_us - lagged["t_us"] <= round(options.gap_minutes * 60 * SECOND)
    if options.by == "given":
        in_time = in_time | (rows.given != NOT_GIVEN)
    known = rows.visitor_id.notnull()
    rows = rows.mutate(
        is_first=~(same & in_time).fill_null(False),
        is_page=rows.action == "page",
        is_query=rows.action == "query",
        is_known=known,
        is_news=known & ~rows.visitor_id.identical_to(lagged["visitor_id"]),
        misplaced=ibis.literal(False)
        if ordered.partition
        else _comes_not_after(rows, lagged, [*keys, *ORDER]).fill_null(False),
    )
    so_far = ordered.window(rows=(None, 0))
    return rows.select(
        *ordered.partition,
        *_OF_ALL,
        "is_first",
        "is_page",
        "is_query",
        "is_known",
        "misplaced",
        number=rows.count(where=rows.is_first).over(so_far),
        pages_before=rows.count(where=rows.is_page).over(so_far) - rows.is_page.cast("int64"),
        is_action=rows.action.isin(LENGTH_ACTIONS),
        visitor_id=_where(rows.is_known & (rows.is_news | rows.is_first), rows.visitor_id),
        **{f"first_{name}": _where(rows.is_first, rows[name]) for name in _OF_FIRST},
    )


def _comes_not_after(rows: ir.Table, lagged: dict[str, Any], names: Sequence[str]) -> ir.BooleanValue:
    """Whether a row is equal to the one before or lies in front of it, by these columns in turn."""
    *others, last = names
    found = rows[last] <= lagged[last]
    for name in reversed(others):
        found = (rows[name] < lagged[name]) | ((rows[name] == lagged[name]) & found)
    return found


def _where(is_so: ir.BooleanValue, value: ir.Value) -> ir.Value:
    import ibis

    return ibis.ifelse(is_so, value, ibis.null(value.type()))


def counted(events: ir.Table, ordered: Ordered) -> ir.Table:
    """One row per session: its number, and what is added up over its events, whatever their order.

    Nearly all sessions have one visitor or none. Of several, only the first and the last in the alphabet are known
    here: :func:`sessions_table` looks for the first in time.
    """
    return events.group_by([*ordered.partition, "number"]).aggregate(
        session_id=events.event_id.max(where=events.is_first),  # of one event: no other is the first
        device=events.first_device.arbitrary(),  # no other has one
        visitor_id=events.visitor_id.min(),
        other_visitor=events.visitor_id.max(),
        end_us=events.t_us.max(),
        n_events=events.count(),
        length=events.count(where=events.is_action),
        n_pages=events.count(where=events.is_page),
        n_queries=events.count(where=events.is_query),
        purchase=events.is_purchase.any(),
        first_purchase_us=events.t_us.min(where=events.is_purchase),
        pages_earlier=events.pages_before.min(),
        until_purchase=events.pages_before.min(where=events.is_purchase),
        until_identified=events.pages_before.min(where=events.is_known),
    )


def sessions_table(events: ir.Table, counts: ir.Table, ordered: Ordered) -> ir.Table:
    """The table ``sessions``, in the order of ``session_id``: what first events say, with the counts of sessions."""
    import ibis

    keys = [*ordered.partition, "number"]
    first = events.filter(events.is_first)
    first = first.select(
        *keys,
        client_id=first.first_client_id,
        start_us=first.t_us,
        start_day=first.local_day,
        start_hour=first.local_hour,
        start_dow=first.local_dow,
        channel=first.first_channel,
    )
    rows = first.inner_join(counts, keys).left_join(_of_several(events, counts, keys), keys)
    visitor_id = ibis.coalesce(rows.first_visitor, rows.visitor_id)
    rows = rows.mutate(
        visitor_id=visitor_id,
        person=ibis.coalesce(visitor_id, rows.client_id),
        n_visitors=ibis.coalesce(rows.visitors, visitor_id.notnull().cast("int64")),
        pages_before_purchase=rows.until_purchase - rows.pages_earlier,
        pages_before_identified=rows.until_identified - rows.pages_earlier,
    )
    return _as_declared(rows, SESSIONS).order_by("session_id")


def _of_several(events: ir.Table, counts: ir.Table, keys: list[str]) -> ir.Table:
    """Of sessions with several visitors: the first in time, and how many. They are few, and the order is dear."""
    import ibis

    several = counts.filter(counts.visitor_id != counts.other_visitor).select(keys)
    told = events.filter(events.visitor_id.notnull()).semi_join(several, keys)
    turn = ibis.row_number().over(ibis.window(group_by=keys, order_by=ORDER))
    told = told.select(*keys, "visitor_id", turn=turn)
    return told.group_by(keys).aggregate(
        first_visitor=told.visitor_id.max(where=told.turn == 0), visitors=told.visitor_id.nunique()
    )


def pages_table(events: ir.Table, counts: ir.Table, ordered: Ordered, options: SessionOptions) -> ir.Table:
    """The table ``pages``: first pages of sessions that are long enough to predict on."""
    long = counts.filter(counts.n_pages >= options.pages + BUFFER)
    keys = [*ordered.partition, "number"]
    of_session = long.select(*keys, "session_id", "pages_earlier")
    pages = events.filter(events.is_page).inner_join(of_session, keys)
    pages = pages.mutate(
        position=pages.pages_before - pages.pages_earlier + 1, page_type=pages.page_type.fill_null(UNKNOWN)
    )
    kept = pages.filter(pages.position <= options.pages)
    return _as_declared(kept, PAGES).order_by("session_id", "position")


def queries_table(events: ir.Table, counts: ir.Table, ordered: Ordered) -> ir.Table:
    """The table ``queries``; one whose text the log does not have is the empty text."""
    keys = [*ordered.partition, "number"]
    of_session = counts.select(*keys, "session_id", "device", "purchase")
    queries = events.filter(events.is_query).inner_join(of_session, keys)
    queries = queries.mutate(query=normalised(queries["query"]).fill_null(""))
    return _as_declared(queries, QUERIES).order_by("session_id", "query")


def _as_declared(table: ir.Table, columns: tuple[Column, ...]) -> ir.Table:
    kinds = {"bool": "boolean", "double": "float64"}
    return table.select(
        **{column.name: table[column.name].cast(kinds.get(column.type, column.type)) for column in columns}
    )


_WORTH_A_PASS = 100_000
"""Events; files with fewer share a pass."""


@dataclass(frozen=True)
class Pass:
    """What is read together."""

    files: tuple[Path, ...]  # of events; no session has events outside
    events: int  # how many there are


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
    """The sessions of a log: made when they are not there, or are those of another log or other options."""
    options = options or SessionOptions()
    folder = folder or log.folder / SESSIONS_FOLDER / options.key
    known_as = fingerprint("sessions", SessionTables.FORMAT, log.fingerprint, options.model_dump())
    with taking_turns(folder):
        there = _there(folder)
        if there is not None and there.fingerprint == known_as:
            return there
        with (
            atomic_folder(folder, SessionTables.marker()) as inside,
            open_engine() if engine is None else nullcontext(engine) as runs,
        ):
            _write_tables(log, options, runs, inside)
            about = {
                "log": log.name,
                "zone": log.zone,
                "log_fingerprint": log.fingerprint,
                "options": options.model_dump(),
                "counts": _counts(runs, inside),
                "fingerprint": known_as,
            }
            SessionTables(about).save(inside / SessionTables.marker())
    return SessionTables.open(folder)


def _there(folder: Path) -> SessionTables | None:
    try:
        return SessionTables.open(folder)
    except StorageError:
        return None  # not there, or corrupt


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
