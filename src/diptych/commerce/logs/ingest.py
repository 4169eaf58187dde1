"""From raw files to a log: two passes in bounded memory, and a report of every row that was read.

The first pass reads every file once, row by row, and writes the rows to the bucket of their client; rows that a rule
drops go to a bucket of their own and are counted there. The second takes one bucket at a time, which holds everything
about its clients: events are compared with others of their client, and written in the order of client, time and
arrival. What does not fit into memory is spilled.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import field_validator

from diptych.commerce.logs.formats import (
    ENDINGS,
    LOG_FORMATS,
    MACROS,
    REJECTED,
    VISITOR_CLIENT,
    ColumnMapping,
    Layout,
    LogFormat,
    SourceFile,
    canonical_sql,
    check_whole,
    literal,
    literals,
    look_at,
    read_mapping,
    read_time,
)
from diptych.commerce.logs.log import EVENTS, Log
from diptych.commerce.logs.schema import BOT_WORDS, COLUMNS, NO_BOT, SECOND, UNKNOWN, printable
from diptych.core.artifact import encode
from diptych.core.context import Task, task, track
from diptych.core.errors import DataError, StorageError, UnknownNameError, UsageError, nearest
from diptych.core.extras import require
from diptych.core.files import atomic_folder, check_replaceable
from diptych.core.fingerprint import fingerprint, fingerprint_file
from diptych.core.options import Options, parameter
from diptych.core.reading import read_json

MOST_BUCKETS = 256
_BUCKET_ROWS = 1_500_000  # about 0.8 GB while a bucket is cleaned and sorted
_MEMORY = "2GB"  # enough for a bucket; a bucket with one very busy client is spilled


class ImportOptions(Options):
    """What the files of a raw log are, and how they are read."""

    format: str | None = parameter(
        None,
        "shop-log, yoochoose, diginetica, rees46, sigir or columns.",
        default="recognised",
        names="diptych.commerce.logs:LOG_FORMATS",
    )
    column: list[str] = parameter(
        [],
        "TARGET=COLUMN of your own log, e.g. time=ts, client=cookie_id, visitor, session, device, channel, "
        "country, action, page_type, query, item, price, purchase, address, agent. Repeatable.",
    )
    columns_file: Path | None = parameter(
        None, "TOML file with [columns], [values.action], [constants], time_format, missing.", "--mapping"
    )
    time_format: str | None = parameter(
        None, "Of your own log: auto, iso, unix, unix-ms, unix-us, or of strptime, e.g. '%d/%m/%Y %H:%M'."
    )
    times_in: str | None = parameter(None, "Zone of times that name none.", default="UTC")
    zone: str | None = parameter(
        None, "Zone of local days and hours, e.g. Europe/Amsterdam.", default="the log's, or UTC"
    )
    name: str | None = parameter(None, "What reports call the log.", default="as its source")
    buckets: int | None = parameter(
        None, "Files of events.", ge=1, le=MOST_BUCKETS, default="by the number of rows"
    )
    memory_limit: str | None = parameter(None, "E.g. 1GB.", default=_MEMORY)
    threads: int | None = parameter(None, "Of the engine.", ge=1, default="all processors")

    def mapping(self) -> ColumnMapping | None:
        """Return what the options name; None where they name no column."""
        if not self.column and self.columns_file is None:
            if self.time_format is not None:
                raise UsageError(
                    "--time-format is of your own columns", "name them with --column or --mapping"
                )
            return None
        found = ColumnMapping() if self.columns_file is None else read_mapping(self.columns_file)
        found = found.with_columns(self.column)
        return found.model_copy(update={"time_format": self.time_format or found.time_format})


class Cleaning(Options):
    """Which events are kept; what else is always dropped, such as rows without a time, is among the rules."""

    since: str | None = parameter(None, "First day or moment that is kept, ISO 8601.")
    until: str | None = parameter(None, "First day or moment that is no longer kept.")
    countries: tuple[str, ...] = parameter((), "Keep only these, e.g. NL,BE,DE. Repeatable.", "--country")
    keep_missing_country: bool = parameter(False, "With --country: keep those without one.")
    devices: tuple[str, ...] = parameter(
        (), "Keep only these types, e.g. pc,smartphone,'game console'. Repeatable.", "--device"
    )
    bots: bool = parameter(False, "Keep events whose user agent is a bot's.", "--keep-bots")
    duplicates: bool = parameter(False, "Keep events equal in all columns.", "--keep-duplicates")
    most_events: int | None = parameter(
        100_000, "Drop clients with more events, whole; 0 for no limit.", ge=0
    )

    @field_validator("most_events")
    @classmethod
    def _limit(cls, most: int | None) -> int | None:
        return most or None

    @field_validator("countries")
    @classmethod
    def _countries(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for one in _words("--country", given):
            if not (len(one) == 2 and one.isascii() and one.isalpha()):
                raise UsageError(f"there is no country {one!r}", "two letters each (ISO 3166), e.g. NL,BE,DE")
        return _words("--country", (one.upper() for one in given))

    @field_validator("devices")
    @classmethod
    def _devices(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        return _words("--device", (one.lower() for one in given))


def _words(option: str, given: Iterable[str]) -> tuple[str, ...]:
    """Return each word once, of texts with commas."""
    parts = [part.strip() for one in given for part in one.split(",")]
    if parts and not any(parts):
        raise UsageError(f"{option} names none", "leave it out to keep all")
    return tuple(sorted(set(filter(None, parts))))


# Rules have a fixed order, and a row is counted under the first that drops it: so the rows that were read are the
# events that were kept and what all rules dropped together.


class Rule(NamedTuple):
    """A reason to drop events."""

    name: str
    description: str
    # SQL, empty for a rule that was not asked for; of a row's rule a condition, never NULL; of a bucket's rule the
    # event_id of what is dropped of the view events, each once
    drops: str
    # SQL of what was dropped, to be listed: of a row's rule a text, of a bucket's rule texts and numbers of events
    names: str = ""


_EARLIEST = 86_400 * SECOND  # a clock that shows the first day of 1970 has been reset
_LATEST = 7_258_118_400 * SECOND  # 2200
_UNREADABLE = "unreadable row"  # lines are counted under it, too, that the database could not hand on as rows
_IS_BOT = f"regexp_matches(replace(lower(agent), {literal(NO_BOT)}, ''), {literal('|'.join(BOT_WORDS))})"
_STAGED = tuple(one.name for one in COLUMNS if not one.name.startswith("local_"))
_TWINS = """
    SELECT event_id FROM events WHERE is_twin AND address IS NOT NULL AND (client_id, t_us, address) IN
        (SELECT (client_id, t_us, address) FROM events WHERE NOT is_twin AND action = 'page' AND address IS NOT NULL)"""
# Few events share client and time with another one: only those are compared in all columns.
_DUPLICATES = f"""
    SELECT event_id FROM (
        SELECT event_id, row_number() OVER (
            PARTITION BY {", ".join(_STAGED[1:])}, address ORDER BY event_id) AS place
        FROM events WHERE (client_id, t_us) IN
            (SELECT (client_id, t_us) FROM events GROUP BY client_id, t_us HAVING count(*) > 1))
    WHERE place > 1"""


def row_rules(cleaning: Cleaning, since_us: int | None, until_us: int | None) -> list[Rule]:
    """Return the rules that look at one row, in their order."""
    if since_us is not None and until_us is not None and since_us >= until_us:
        raise UsageError("the period is empty: it ends before it begins", "check --since and --until")
    early = "" if since_us is None else f"t_us < {since_us}"
    late = "" if until_us is None else f"t_us >= {until_us}"
    missing = "false" if cleaning.keep_missing_country else "true"
    rules = [
        Rule(
            _UNREADABLE,
            "no row of the file's columns: wrong number of values, bad quotation marks, a line break inside of them, "
            "NUL, or bytes that are not UTF-8",
            "NOT readable",
        ),
        Rule(
            "unreadable time",
            "the time is missing or none, is on the first day of 1970 or before, or in 2200 or after",
            f"t_us IS NULL OR t_us < {_EARLIEST} OR t_us >= {_LATEST}",
            "left(written, 80)",
        ),
        Rule("no client", "neither client nor visitor is known", "client_id IS NULL"),
        Rule(
            "unknown action",
            "what the log says was done is none of the known actions; map it with [values.action], also to other",
            "action IS NULL",
            "coalesce(left(said, 80), '(missing)')",
        ),
        Rule("outside", "before --since, or at --until or after", " OR ".join(filter(None, (early, late)))),
        Rule(
            "country",
            "from another country than --country, or from none where --keep-missing-country does not say to keep it",
            f"coalesce(country NOT IN ({literals(cleaning.countries)}), {missing})"
            if cleaning.countries
            else "",
            "coalesce(country, '(missing)')",
        ),
        Rule(
            "device",
            "of another device type than --device, or of an unknown one",
            f"device NOT IN ({literals(cleaning.devices)})" if cleaning.devices else "",
            "left(device, 80)",
        ),
        Rule(
            "agent",
            "the user agent is a bot's, by a list of patterns (diptych.commerce.logs.schema.BOT_WORDS)",
            "" if cleaning.bots else f"coalesce({_IS_BOT}, false)",
            "left(agent, 80)",
        ),
    ]
    return [rule for rule in rules if rule.drops]


def bucket_rules(cleaning: Cleaning) -> list[Rule]:
    """Return the rules that look at all events of a client, in their order."""
    busy = f"FROM events GROUP BY client_id HAVING count(*) > {cleaning.most_events}"
    dropped = f"SELECT event_id FROM events WHERE client_id IN (SELECT client_id {busy})"
    rules = [
        Rule(
            "twin",
            "a page view that another one of the same client, time and address tells in more detail",
            _TWINS,
        ),
        Rule(
            "duplicate",
            "equal to an earlier event in all columns of the table, and in the address where the log has one",
            "" if cleaning.duplicates else _DUPLICATES,
        ),
        Rule(
            "too many events",
            "of clients with more events than --most-events; they are dropped whole",
            dropped if cleaning.most_events else "",
            f"SELECT client_id, count(*) AS n {busy}",
        ),
    ]
    return [rule for rule in rules if rule.drops]


# The database.


@contextmanager
def duckdb_errors(what: str = "a table") -> Iterator[None]:
    """Turn DuckDB's errors into ours; ``what`` is read or written."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except duckdb.OutOfMemoryException as error:
        fix = "give it more with --memory-limit, or take fewer threads or more --buckets; check the disk, too"
        raise StorageError(f"the memory does not suffice: {_first_line(error)}", fix) from None
    except duckdb.Error as error:
        line = _first_line(error)
        if "No space left" in line:
            raise StorageError(
                f"the disk is full: {line}", "free some space and repeat the command"
            ) from None
        raise DataError(f"{what} cannot be read: {line}", "it is corrupt or gone: recreate it") from None
    except RuntimeError as error:
        if "interrupted" not in str(error).lower():  # what a key press becomes in some statements
            raise
        raise KeyboardInterrupt from None


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0]


def mebibytes(text: str) -> int:
    """Parse ``"1GB"``, ``"700 MB"``, ``"2GiB"`` as whole MiB, at least 1; a unit always counts 1024."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:I?B)?\s*", text.upper())
    if found is None or not float(found[1]):
        raise UsageError(f"the memory limit is {text!r}", "an amount and a unit, e.g. 1GB or 700MB")
    return max(1, int(float(found[1]) * 1024 ** ("KMGT".find(found[2] or "B") - 1)))


class Database:
    """An open connection: queries, and long statements with their progress."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Sequence[Any] = (), what: str = "a table of the log") -> list[Any]:
        """Return the rows of a query."""
        with duckdb_errors(what):
            return list(self._connection.execute(sql, list(values)).fetchall())

    def value(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Return the one number of a query."""
        return int(self.rows(sql, values)[0][0])

    def run(self, sql: str, bar: Task, steps: int, what: str) -> None:
        """Run a long statement, and advance ``bar`` by ``steps`` meanwhile; can be interrupted."""
        done = 0
        with ThreadPoolExecutor(1) as pool:
            work = pool.submit(self.rows, sql, (), what)
            try:
                while not wait([work], timeout=0.1).done:
                    now = int(max(0.0, self._connection.query_progress()) / 100 * steps)
                    bar.advance(max(0, now - done))
                    done = max(done, now)
            except BaseException:
                self._connection.interrupt()
                raise
            work.result()
        bar.advance(steps - done)


@contextmanager
def open_database(
    files: Iterable[Path],
    folder: Path,
    times_in: str,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> Iterator[Database]:
    """Open a DuckDB that reads ``files``, writes into ``folder``, and can do nothing else.

    Files are untrusted: once it is open, the database reaches no other file, loads no extension and its settings
    cannot be changed. What does not fit into memory goes to the folder.
    """
    duckdb = require("duckdb", "commerce", "importing a log")
    connection, spill = duckdb.connect(), folder / "spill"
    database = Database(connection)
    try:
        for macro in MACROS:
            connection.execute(f"CREATE TEMP MACRO {macro}")
        _check_zone(database, times_in)
        settings = {
            "TimeZone": times_in,
            "temp_directory": str(spill),
            "partitioned_write_max_open_files": 1000,
            "enable_progress_bar": True,
            "enable_progress_bar_print": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "allowed_paths": [str(file) for file in files],
            "allowed_directories": [str(folder)],
            "threads": threads,
            "memory_limit": f"{mebibytes(memory_limit or _MEMORY)}MiB",
            "enable_external_access": False,
            "lock_configuration": True,
        }
        for name, value in settings.items():
            if value is not None:
                database.rows(f"SET {name} = ?", [value])
        yield database
    finally:
        connection.close()
        shutil.rmtree(spill, ignore_errors=True)


def _check_zone(database: Database, name: str) -> None:
    names = [row[0] for row in database.rows("SELECT name FROM pg_timezone_names()")]
    if name not in names:
        fix = nearest(name, names) or "names are like Europe/Amsterdam, or UTC"
        raise UsageError(f"there is no time zone {name!r}", fix.strip())


def _moment(database: Database, text: str | None, zone: str) -> int | None:
    """Return microseconds of an ISO 8601 date or time; one that names no zone is in ``zone``."""
    if text is None:
        return None
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is no time", "e.g. 2019-10-01, or 2019-10-01T12:00:00+02:00") from None
    if given.tzinfo is None:
        return database.value("SELECT epoch_us(timezone(?, ?::TIMESTAMP))", [zone, given.isoformat(sep=" ")])
    return (given - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


# The passes.

_KEPT = (*_STAGED, "address", "is_twin")
_MARKS = {  # what is counted beside the rules: among which rows, and what a note says
    "out_of_order": ("true", "rows are earlier than the row before them in their file"),
    "visitor_clients": (
        "rule = 0",
        f"events have a visitor and no client: each such visitor is a client {VISITOR_CLIENT}VISITOR",
    ),
    "bad_countries": ("rule = 0", "events have a country that is no two letters, read as missing"),
    "bad_prices": ("rule = 0", "events have a price that is no number, read as missing"),
    "zoneless": ("rule = 0", "events have times without a zone, read as UTC (--times-in)"),
}
_NAMED = 20  # things that a rule names of what it dropped
_BUCKET_NAMED = 10
_MB = 1 << 20


@dataclass
class Counts:
    """What the passes count."""

    rows: int = 0  # that were read, also those that were dropped
    dropped: Counter[str] = field(default_factory=Counter)  # rule → rows
    named: dict[str, dict[str, int]] = field(
        default_factory=dict
    )  # rule → the most frequent of what was dropped
    marks: dict[str, int] = field(default_factory=dict)
    events: int = 0  # that were kept
    clients: int = 0
    shared: int = 0  # clients with more than one visitor
    busiest: int = 0  # most events of one client
    visitors: int = 0
    purchases: int = 0
    first_us: int = 0
    last_us: int = 0
    repeated: int = 0  # events in the later of two hours that the clocks of a zone show alike
    by: dict[str, dict[Any, int]] = field(
        default_factory=dict
    )  # column → value → events, the most frequent first


def _table(paths: Iterable[Path]) -> str:
    return f"read_parquet([{literals(map(str, paths))}], hive_partitioning = false)"


def _stage(
    database: Database,
    files: Sequence[tuple[SourceFile, Layout]],
    rules: Sequence[Rule],
    buckets: int,
    folder: Path,
    counts: Counts,
) -> None:
    """Read files, drop rows by rules, and write the others to their buckets in ``folder``."""
    drops = " ".join(f"WHEN {rule.drops} THEN {number}" for number, rule in enumerate(rules, 1))
    names = " ".join(f"WHEN {number} THEN {rule.names or 'NULL'}" for number, rule in enumerate(rules, 1))
    bucket = "0" if buckets == 1 else f"bucket_of(client_id, {buckets})"
    sizes = [1 + file.path.stat().st_size // _MB for file, _ in files]
    with task("reading", total=sum(sizes), unit="MB") as bar:
        for number, (size, (file, layout)) in enumerate(zip(sizes, files, strict=True)):
            target = folder / f"{number:05d}"
            copy = f"""
                COPY (
                    SELECT {", ".join([*_KEPT, *_MARKS])}, rule, (CASE rule {names} END)::VARCHAR AS named,
                        CASE WHEN rule = 0 THEN {bucket} ELSE {buckets} END::INTEGER AS bucket
                    FROM (
                        SELECT *, CASE {drops} ELSE 0 END::INTEGER AS rule
                        FROM ({canonical_sql(file, layout, counts.rows)}))
                ) TO {literal(str(target))} (FORMAT parquet, PARTITION_BY (bucket))"""
            database.run(copy, bar, size, file.name)
            if written := sorted(target.glob("*/*.parquet")):
                counts.rows += database.value(f"SELECT count(*) FROM {_table(written)}")
    if written := sorted(folder.glob("*/*/*.parquet")):
        sums = [f"count(*) FILTER ({name} AND {of})" for name, (of, _) in _MARKS.items()]
        marks = database.rows(f"SELECT {', '.join(sums)} FROM {_table(written)}")[0]
        counts.marks = dict(zip(_MARKS, marks, strict=True))
    if dropped := sorted(folder.glob(f"*/bucket={buckets}/*.parquet")):
        found = f"""
            SELECT rule, sum(n) OVER (PARTITION BY rule), named, n
            FROM (SELECT rule, named, count(*) AS n FROM {_table(dropped)} GROUP BY rule, named)
            QUALIFY row_number() OVER (PARTITION BY rule ORDER BY named IS NULL, n DESC, named) <= {_NAMED}
            ORDER BY rule, n DESC, named"""
        for number, total, name, times in database.rows(found):
            rule = rules[number - 1].name
            counts.dropped[rule] = int(total)
            if name is not None:
                counts.named.setdefault(rule, {})[name] = times
    if any(file.kind != "parquet" for file, _ in files):
        rejected = database.value(REJECTED)
        counts.dropped[_UNREADABLE] += rejected
        counts.rows += rejected


_DAY, _HOUR = 86_400 * SECOND, 3_600 * SECOND
_LOCAL = {
    "local_day": f"(local_us // {_DAY})::INTEGER",
    "local_hour": f"(local_us // {_HOUR} % 24)::TINYINT",
    "local_dow": f"((local_us // {_DAY} + 3) % 7)::TINYINT",  # 1970-01-01 was a Thursday, and 0 is Monday
}


def _write_bucket(
    database: Database, staged: Sequence[Path], rules: Sequence[Rule], zone: str, target: Path, counts: Counts
) -> None:
    """Clean the events of a bucket and write them to ``target``, which is not made where none is left."""
    if not staged:
        return
    database.rows("CREATE OR REPLACE TEMP TABLE dropped (event_id BIGINT)")
    left = f"FROM {_table(staged)} WHERE event_id NOT IN (SELECT event_id FROM dropped)"
    database.rows(f"CREATE OR REPLACE TEMP VIEW events AS SELECT {', '.join(_KEPT)} {left}")
    for rule in rules:
        if rule.names:
            found = database.rows(f"SELECT * FROM ({rule.names}) ORDER BY 2 DESC, 1 LIMIT {_BUCKET_NAMED}")
            both = counts.named.get(rule.name, {}) | dict(found)
            counts.named[rule.name] = dict(_most_first(both)[:_BUCKET_NAMED])
        counts.dropped[rule.name] += database.value(f"INSERT INTO dropped {rule.drops}")
    people = "SELECT count(*) AS n, count(DISTINCT visitor_id) AS visitors FROM events GROUP BY client_id"
    sums = "count(*), coalesce(sum(n), 0), count(*) FILTER (visitors > 1), coalesce(max(n), 0)"
    clients, events, shared, busiest = map(int, database.rows(f"SELECT {sums} FROM ({people})")[0])
    counts.clients += clients
    counts.events += events
    counts.shared += shared
    counts.busiest = max(counts.busiest, busiest)
    if not clients:
        return
    columns = ", ".join(f"{_LOCAL.get(column.name, column.name)} AS {column.name}" for column in COLUMNS)
    wall = "t_us" if zone == "UTC" else f"epoch_us(timezone({literal(zone)}, make_timestamptz(t_us)))"
    rows = (
        f"SELECT {columns} FROM (SELECT *, {wall} AS local_us FROM events) ORDER BY client_id, t_us, event_id"
    )
    target.parent.mkdir(parents=True)
    database.rows(
        f"COPY ({rows}) TO {literal(str(target))} (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd)"
    )


def _most_first(counts: Mapping[Any, int]) -> list[tuple[Any, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _count(database: Database, files: Sequence[Path], times_in: str, counts: Counts) -> None:
    """Count the events of files, of which there is at least one, each with at least one event."""
    table = _table(files)
    for column in ("local_day", "action", "device", "channel"):
        counts.by[column] = dict(
            _most_first(dict(database.rows(f"SELECT {column}, count(*) FROM {table} GROUP BY 1")))
        )
    visitors = f"SELECT count(*) FROM (SELECT DISTINCT visitor_id FROM {table} WHERE visitor_id IS NOT NULL)"
    sums = f"min(t_us), max(t_us), count(*) FILTER (is_purchase), ({visitors})"
    found = database.rows(f"SELECT {sums} FROM {table}")[0]
    counts.first_us, counts.last_us, counts.purchases, counts.visitors = found
    if times_in != "UTC":
        now, before = (
            f"timezone({literal(times_in)}, make_timestamptz(quarter * {_HOUR // 4} - {earlier}))"
            for earlier in (0, _HOUR)
        )
        quarters = f"SELECT t_us // {_HOUR // 4} AS quarter, count(*) AS n FROM {table} GROUP BY quarter"
        counts.repeated = database.value(
            f"SELECT coalesce(sum(n), 0) FROM ({quarters}) WHERE {now} = {before}"
        )


# What is odd.

_RARE_DAY = 1e-4  # share of events at which the first or last days look like clocks that are wrong
_FAR = 7  # days without events, after which few events are far from the others
_FEW = 0.05
_BUSY, _BUSY_EVENTS = 0.01, 1000  # share of all events, and events, of one client
_SHOWN = 5


def _notes(counts: Counts, days: Mapping[date, int], zone_read: bool, hours: bool) -> Iterator[str]:
    """Yield what is odd, in a fixed order."""
    events = counts.events
    empty = [day for day, n in days.items() if not n]
    if empty:
        shown = ", ".join(map(str, empty[:_SHOWN])) + (", …" if len(empty) > _SHOWN else "")
        yield f"{len(empty):,} of {len(days):,} days have no event: {shown}"
    ordered = list(days.items())
    for which, odd in (("first", _edge(ordered, events)), ("last", _edge(ordered[::-1], events))):
        if odd:
            few = sum(n for _, n in odd)
            until, from_day = max(day for day, _ in odd) + timedelta(days=1), min(day for day, _ in odd)
            way_out = f"--since {until}" if which == "first" else f"--until {from_day}"
            span = f"{from_day}" if len(odd) == 1 else f"{from_day} to {until - timedelta(days=1)}"
            yield f"the {which} days ({span}) hold only {few:,} of {events:,} events: wrong clocks? {way_out}"
    if min(days).year < 1990:
        yield f"events lie in {min(days).year}: check the format of times (--time-format)"
    if counts.repeated:
        yield (
            f"{counts.repeated:,} events lie in an hour that the clocks of --times-in repeat: where the log names no "
            "zone, the later one was taken"
        )
    for name, (_, meaning) in _MARKS.items():
        if counts.marks[name] and (name != "zoneless" or not zone_read):
            yield f"{counts.marks[name]:,} {meaning}"
    if not hours:
        yield "the shop's zone is not known: days and hours are those of UTC (--zone)"
    if counts.shared:
        yield f"{counts.shared:,} of {counts.clients:,} clients have several visitors: shared browsers?"
    share = counts.busiest / events
    if counts.busiest >= _BUSY_EVENTS and share >= _BUSY and counts.clients > 1:
        yield f"one client has {counts.busiest:,} events, {share:.1%} of all: a bot? --most-events drops such clients"
    if not counts.visitors:
        yield "no visitor is known: every session will be anonymous"
    unknown = counts.by["device"].get(UNKNOWN, 0)
    if unknown == events:
        yield "no device is known: statistics of devices will have one group, and features of devices say nothing"
    elif unknown:
        yield f"the device of {unknown:,} events ({unknown / events:.1%}) is unknown"
    if counts.by["channel"].get(UNKNOWN, 0) == events:
        yield "no channel is known"
    if not counts.purchases:
        yield "a log without a purchase: statistics of classes will be empty; nothing can be trained"


def _edge(days: list[tuple[date, int]], total: int) -> list[tuple[date, int]]:
    """Return the days at one end that hold next to nothing, or little and far from the others."""
    odd, seen, gap = 0, 0, 0
    for place, (_, events) in enumerate(days):
        if events and place and gap >= _FAR and seen <= _FEW * total:
            odd = place
        gap = 0 if events else gap + 1
        seen += events
        if seen < _RARE_DAY * total:
            odd = place + 1
        elif seen > _FEW * total:
            break
    return [one for one in days[:odd] if one[1]]


# The import.

_SESSIONS = {"Administrative", "ProductRelated", "PageValues", "Revenue"}
"""Columns of UCI's Online Shoppers Purchasing Intention: a row is a session."""


class Chosen(NamedTuple):
    """What is read."""

    format: LogFormat  # of all files
    files: list[
        tuple[SourceFile, Layout]
    ]  # of events, in the order of their names, which is the order of arrival
    left_out: list[str]  # names of files that hold no events
    zone: str | None = None  # that the log says its days are in


def choose_format(
    sources: Sequence[Path], name: str | None = None, mapping: ColumnMapping | None = None
) -> Chosen:
    """Find the format of files or folders."""
    by_name = {one.name: one for one in LOG_FORMATS}
    if name is not None and name not in by_name:
        raise UnknownNameError("log format", name, by_name)
    if mapping is not None and name not in (None, "columns"):
        raise UsageError(f"format {name!r} takes no columns", "leave out the format, or the columns")
    paths, zone = [path for source in sources for path in _files_of(source)], None
    if len(sources) == 1 and mapping is None and name in (None, "shop-log"):
        paths, zone = _generated(sources[0]) or (paths, None)
    for path, times in Counter(path.resolve() for path in paths).items():
        if times > 1:
            raise UsageError(f"{path} is given {times} times", "its events would be, too: name it once")
    if not paths:
        raise DataError(f"{sources[0]} has no file of events", "give the files themselves")
    files = [look_at(path) for path in sorted(paths, key=lambda path: (path.name, str(path)))]
    if mapping is not None:
        return Chosen(by_name["columns"], [(file, mapping.layout(file)) for file in files], [])
    for file in files:
        if set(file.names) >= _SESSIONS:
            raise UsageError(
                f"{file.name} is a table of sessions (UCI), not of events; mind that its column PageValues is "
                "computed from purchases",
                f"diptych intent features {file.path} --out FEATURES",
            )
    strange: list[SourceFile] = []
    for one in LOG_FORMATS if name is None else [by_name[name]]:
        events = [file for file in files if file.stem not in one.others]
        layouts = [(file, one.layout(file)) for file in events]
        fitting = [(file, layout) for file, layout in layouts if layout is not None]
        if events and len(fitting) == len(events):
            return Chosen(one, fitting, [file.name for file in files if file not in events], zone)
        if not events and name is not None:
            raise DataError(
                f"there are no events in {', '.join(file.name for file in files)}", "give other files"
            )
        if fitting or not strange:
            strange = [file for file, layout in layouts if layout is None]
    file = (strange or files)[0]
    asked = f"it is no file of {name}: {by_name[name].description}" if name else "no log format recognises it"
    raise UsageError(
        f"{file.name} has columns {', '.join(file.names)}: {asked}",
        "name its columns: --column time=COLUMN --column client=COLUMN …, or a format: "
        f"--format {', '.join(by_name)}",
    )


def _files_of(source: Path) -> list[Path]:
    if not source.is_dir():
        return [source]
    return [
        path
        for path in source.iterdir()
        if path.is_file()
        and not path.name.startswith(".")
        and path.name.lower().removesuffix(".gz").endswith(ENDINGS)
    ]


def _generated(folder: Path) -> tuple[list[Path], str] | None:
    """Return the files and the zone of a generated shop log, None where the folder is none."""
    marker = folder / "dataset.json"
    made = read_json(marker) if marker.is_file() else None
    if not isinstance(made, dict) or made.get("dataset") != "shop-log":
        return None
    pattern = "events.csv.gz" if made["format"] == "csv" else "events/part-*.parquet"
    return list(folder.glob(pattern)), str(made["zone"])


def ingest(
    source: Path | str | Sequence[Path | str],
    folder: Path | str,
    *,
    mapping: ColumnMapping | None = None,
    cleaning: Cleaning | None = None,
    **options: Any,
) -> Log:
    """Import a raw log.

    Args:
        source: a file, a folder, or several of them.
        folder: where the log is written.
        mapping: which of a user's own columns holds what.
        cleaning: which events are kept.
        options: fields of :class:`ImportOptions`.
    """
    sources = [Path(source)] if isinstance(source, Path | str) else [Path(one) for one in source]
    folder, cleaning = Path(folder), cleaning or Cleaning()
    given = ImportOptions.read(options, "an import")
    mapping = mapping or given.mapping()
    if not sources:
        raise UsageError("no file is given", "name at least one")
    check_replaceable(folder, Log.marker())
    for one in sources:
        if one.resolve().is_relative_to(folder.resolve()):
            raise UsageError(
                f"{one} lies in {folder}, which would be replaced", "write the log to another folder"
            )
    chosen = choose_format(sources, given.format, mapping)
    zone, times_in = given.zone or chosen.zone or "UTC", given.times_in or "UTC"
    buckets = given.buckets or _buckets(sum(file.rows for file, _ in chosen.files))
    counts = Counts()
    with atomic_folder(folder, Log.marker()) as made:
        inside, paths = made.resolve(), [file.path.resolve() for file, _ in chosen.files]
        (inside / "work").mkdir()
        with open_database(paths, inside, times_in, given.memory_limit, given.threads) as database:
            _check_zone(database, zone)
            form = chosen.files[0][1].time_format
            try:
                database.rows(f"SELECT {read_time(literal(''), form)}")
            except DataError as error:
                raise UsageError(f"{form!r} is no format of times: {error.message}") from None
            ends = (_moment(database, text, zone) for text in (cleaning.since, cleaning.until))
            rules, later = row_rules(cleaning, *ends), bucket_rules(cleaning)
            files = [_checked(file) for file, _ in track(chosen.files, "checking", unit="files")]
            _stage(database, chosen.files, rules, buckets, inside / "work", counts)
            digits = max(2, len(str(buckets - 1)))
            for number in track(range(buckets), "sorting", unit="buckets"):
                staged = sorted(inside.glob(f"work/*/bucket={number}/*.parquet"))
                target = inside / EVENTS / f"bucket={number:0{digits}d}" / "part.parquet"
                _write_bucket(database, staged, later, zone, target, counts)
                for file in staged:
                    file.unlink()
            dropped = [_dropped(rule, counts) for rule in (*rules, *later)]
            if not counts.events:
                raise DataError(
                    f"no event is left of {counts.rows:,} rows ({_lost(dropped) or 'there are none'})",
                    "check the format, the columns and the rules",
                )
            _count(database, sorted((inside / EVENTS).glob("*/*.parquet")), times_in, counts)
        shutil.rmtree(inside / "work")
        about = _about(chosen, counts, given, zone)
        how = {"times_in": times_in, "cleaning": encode(cleaning, {}), "mapping": encode(mapping, {})}
        made_of = [one["fingerprint"] for one in files]
        about |= {"sources": files, "options": how, "rules": dropped, "buckets": buckets}
        about |= {
            "name": given.name or _name(sources[0]),
            "fingerprint": fingerprint("log", Log.FORMAT, chosen.format.name, made_of, zone, how),
        }
        Log(about).save(made / Log.marker())
    return Log.open(folder)


def _buckets(rows: int) -> int:
    """Return a power of two, so that about as many rows as fit into memory are in each."""
    needed = 1
    while needed < MOST_BUCKETS and needed * _BUCKET_ROWS < rows:
        needed *= 2
    return needed


def _checked(file: SourceFile) -> dict[str, Any]:
    """Return what the log says of a file, which is whole."""
    check_whole(file)
    size = file.path.stat().st_size
    return {"file": file.name, "bytes": size, "fingerprint": fingerprint_file(file.path)}


def _dropped(rule: Rule, counts: Counts) -> dict[str, Any]:
    named = counts.named.get(rule.name)
    found = {"rule": rule.name, "description": rule.description, "dropped": counts.dropped[rule.name]}
    return found | ({"named": named} if named else {})


def _lost(dropped: Sequence[Mapping[str, Any]]) -> str:
    """Return what every rule dropped, and the most frequent of it."""
    parts = []
    for one in dropped:
        if one["dropped"]:
            names = ", ".join(map(printable, [*one.get("named", {})][:3]))
            most = f", most of them {names}" if names else ""
            parts.append(f"{one['rule']}: {one['dropped']:,}{most}")
    return "; ".join(parts)


def _about(chosen: Chosen, counts: Counts, given: ImportOptions, zone: str) -> dict[str, Any]:
    """Return what the log says of its events."""
    passed, first = counts.by["local_day"], date(1970, 1, 1)
    days = {first + timedelta(days=day): passed.get(day, 0) for day in range(min(passed), 1 + max(passed))}
    # Where the log names no zone and nobody said one, its hours are what the shop's clocks showed.
    zone_known = bool(given.zone or chosen.zone) or counts.marks["zoneless"] == counts.events
    notes = [*chosen.format.notes, *(f"left out, for it holds no events: {one}" for one in chosen.left_out)]
    notes += _notes(counts, days, given.times_in is not None, zone_known or not chosen.format.has_hours)
    return {
        "importer": chosen.format.name,
        "zone": zone,
        "hours_known": zone_known and chosen.format.has_hours,
        "events": counts.events,
        "rows_read": counts.rows,
        "notes": notes,
        "first": _instant(counts.first_us),
        "last": _instant(counts.last_us),
        "clients": counts.clients,
        "visitors": counts.visitors,
        "purchases": counts.purchases,
        "events_by_day": {day.isoformat(): events for day, events in days.items()},
        "by_action": counts.by["action"],
        "devices": counts.by["device"],
        "channels": counts.by["channel"],
    }


def _instant(microseconds: int) -> str:
    """Whole seconds, ISO 8601."""
    passed = timedelta(microseconds=microseconds)
    return (datetime(1970, 1, 1, tzinfo=UTC) + passed).strftime("%Y-%m-%dT%H:%M:%SZ")


def _name(source: Path) -> str:
    path = source.resolve()
    return path.name if path.is_dir() else path.name.removesuffix(".gz").rpartition(".")[0] or path.name
