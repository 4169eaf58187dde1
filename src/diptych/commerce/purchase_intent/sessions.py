"""From events to three tables, of which all statistics and features are made.

``sessions``: one row per session; ``pages``: the first pages of every session that is long enough to predict on;
``queries``: one row per submitted query, normalised. Their rows have no order. A session ends after the gap without an
event: strictly more, so that exactly 30 minutes are one session still (thesis section 6.2). Its identifier is that of
its first event.

::

    LOG/sessions/client-30min-10p-0a1b2c/
      sessions.json                     of which log, by which options, and how many
      sessions/part-0000.parquet
      pages/part-0000.parquet
      queries/part-0000.parquet
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import accumulate, groupby
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.commerce.logs.log import Log
from diptych.commerce.logs.schema import LENGTH_ACTIONS, SECOND, UNKNOWN, read_columns
from diptych.commerce.purchase_intent.engine import Engine, open_engine
from diptych.commerce.purchase_intent.options import SessionOptions
from diptych.core.artifact import Artifact
from diptych.core.context import task
from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.extras import require
from diptych.core.files import atomic_folder
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import taking_turns

if TYPE_CHECKING:
    import ibis.expr.types as ir

Window = Callable[..., Any]  # of ibis.window, for the rows of one key in order

BUFFER = 2  # pages that have to follow the last step, and a purchase the present one

TABLES = read_columns(Path(__file__).with_name("sessions.toml"))


@dataclass(frozen=True)
class SessionTables(Artifact, kind="sessions", recreate="diptych intent describe LOG"):
    """Tables of sessions."""

    about: dict[str, Any]  # of which log, by which options, and how many
    folder: Path = field(init=False, default=Path(), compare=False)

    @property
    def fingerprint(self) -> str:
        return str(self.about["fingerprint"])

    def files(self, name: str) -> list[Path]:
        """Return the files of a table, one per pass, in order; at least one."""
        found = sorted((self.folder / name).glob("part-*.parquet"))
        if not found:
            raise DataError(f"{self.folder / name} holds no files", f"remove {self.folder} and recreate it")
        return found


# What Python's str.split takes for a blank, character by character: escapes are read differently by engines.
_BLANKS = "[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
_ODD = "[^ -~]|^ | $|  "


def normalised(text: ir.StringValue) -> ir.StringValue:
    """Return texts in lower case, without blanks at the ends, others made one space; null stays null.

    Engines' own ways differ: in final sigma, in the dotted capital I, in what ``\\s`` is; Ibis's ``strip`` cuts the
    letters f and v on Spark. Here İ becomes i, and ς becomes σ. Engines were compared on every character of Unicode 14;
    capitals of alphabets that came later may be left as they are.
    """
    import ibis

    # Most queries are words of ASCII with one space between them, and need no more than lower case.
    letters = text.replace("İ", "i").lower().replace("ς", "σ")
    spaced = letters.re_replace(_BLANKS, " ").re_replace("^ | $", "")
    return ibis.ifelse(text.re_search(_ODD), spaced, text.lower())


# A session begins where the key changes or more than the gap has gone by, in whole microseconds. Sessions are numbered
# by counting such beginnings and pages by counting pages, which is all that later steps need of the order. What only a
# first event says (client, device, channel, local time) is read again for it: rows that are held stay small.

ORDER = ("t_us", "event_id")  # of events within a key

_FLAGS = ("is_purchase", "is_action", "is_page", "is_query")


def _keys(events: ir.Table, by: str) -> dict[str, ir.Value]:
    """Return columns of which all values of two events are equal if they can be in one session; never null."""
    import ibis

    if by == "client":
        return {"client": events.client_id}
    if by == "given":
        return {"client": events.client_id, "given": events.given_session.fill_null("")}
    # A client may be called as a visitor is.
    return {
        "has_visitor": events.visitor_id.notnull(),
        "visitor_or_client": ibis.coalesce(events.visitor_id, events.client_id),
    }


def _assigned(
    rows: ir.Table, window: Window, found: Sequence[str], keys: Sequence[str], options: SessionOptions
) -> ir.Table:
    """Return events with ``keys``, the last the number of their session; the visitor only where it is a new one."""
    import ibis

    whole, so_far = window(), window(rows=(None, 0))
    same = reduce(and_, (rows[name] == rows[name].lag().over(whole) for name in found))
    in_time = rows.t_us - rows.t_us.lag().over(whole) <= round(options.gap_minutes * 60 * SECOND)
    if options.by == "given":
        in_time = in_time | (rows.given != "")
    rows = rows.mutate(
        is_first=~(same & in_time).fill_null(False),
        is_news=~rows.visitor_id.identical_to(rows.visitor_id.lag().over(whole)),
    )
    return rows.select(
        *(*keys[:-1], *ORDER, "is_first", *_FLAGS, "text"),
        number=rows.count(where=rows.is_first).over(so_far),
        pages_before=rows.count(where=rows.is_page).over(so_far) - rows.is_page.cast("int64"),
        visitor_id=ibis.ifelse(rows.is_news | rows.is_first, rows.visitor_id, ibis.null("string")),
    )


def _gathered(events: ir.Table, keys: Sequence[str]) -> ir.Table:
    """Return one row per session, of what is added up over its events whatever their order."""
    return events.group_by(keys).aggregate(
        session_id=events.event_id.max(where=events.is_first),  # of one event: no other is the first
        start_us=events.t_us.min(),
        end_us=events.t_us.max(),
        n_events=events.count(),
        length=events.count(where=events.is_action),
        n_pages=events.count(where=events.is_page),
        n_queries=events.count(where=events.is_query),
        first_purchase_us=events.t_us.min(where=events.is_purchase),
        pages_earlier=events.pages_before.min(),
        until_purchase=events.pages_before.min(where=events.is_purchase),
    )


def _visitors(events: ir.Table, keys: Sequence[str]) -> ir.Table:
    """Return of the sessions with a visitor who it is, the first in time of several."""
    import ibis

    known = events.filter(events.visitor_id.notnull())
    found = known.group_by(keys).aggregate(
        visitor_id=known.visitor_id.min(),
        last=known.visitor_id.max(),  # of the alphabet
        until_identified=known.pages_before.min(),
    )
    several = found.filter(found.visitor_id != found["last"]).select(keys)
    known = known.semi_join(several, keys)
    known = known.mutate(turn=ibis.row_number().over(ibis.window(group_by=keys, order_by=ORDER)))
    of_several = known.group_by(keys).aggregate(
        first=known.visitor_id.max(where=known.turn == 0), n_visitors=known.visitor_id.nunique()
    )
    rows = found.left_join(of_several, keys)
    return rows.select(
        *keys,
        "until_identified",
        visitor_id=ibis.coalesce(rows["first"], rows.visitor_id),
        n_visitors=ibis.coalesce(rows.n_visitors, 1),
    )


def _sessions(log: ir.Table, events: ir.Table, gathered: ir.Table, keys: Sequence[str]) -> ir.Table:
    import ibis

    first = log.select(
        session_id=log.event_id,
        client_id=log.client_id,
        device=log.device,
        channel=log.channel,
        start_day=log.local_day,
        start_hour=log.local_hour,
        start_dow=log.local_dow,
    )
    rows = gathered.inner_join(first, "session_id").left_join(_visitors(events, keys), keys)
    rows = rows.mutate(
        person=ibis.coalesce(rows.visitor_id, rows.client_id),
        n_visitors=ibis.coalesce(rows.n_visitors, 0),
        purchase=rows.first_purchase_us.notnull(),
        pages_before_purchase=rows.until_purchase - rows.pages_earlier,
        pages_before_identified=rows.until_identified - rows.pages_earlier,
    )
    return _as_declared(rows, "sessions")


def _pages(events: ir.Table, gathered: ir.Table, keys: Sequence[str], most: int) -> ir.Table:
    long = gathered.filter(gathered.n_pages >= most + BUFFER).select(*keys, "session_id", "pages_earlier")
    pages = events.filter(events.is_page).inner_join(long, keys)
    pages = pages.mutate(
        position=pages.pages_before - pages.pages_earlier + 1, page_type=pages.text.fill_null(UNKNOWN)
    )
    return _as_declared(pages.filter(pages.position <= most), "pages")


def _queries(events: ir.Table, gathered: ir.Table, sessions: ir.Table, keys: Sequence[str]) -> ir.Table:
    queries = events.filter(events.is_query).select(*keys, "text")
    queries = queries.inner_join(gathered.select(*keys, "session_id"), keys)
    queries = queries.inner_join(sessions.select("session_id", "device", "purchase"), "session_id")
    queries = queries.mutate(query=normalised(queries.text).fill_null(""))
    return _as_declared(queries, "queries")


def _as_declared(table: ir.Table, name: str) -> ir.Table:
    kinds = {"bool": "boolean", "double": "float64"}
    return table.select(**{one: table[one].cast(kinds.get(kind, kind)) for one, kind in TABLES[name].items()})


def _passes(files: Sequence[Path], most: int | None) -> Iterator[tuple[list[Path], int]]:
    """Yield files of about ``most`` events, and how many there are; all at once without ``most``."""
    pq = require("pyarrow.parquet", "commerce", "reading a log")
    sizes = [pq.read_metadata(file).num_rows for file in files]
    placed = zip(files, sizes, accumulate(sizes), strict=True)
    for _, group in groupby(placed, lambda one: most and (one[2] - 1) // most):
        together, events, _ = zip(*group, strict=True)
        yield list(together), sum(events)


def sessionise(
    log: Log,
    options: SessionOptions | None = None,
    *,
    engine: Engine | None = None,
    folder: Path | None = None,
) -> SessionTables:
    """Return the sessions of a log: made when they are not there, or are those of another log or other options."""
    options = options or SessionOptions()
    folder = folder or log.folder / "sessions" / options.key
    known_as = fingerprint("sessions", SessionTables.FORMAT, log.fingerprint, options.model_dump())
    with taking_turns(folder):
        try:
            there = SessionTables.open(folder)
            if there.fingerprint == known_as:
                return there
        except StorageError:
            pass  # not there, or corrupt
        with (
            atomic_folder(folder, SessionTables.marker()) as inside,
            open_engine() if engine is None else nullcontext(engine) as runs,
        ):
            about: dict[str, Any] = {"log": log.name, "zone": log.zone, "log_fingerprint": log.fingerprint}
            about |= {"options": options.model_dump(), "fingerprint": known_as}
            about["counts"] = _write_tables(log, options, runs, inside)
            SessionTables(about).save(inside / SessionTables.marker())
    return SessionTables.open(folder)


def _write_tables(log: Log, options: SessionOptions, engine: Engine, folder: Path) -> dict[str, int]:
    """Write the tables, a part per pass, and return how many there are of what."""
    pq = require("pyarrow.parquet", "commerce", "reading a log")
    if not log.buckets:
        raise DataError(f"{log.folder} holds no events", "import the log again")
    if options.by == "given":
        events = engine.read(log.buckets)
        found = engine.to_arrow(events.aggregate(n=events.given_session.count()))
        if not found.column("n")[0].as_py():
            raise UsageError(f"{log.name} brings no sessions of its own", "take them by client")
    for name in TABLES:
        (folder / name).mkdir()
    # Everything of one client is in one file, so that a pass needs the memory of a few files at most. A visitor's
    # clients are in any of them: sessions by visitor take one pass over everything, which the engine spills.
    most = None if options.by == "visitor" else engine.rows_at_once
    with task("sessions", log.n_events, "events") as bar:
        for number, (files, n) in enumerate(_passes(log.buckets, most)):
            _run_pass(engine, files, options, folder, f"part-{number:04d}.parquet")
            bar.advance(n)
    sessions = engine.read(sorted((folder / "sessions").iterdir()))
    counted = sessions.aggregate(
        events=sessions.n_events.sum().fill_null(0),
        sessions=sessions.count(),
        identified=sessions.visitor_id.count(),
        purchases=sessions.count(where=sessions.purchase),
        several_visitors=sessions.count(where=sessions.n_visitors > 1),
    )
    counts: dict[str, int] = engine.to_arrow(counted).to_pylist()[0]
    for name in ("pages", "queries"):
        counts[name] = sum(pq.read_metadata(file).num_rows for file in (folder / name).iterdir())
    return counts


def _run_pass(
    engine: Engine, files: Sequence[Path], options: SessionOptions, folder: Path, part: str
) -> None:
    import ibis

    log = engine.read(files, "events")
    found = _keys(log, options.by)
    # Words are compared before any window, where a file's dictionary of them serves all its rows.
    events = log.select(
        *(*ORDER, "is_purchase", "visitor_id"),
        is_action=log.action.isin(LENGTH_ACTIONS),
        is_page=log.action == "page",
        is_query=log.action == "query",
        text=ibis.ifelse(log.action == "page", log.page_type, log["query"]),
        **found,
    )
    window, keys = partial(ibis.window, group_by=None, order_by=None), ["number"]
    with ExitStack() as stack:
        if not engine.keeps_order:
            window, keys = partial(ibis.window, group_by=list(found), order_by=ORDER), [*found, "number"]
        elif options.by != "client":  # the order in which an import writes
            events = stack.enter_context(engine.held(events.order_by([*found, *ORDER])))
        events = stack.enter_context(engine.held(_assigned(events, window, list(found), keys, options)))
        gathered = stack.enter_context(engine.held(_gathered(events, keys)))
        written = folder / "sessions" / part
        engine.write(_sessions(log, events, gathered, keys), written)
        sessions = engine.read([written], "sessions")
        engine.write(_pages(events, gathered, keys, options.pages), folder / "pages" / part)
        engine.write(_queries(events, gathered, sessions, keys), folder / "queries" / part)
