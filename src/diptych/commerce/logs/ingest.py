"""From raw files to a log: two passes in bounded memory, and a report of every row that was read.

The first pass reads every file once, row by row, and writes the rows to the bucket of their client; rows that a rule
drops go to a bucket of their own and are counted there. The second takes one bucket at a time, which holds everything
about its clients: events are compared with others of their client, and written in the order of client, time and
arrival. What does not fit into memory is spilled.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from diptych.commerce.logs.cleaning import MARKS, STAGED, Cleaning, notes_of, rules_of
from diptych.commerce.logs.database import (
    DEFAULT_MEMORY,
    REJECTED,
    Database,
    canonical_sql,
    literal,
    literals,
    open_database,
    read_time,
)
from diptych.commerce.logs.formats import (
    Chosen,
    ColumnMapping,
    SourceFile,
    check_whole,
    choose_format,
    read_mapping,
)
from diptych.commerce.logs.log import EVENTS, Log
from diptych.commerce.logs.schema import COLUMNS, SECOND, printable
from diptych.core.artifact import encode
from diptych.core.context import task, track
from diptych.core.errors import DataError, UsageError
from diptych.core.files import atomic_folder, check_replaceable
from diptych.core.fingerprint import fingerprint, fingerprint_file
from diptych.core.options import Options, parameter

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_BUCKETS = 256
_BUCKET_ROWS = 1_500_000  # about 0.8 GB while a bucket is cleaned and sorted


class ImportOptions(Options):
    """Describe the files of a raw log."""

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
    memory_limit: str | None = parameter(None, "E.g. 1GB.", default=DEFAULT_MEMORY)
    threads: int | None = parameter(None, "Of the engine.", ge=1, default="all processors")

    def mapping(self) -> ColumnMapping | None:
        """Return what the options name; None where they name no column."""
        if not self.column and self.columns_file is None:
            if self.time_format is not None:
                fix = "name them with --column or --mapping"
                raise UsageError("--time-format is of your own columns", fix)
            return None
        found = ColumnMapping() if self.columns_file is None else read_mapping(self.columns_file)
        found = found.with_columns(self.column)
        return found.model_copy(update={"time_format": self.time_format or found.time_format})


_KEPT = (*STAGED, "address", "is_twin")
_NAMED = 20  # things that a rule names of what it dropped
_DAY, _HOUR = 86_400 * SECOND, 3_600 * SECOND
_LOCAL = {
    "local_day": f"(local_us // {_DAY})::INTEGER",
    "local_hour": f"(local_us // {_HOUR} % 24)::TINYINT",
    "local_dow": f"((local_us // {_DAY} + 3) % 7)::TINYINT",  # 1970-01-01 was a Thursday, and 0 is Monday
}
_PARQUET = "FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd"


class _Import:
    """Passes over the files, and what they count."""

    def __init__(
        self, database: Database, folder: Path, chosen: Chosen, cleaning: Cleaning, zone: str, buckets: int
    ) -> None:
        database.check_zone(zone)
        try:
            database.rows(f"SELECT {read_time(literal(''), chosen.files[0][1].time_format)}")
        except DataError as error:
            raise UsageError(f"times have no such format: {error.message}", "see --time-format") from None
        self.database, self.folder, self.zone, self.buckets = database, folder, zone, buckets
        self.files, self.work = chosen.files, folder / "work"
        since, until = (_moment(database, text, zone) for text in (cleaning.since, cleaning.until))
        self.rules = rules_of(cleaning, since, until, database)
        self.read = self.rejected = 0  # rows, and of them lines that never became any
        self.counts = dict.fromkeys(MARKS, 0)
        database.rows("CREATE TEMP TABLE dropped (event_id BIGINT, rule INTEGER, named VARCHAR)")

    def stage(self) -> None:
        """Read files, drop rows by rules, and write the others to their buckets."""
        rules = [(number, rule) for number, rule in enumerate(self.rules, 1) if not rule.of_client]
        drops = " ".join(f"WHEN {rule.drops} THEN {number}" for number, rule in rules)
        names = " ".join(f"WHEN {number} THEN {rule.names}" for number, rule in rules)
        sizes = [1 + (file.path.stat().st_size >> 20) for file, _ in self.files]
        with task("reading", total=sum(sizes), unit="MB") as bar:
            for number, (size, (file, layout)) in enumerate(zip(sizes, self.files, strict=True)):
                rows = f"""
                    SELECT {", ".join([*_KEPT, *MARKS])}, rule, (CASE rule {names} END)::VARCHAR AS named,
                        if(rule = 0, bucket_of(client_id, {self.buckets}), {self.buckets})::INTEGER AS bucket
                    FROM (SELECT *, CASE {drops} ELSE 0 END::INTEGER AS rule
                          FROM ({canonical_sql(file, layout, self.read)}))"""
                target = literal(self.work / f"{number:05d}")
                copy = f"COPY ({rows}) TO {target} (FORMAT parquet, PARTITION_BY (bucket))"
                self.read += self.database.run(copy, bar, size, file.name)[0][0]
        if staged := sorted(self.work.glob("*/*/*.parquet")):
            sums = ", ".join(f"count(*) FILTER ({name} AND {among})" for name, among in MARKS.items())
            marks = self.database.rows(f"SELECT {sums} FROM {_table(staged)}")[0]
            self.counts |= dict(zip(MARKS, marks, strict=True))
        if any(file.kind != "parquet" for file, _ in self.files):
            self.rejected = self.database.rows(REJECTED)[0][0]
            self.read += self.rejected

    def write_buckets(self) -> list[Path]:
        """Clean the events of one bucket after the other, and return the files that were written."""
        digits = max(2, len(str(self.buckets - 1)))
        for number in track(range(self.buckets), "sorting", unit="buckets"):
            if staged := sorted(self.work.glob(f"*/bucket={number}/*.parquet")):
                self._write_bucket(staged, self.folder / EVENTS / f"bucket={number:0{digits}d}")
        return sorted((self.folder / EVENTS).glob("*/*.parquet"))

    def _write_bucket(self, staged: Sequence[Path], folder: Path) -> None:
        left = f"FROM {_table(staged)} WHERE event_id NOT IN (SELECT event_id FROM dropped)"
        self.database.rows(f"CREATE OR REPLACE TEMP VIEW events AS SELECT {', '.join(_KEPT)} {left}")
        for place, rule in enumerate(self.rules, 1):
            if rule.of_client:
                found = f"SELECT event_id, {place}, named FROM ({rule.drops}) AS found (event_id, named)"
                self.database.rows(f"INSERT INTO dropped {found}")
        columns = ", ".join(f"{_LOCAL.get(name, name)} AS {name}" for name in COLUMNS)
        wall = f"epoch_us(timezone({literal(self.zone)}, make_timestamptz(t_us)))"
        rows = f"SELECT *, {'t_us' if self.zone == 'UTC' else wall} AS local_us FROM events"
        ordered = f"SELECT {columns} FROM ({rows}) ORDER BY client_id, t_us, event_id"
        folder.mkdir(parents=True)
        copy = f"COPY ({ordered}) TO {literal(folder / 'part.parquet')} ({_PARQUET})"
        if not self.database.rows(copy)[0][0]:
            shutil.rmtree(folder)
        for file in staged:
            file.unlink()

    def report(self) -> list[dict[str, Any]]:
        """Return what every rule dropped, and the most frequent of it."""
        lost = "SELECT rule, named FROM dropped"
        if staged := sorted(self.work.glob(f"*/bucket={self.buckets}/*.parquet")):
            lost += f" UNION ALL SELECT rule, named FROM {_table(staged)}"
        counted = f"""
            SELECT rule, named, n, sum(n) OVER (PARTITION BY rule)::BIGINT
            FROM (SELECT rule, named, count(*) AS n FROM ({lost}) GROUP BY rule, named)
            QUALIFY row_number() OVER (PARTITION BY rule ORDER BY named IS NULL, n DESC, named) <= {_NAMED}
            ORDER BY n DESC, named"""
        found: list[dict[str, Any]] = [
            {"rule": rule.name, "description": rule.description, "dropped": 0} for rule in self.rules
        ]
        for number, name, n, total in self.database.rows(counted):
            found[number - 1]["dropped"] = total
            if name is not None:
                found[number - 1].setdefault("named", {})[name] = n
        found[0]["dropped"] += self.rejected
        return found

    def summary(self, files: Sequence[Path]) -> dict[str, Any]:
        """Return what a log says of its events, of which there is at least one."""
        table, epoch = _table(files), date(1970, 1, 1)
        several = "min(visitor_id) IS DISTINCT FROM max(visitor_id) AS several"
        each = f"SELECT count(*) AS n, {several} FROM {table} GROUP BY client_id"
        sums = "count(*), count(*) FILTER (several), max(n)"
        people = self.database.rows(f"SELECT {sums} FROM ({each})")[0]
        self.counts |= dict(zip(("clients", "shared", "busiest"), people, strict=True))
        by_day, by_action, devices, channels = (
            dict(self.database.rows(f"SELECT {one}, count(*) FROM {table} GROUP BY 1 ORDER BY 2 DESC, 1"))
            for one in ("local_day", "action", "device", "channel")
        )
        sums = "count(*), min(t_us), max(t_us), count(*) FILTER (is_purchase), count(DISTINCT visitor_id)"
        events, *ends, purchases, visitors = self.database.rows(f"SELECT {sums} FROM {table}")[0]
        first, last = (f"{EPOCH + timedelta(seconds=t // SECOND):%Y-%m-%dT%H:%M:%SZ}" for t in ends)
        days = {day: by_day.get(day, 0) for day in range(min(by_day), 1 + max(by_day))}
        return {
            **{"events": events, "first": first, "last": last, "visitors": visitors, "purchases": purchases},
            "events_by_day": {(epoch + timedelta(days=day)).isoformat(): n for day, n in days.items()},
            **{"by_action": by_action, "devices": devices, "channels": channels},
            **{"clients": self.counts["clients"], "rows_read": self.read},
        }


def _table(paths: Iterable[Path]) -> str:
    return f"read_parquet([{literals(paths)}], hive_partitioning = false)"


def _moment(database: Database, text: str | None, zone: str) -> int | None:
    """Return microseconds of an ISO 8601 date or time; one that names no zone is in ``zone``."""
    if text is None:
        return None
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is no time", "e.g. 2019-10-01, or 2019-10-01T12:00:00+02:00") from None
    if given.tzinfo is None:
        sql = "SELECT epoch_us(timezone(?, ?::TIMESTAMP))"
        return int(database.rows(sql, [zone, given.isoformat(sep=" ")])[0][0])
    return (given - EPOCH) // timedelta(microseconds=1)


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
    folder, cleaning, given = Path(folder), cleaning or Cleaning(), ImportOptions.read(options, "an import")
    mapping = mapping or given.mapping()
    if not sources:
        raise UsageError("no file is given", "name at least one")
    check_replaceable(folder, Log.marker())
    for one in sources:
        if one.resolve().is_relative_to(folder.resolve()):
            wrong = f"{one} lies in {folder}, which would be replaced"
            raise UsageError(wrong, "write the log to another folder")
    chosen = choose_format(sources, given.format, mapping)
    times_in, zone = given.times_in or "UTC", given.zone or chosen.zone
    rows, name = sum(file.rows for file, _ in chosen.files), given.name or _name(sources[0])
    buckets = given.buckets or min(MOST_BUCKETS, 1 << (max(0, rows - 1) // _BUCKET_ROWS).bit_length())
    how = {"times_in": times_in, "cleaning": encode(cleaning, {}), "mapping": encode(mapping, {})}
    with atomic_folder(folder, Log.marker()) as made:
        inside, paths = made.resolve(), [file.path.resolve() for file, _ in chosen.files]
        (inside / "work").mkdir()
        with open_database(paths, inside, times_in, given.memory_limit, given.threads) as database:
            running = _Import(database, inside, chosen, cleaning, zone or "UTC", buckets)
            made_of = [_whole(file) for file, _ in track(chosen.files, "checking", unit="files")]
            running.stage()
            written, rules, counts = running.write_buckets(), running.report(), running.counts
            if not written:
                lost = "; ".join(map(_lost, filter(lambda one: one["dropped"], rules))) or "there are none"
                wrong = f"no event is left of {running.read:,} rows ({lost})"
                raise DataError(wrong, "check the format, the columns and the rules")
            about = running.summary(written)
            # Where the log names no zone and none was given, its hours are what the shop's clocks showed.
            known = bool(zone) or counts["zoneless"] == about["events"]
            counts["zoneless"] *= given.times_in is None
            odd = notes_of(about, counts, known or not chosen.format.has_hours, database)
        shutil.rmtree(inside / "work")
        importer, prints = chosen.format.name, [one["fingerprint"] for one in made_of]
        about |= {
            **{"importer": importer, "name": name, "zone": zone or "UTC", "buckets": buckets},
            "hours_known": known and chosen.format.has_hours,
            "notes": [
                *chosen.format.notes,
                *(f"left out, for it holds no events: {one}" for one in chosen.left_out),
                *odd,
            ],
            "rules": rules,
            "sources": made_of,
            "options": how,
            "fingerprint": fingerprint("log", Log.FORMAT, importer, prints, zone or "UTC", how),
        }
        Log(about).save(made / Log.marker())
    return Log.open(folder)


def _whole(file: SourceFile) -> dict[str, Any]:
    check_whole(file)
    size = file.path.stat().st_size
    return {"file": file.name, "bytes": size, "fingerprint": fingerprint_file(file.path)}


def _lost(rule: dict[str, Any]) -> str:
    names = ", ".join(map(printable, [*rule.get("named", {})][:3]))
    return f"{rule['rule']}: {rule['dropped']:,}" + (f", most of them {names}" if names else "")


def _name(source: Path) -> str:
    path = source.resolve()
    return path.name if path.is_dir() else path.name.removesuffix(".gz").rpartition(".")[0] or path.name
