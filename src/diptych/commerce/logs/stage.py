"""First pass of an import: every file is read once, rows are judged, and go to the bucket of their client.

Memory is that of a few thousand rows. Rows are numbered in the order in which they arrive, so one thread reads;
rows that a rule drops go to a bucket of their own and are counted from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from diptych.commerce.logs.canonical import MARKS, STAGED, Given, canonical_query
from diptych.commerce.logs.database import Database
from diptych.commerce.logs.rows import REJECTED
from diptych.commerce.logs.rules import UNREADABLE_ROW, Rule
from diptych.commerce.logs.schema import COLUMNS, SECOND
from diptych.commerce.logs.source_files import SourceFile
from diptych.commerce.logs.sql import literal, literals
from diptych.core.context import task

KEPT = (*STAGED, "address", "is_twin")
"""Columns of rows that wait for the second pass."""

_NAMED = 20  # things that a rule names of what it dropped
_MB = 1 << 20


@dataclass
class Staged:
    """What the first pass found."""

    folder: Path  # where the rows wait
    rows: int = 0  # that were read, also those that were dropped
    dropped: dict[str, int] = field(default_factory=dict)  # rule → how many rows
    # rule → what was dropped, and how often, the most frequent first
    named: dict[str, dict[str, int]] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)  # what was counted beside

    def bucket(self, number: int) -> list[Path]:
        """Return the files of one bucket."""
        return sorted(self.folder.glob(f"*/bucket={number}/*.parquet"))


def stage(
    database: Database,
    files: Sequence[SourceFile],
    given: Callable[[SourceFile], Given],
    rules: Sequence[Rule],
    buckets: int,
    folder: Path,
) -> Staged:
    """Read files, drop rows by rules, and write the others to their buckets in ``folder``."""
    staged = Staged(folder)
    sizes = [1 + file.size // _MB for file in files]
    with task("reading", total=sum(sizes), unit="MB") as bar:
        for number, (file, size) in enumerate(zip(files, sizes, strict=True)):
            target = folder / f"{number:05d}"
            rows = _judged(canonical_query(given(file), staged.rows), rules, buckets)
            copy = f"COPY ({rows}) TO {literal(str(target))} (FORMAT parquet, PARTITION_BY (bucket))"
            database.run(copy, bar, size, file.name)
            written = sorted(target.glob("*/*.parquet"))
            if written:
                staged.rows += int(database.value(f"SELECT count(*) FROM {files_of(written)}"))
    every = sorted(folder.glob("*/*/*.parquet"))
    if every:
        counts = [f"count(*) FILTER ({name} AND {of})" for name, (of, _) in MARKS.items()]
        found = database.rows(f"SELECT {', '.join(counts)} FROM {files_of(every)}")[0]
        staged.marks = dict(zip(MARKS, map(int, found), strict=True))
    _count_dropped(database, staged, rules, staged.bucket(buckets))
    if any(file.kind != "parquet" for file in files):
        rejected = int(database.value(REJECTED))
        staged.dropped[UNREADABLE_ROW] += rejected
        staged.rows += rejected
    return staged


def files_of(paths: Sequence[Path]) -> str:
    """SQL of the table of some Parquet files of ours."""
    return f"read_parquet([{literals(str(path) for path in paths)}], hive_partitioning = false)"


def _judged(rows: str, rules: Sequence[Rule], buckets: int) -> str:
    """SQL of rows with the number of the rule that drops them, or 0, and the bucket they go to."""
    drops = [f"WHEN {rule.drops} THEN {number}" for number, rule in enumerate(rules, 1)]
    names = [f"WHEN {number} THEN {rule.names or 'NULL'}" for number, rule in enumerate(rules, 1)]
    bucket = "0" if buckets == 1 else f"bucket_of(client_id, {buckets})"
    return f"""
        SELECT {", ".join([*KEPT, *MARKS])}, rule, (CASE rule {" ".join(names)} END)::VARCHAR AS named,
            CASE WHEN rule = 0 THEN {bucket} ELSE {buckets} END::INTEGER AS bucket
        FROM (SELECT *, CASE {" ".join(drops)} ELSE 0 END::INTEGER AS rule FROM ({rows}))"""


def _count_dropped(database: Database, staged: Staged, rules: Sequence[Rule], files: Sequence[Path]) -> None:
    staged.dropped = {rule.name: 0 for rule in rules}
    if not files:
        return
    by_number = dict(enumerate(rules, 1))
    for number, dropped in database.rows(f"SELECT rule, count(*) FROM {files_of(files)} GROUP BY rule"):
        staged.dropped[by_number[number].name] = int(dropped)
    named = f"""
        SELECT rule, named, n FROM (
            SELECT rule, named, count(*) AS n,
                row_number() OVER (PARTITION BY rule ORDER BY count(*) DESC, named) AS place
            FROM {files_of(files)} WHERE named IS NOT NULL GROUP BY rule, named)
        WHERE place <= {_NAMED} ORDER BY rule, place"""
    for number, name, dropped in database.rows(named):
        staged.named.setdefault(by_number[number].name, {})[name] = int(dropped)


# Second pass of an import: one bucket at a time, which holds everything about its clients.
#
# Events are held against others of their client, get the hour, week day and day of the log's zone, and are written
# in the order of client, time and arrival. Memory is that of a bucket, and the database spills what does not fit.


_ROW_GROUP = 122_880
_DAY, _HOUR = 86_400 * SECOND, 3_600 * SECOND
_THURSDAY = 3  # 1970-01-01 was one, and 0 is Monday
_BUCKET_NAMED = 10


@dataclass
class BucketCounts:
    """What the second pass found; of several buckets the counts are added up."""

    events: int = 0  # that were kept
    clients: int = 0  # different ones
    shared: int = 0  # clients with more than one visitor
    busiest: int = 0  # most events of one client
    dropped: dict[str, int] = field(default_factory=dict)  # rule → how many events
    named: dict[str, dict[str, int]] = field(default_factory=dict)  # rule → what was dropped, and how often

    def add(self, other: BucketCounts) -> None:
        """Count those of another bucket, too."""
        self.events += other.events
        self.clients += other.clients
        self.shared += other.shared
        self.busiest = max(self.busiest, other.busiest)
        for rule, dropped in other.dropped.items():
            self.dropped[rule] = self.dropped.get(rule, 0) + dropped
        for rule, names in other.named.items():
            both = sorted({**self.named.get(rule, {}), **names}.items(), key=lambda item: (-item[1], item[0]))
            self.named[rule] = dict(both[:_BUCKET_NAMED])


def arrow_schema() -> Any:
    """Return the canonical table's columns in Arrow."""
    import pyarrow as pa

    kinds = {"double": pa.float64(), "bool": pa.bool_(), "string": pa.string()}
    return pa.schema(
        [
            pa.field(one.name, kinds.get(one.type) or pa.type_for_alias(one.type), one.nullable)
            for one in COLUMNS
        ]
    )


def write_bucket(
    database: Database,
    staged: Sequence[Path],
    rules: Sequence[Rule],
    zone: str,
    target: Path,
) -> BucketCounts:
    """Clean the events of a bucket and write them to ``target``, which is not made where none is left."""
    counts = BucketCounts(dropped={rule.name: 0 for rule in rules})
    if not staged:
        return counts
    database.rows("CREATE OR REPLACE TEMP TABLE dropped (event_id BIGINT)")
    left = f"SELECT {', '.join(KEPT)} FROM {files_of(staged)} WHERE event_id NOT IN (SELECT event_id FROM dropped)"
    events = f"WITH events AS NOT MATERIALIZED ({left})"
    for rule in rules:
        if rule.names:
            found = database.rows(
                f"{events} SELECT * FROM ({rule.names}) ORDER BY 2 DESC, 1 LIMIT {_BUCKET_NAMED}"
            )
            counts.named[rule.name] = {str(name): int(n) for name, n in found}
        counts.dropped[rule.name] = int(database.value(f"INSERT INTO dropped {events} {rule.drops}"))
    people = "SELECT count(*) AS n, count(DISTINCT visitor_id) AS visitors FROM events GROUP BY client_id"
    sums = (
        f"{events} SELECT count(*), coalesce(sum(n), 0), count(*) FILTER (visitors > 1), coalesce(max(n), 0) "
        f"FROM ({people})"
    )
    counts.clients, counts.events, counts.shared, counts.busiest = map(int, database.rows(sums)[0])
    if counts.clients:
        _write(database, left, zone, target)
    return counts


def _write(database: Database, events: str, zone: str, target: Path) -> None:
    """One Parquet file, whose bytes are the same whatever the number of threads."""
    import pyarrow.parquet as pq

    schema = arrow_schema()
    local = {
        "local_day": f"(local_us // {_DAY})::INTEGER",
        "local_hour": f"(local_us // {_HOUR} % 24)::TINYINT",
        "local_dow": f"((local_us // {_DAY} + {_THURSDAY}) % 7)::TINYINT",
    }
    columns = ", ".join(f"{local.get(column.name, column.name)} AS {column.name}" for column in COLUMNS)
    wall = "t_us" if zone == "UTC" else f"epoch_us(timezone({literal(zone)}, make_timestamptz(t_us)))"
    rows = f"""
        SELECT {columns} FROM (SELECT {", ".join(STAGED)}, {wall} AS local_us FROM ({events}))
        ORDER BY client_id, t_us, event_id"""
    counted = [field.name for field in schema if field.name in ("event_id", "t_us")]
    target.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(
        target,
        schema,
        compression="zstd",
        use_dictionary=[field.name for field in schema if field.name not in counted],
        column_encoding={name: "DELTA_BINARY_PACKED" for name in counted},
    ) as writer:
        for batch in database.batches(rows, _ROW_GROUP):
            writer.write_table(batch.cast(schema), row_group_size=_ROW_GROUP)


_FIRST = date(1970, 1, 1)


@dataclass(frozen=True)
class LogCounts:
    """Events of a log, by what they are."""

    first_us: int  # the earliest time
    last_us: int  # the latest
    visitors: int  # different ones
    purchases: int  # events that mean one
    days: Mapping[date, int]  # local day → events; days without any in between have 0
    actions: Mapping[str, int]  # action → events
    devices: Mapping[str, int]  # device type → events
    channels: Mapping[str, int]  # channel → events
    repeated: int = 0  # events in the later of two hours that the clocks of a zone show alike


def count_log(database: Database, files: Sequence[Path], times_in: str) -> LogCounts:
    """Count the events of files, of which there is at least one, each with at least one event."""
    table = files_of(files)
    grouped = database.rows(
        f"""SELECT local_day, action, device, channel, count(*), count(*) FILTER (is_purchase), min(t_us), max(t_us)
            FROM {table} GROUP BY GROUPING SETS ((local_day), (action), (device), (channel), ())"""
    )
    days: dict[int, int] = {}
    words: tuple[dict[str, int], ...] = ({}, {}, {})
    purchases = first = last = 0
    for day, *said, events, bought, low, high in grouped:
        place = next((place for place, word in enumerate(said) if word is not None), None)
        if day is not None:
            days[day] = events
        elif place is not None:
            words[place][said[place]] = events
        else:
            purchases, first, last = bought, low, high
    visitors = f"SELECT count(*) FROM (SELECT DISTINCT visitor_id FROM {table} WHERE visitor_id IS NOT NULL)"
    actions, devices, channels = map(_most_first, words)
    return LogCounts(
        first,
        last,
        int(database.value(visitors)),
        purchases,
        {_FIRST + timedelta(days=day): days.get(day, 0) for day in range(min(days), 1 + max(days))},
        actions,
        devices,
        channels,
        _repeated(database, table, times_in),
    )


def _repeated(database: Database, table: str, zone: str) -> int:
    if zone == "UTC":
        return 0
    quarter, hour = 900 * SECOND, 3_600 * SECOND
    now, before = (
        f"timezone({literal(zone)}, make_timestamptz(quarter * {quarter} - {earlier}))"
        for earlier in (0, hour)
    )
    quarters = f"SELECT t_us // {quarter} AS quarter, count(*) AS n FROM {table} GROUP BY quarter"
    return int(database.value(f"SELECT coalesce(sum(n), 0) FROM ({quarters}) WHERE {now} = {before}"))


def _most_first(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
