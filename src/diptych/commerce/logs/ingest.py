"""From raw files to a log: two passes in bounded memory, and a report of every row that was read.

The first pass writes every row to the bucket of its client, and those that a rule drops to one of their own, where they
are counted. The second compares the events of each client, bucket by bucket, and writes them in order. Rules have a
fixed order, and a row is counted under the first that drops it: rows read are events kept and rows dropped.
"""

import re
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate, compress
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import ValidationInfo, field_validator

from diptych.commerce.logs.database import (
    DEFAULT_MEMORY,
    REJECTED,
    Database,
    canonical_sql,
    literal,
    literals,
    open_database,
    template,
)
from diptych.commerce.logs.formats import (
    Chosen,
    ColumnMapping,
    SourceFile,
    choose_format,
    read_mapping,
)
from diptych.commerce.logs.log import BOT_WORDS, COLUMNS, EVENTS, UNKNOWN, Log, zone_of
from diptych.core.artifact import encode
from diptych.core.context import task, track
from diptych.core.errors import DataError, UsageError
from diptych.core.files import atomic_folder, check_replaceable
from diptych.core.fingerprint import fingerprint, fingerprint_file
from diptych.core.options import Options, parameter, parse_values
from diptych.core.reading import file_errors, open_bytes, read_toml

MOST_BUCKETS = 256
_BUCKET_ROWS = 1_500_000  # about 0.8 GB while a bucket is cleaned and sorted


class ImportOptions(Options):
    """Describe the files of a raw log."""

    format: str | None = parameter(
        None, "Of the files.", default="recognised", names="diptych.commerce.logs:LOG_FORMATS"
    )
    column: list[str] = parameter([], "TARGET=COLUMN of your own log, e.g. client=cookie_id. Repeatable.")
    columns_file: Path | None = parameter(
        None, "TOML file with [columns], [values.action], [constants], time_format, missing.", "--mapping"
    )
    time_format: str | None = parameter(
        None, "Of your own log: auto, iso, unix, unix-ms, unix-us, or of strptime, e.g. '%d/%m/%Y %H:%M'."
    )
    times_in: str | None = parameter(None, "Zone of times that name none.", default="UTC")
    zone: str | None = parameter(
        None, "Zone of the shop, e.g. Europe/Amsterdam.", default="the log's, or UTC"
    )
    name: str | None = parameter(None, "What reports call the log.", default="as its source")
    buckets: int | None = parameter(None, "Files of events.", ge=1, le=MOST_BUCKETS, default="by the rows")
    memory_limit: str | None = parameter(None, "E.g. 1GB.", default=DEFAULT_MEMORY)
    threads: int | None = parameter(None, "Of the engine.", ge=1, default="all CPUs")

    def mapping(self) -> ColumnMapping | None:
        """Return what the options say of columns; None where they say nothing."""
        found = ColumnMapping() if self.columns_file is None else read_mapping(self.columns_file)
        columns = {**found.columns, **parse_values(self.column, "--column")}
        given = {**dict(found), "columns": columns, "time_format": self.time_format or found.time_format}
        mapping = ColumnMapping.read(given, "--column")
        return None if mapping == ColumnMapping() else mapping


class Cleaning(Options):
    """Choose the events that are kept; rows without a time, for example, are always dropped."""

    since: str | None = parameter(None, "First day or moment that is kept, ISO 8601.")
    until: str | None = parameter(None, "First day or moment that is no longer kept.")
    countries: tuple[str, ...] = parameter((), "Keep only these, e.g. NL,BE,DE. Repeatable.", "--country")
    keep_missing_country: bool = parameter(False, "With --country: keep those without one.")
    devices: tuple[str, ...] = parameter((), "Keep only these, e.g. pc,smartphone. Repeatable.", "--device")
    bots: bool = parameter(False, "Keep events whose user agent is a bot's.", "--keep-bots")
    duplicates: bool = parameter(False, "Keep events equal in all columns.", "--keep-duplicates")
    most_events: int | None = parameter(100_000, "Drop clients with more, whole; 0 for no limit.", ge=0)

    @field_validator("countries", "devices")
    @classmethod
    def _words(cls, given: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        change, form = (str.upper, "[A-Z]{2}") if info.field_name == "countries" else (str.lower, ".+")
        words = sorted({change(part.strip()) for one in given for part in one.split(",")})
        if wrong := [word for word in words if not re.fullmatch(form, word)]:
            raise ValueError(f"{wrong[0]!r} is no name; countries have two letters, e.g. NL,BE,DE")
        return tuple(words)


_DECLARED = read_toml(Path(__file__).with_name("rules.toml"))
_STAGED = [name for name in COLUMNS if not name.startswith("local_")]
_KEPT = ", ".join((*_STAGED, "address", "is_twin"))
_MARKS: Mapping[str, str] = _DECLARED["marks"]  # what else is counted of all rows: among which of them
_NAMED = 20  # things that a rule names of what it dropped
_PARQUET = "FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd"


class _Import:
    """Passes over the files, and what they count."""

    def __init__(
        self, database: Database, folder: Path, chosen: Chosen, cleaning: Cleaning, zone: str, buckets: int
    ) -> None:
        self.database, self.work, self.events = database, folder / "work", folder / EVENTS
        self.files, self.zone, self.buckets = chosen.files, zone, buckets
        self.read = self.rejected = 0  # rows, and of them lines that never became any
        self.work.mkdir()
        options = {
            "since": _moment(cleaning.since, zone_of(zone)),
            "until": _moment(cleaning.until, zone_of(zone)),
            "countries": list(cleaning.countries) or None,
            "keep_missing": cleaning.keep_missing_country,
            "devices": list(cleaning.devices) or None,
            "no_bots": not cleaning.bots or None,
            "bots": "|".join(BOT_WORDS),
            "no_duplicates": not cleaning.duplicates or None,
            "most_events": cleaning.most_events or None,
        }
        for name, value in options.items():
            database.rows(f"SET VARIABLE {name} = ?", [value])
        needed = [one.get("needs", ["bots"]) for one in _DECLARED["rule"]]
        is_on = [any(options[name] is not None for name in names) for names in needed]
        self.rules = list(compress(_DECLARED["rule"], is_on))
        database.rows("CREATE TEMP TABLE dropped (event_id BIGINT, rule INTEGER, named VARCHAR)")

    def stage(self) -> dict[str, int]:
        """Read files, drop rows by rules, write the others to their buckets, and return how many have each mark."""
        rules = [(number, rule) for number, rule in enumerate(self.rules, 1) if "of_client" not in rule]
        drops = " ".join(f"WHEN {rule['drops']} THEN {number}" for number, rule in rules)
        names = " ".join(f"WHEN {number} THEN {rule.get('names', 'NULL')}" for number, rule in rules)
        sizes = [1 + (file.path.stat().st_size >> 20) for file, _ in self.files]
        with task("reading", total=sum(sizes), unit="MB") as bar:
            for number, (size, (file, layout)) in enumerate(zip(sizes, self.files, strict=True)):
                rows = canonical_sql(file, layout, self.read)
                rows = _sql("staged", names=names, drops=drops, rows=rows, buckets=self.buckets)
                target = literal(self.work / f"{number:05d}")
                copy = f"COPY ({rows}) TO {target} (FORMAT parquet, PARTITION_BY (bucket))"
                self.read += self.database.run(copy, bar, size, file.path.name)[0][0]
        if any(file.kind != "parquet" for file, _ in self.files):
            self.rejected = self.database.rows(REJECTED)[0][0]
            self.read += self.rejected
        sums = ", ".join(f"count(*) FILTER ({name} AND {among})" for name, among in _MARKS.items())
        staged = sorted(self.work.glob("*/*/*.parquet"))
        counts = (
            self.database.rows(f"SELECT {sums} FROM {_table(staged)}")[0] if staged else [0] * len(_MARKS)
        )
        return dict(zip(_MARKS, counts, strict=True))

    def write_buckets(self) -> list[Path]:
        digits = max(2, len(str(self.buckets - 1)))
        for number in track(range(self.buckets), "sorting", unit="buckets"):
            if staged := sorted(self.work.glob(f"*/bucket={number}/*.parquet")):
                self._write_bucket(staged, self.events / f"bucket={number:0{digits}d}")
        return sorted(self.events.glob("*/*.parquet"))

    def _write_bucket(self, staged: Sequence[Path], folder: Path) -> None:
        self.database.rows(_sql("events", staged=_table(staged)))
        for number, rule in enumerate(self.rules, 1):
            if "of_client" in rule:
                drops = rule["drops"].format(same=", ".join(_STAGED[1:]))
                self.database.rows(_sql("dropped", number=number, drops=drops))
        folder.mkdir(parents=True)
        ordered = _sql("bucket", columns=", ".join(COLUMNS), zone=literal(self.zone))
        copy = f"COPY ({ordered}) TO {literal(folder / 'part.parquet')} ({_PARQUET})"
        if not self.database.rows(copy)[0][0]:
            shutil.rmtree(folder)
        for file in staged:
            file.unlink()

    def report(self) -> list[dict[str, Any]]:
        lost = "SELECT rule, named FROM dropped"
        if staged := sorted(self.work.glob(f"*/bucket={self.buckets}/*.parquet")):
            lost += f" UNION ALL SELECT rule, named FROM {_table(staged)}"
        found: list[dict[str, Any]] = [
            {"rule": rule["name"], "description": rule["description"], "dropped": 0} for rule in self.rules
        ]
        for number, name, n, total in self.database.rows(_sql("report", lost=lost, most=_NAMED)):
            found[number - 1]["dropped"] = total
            if name is not None:
                found[number - 1].setdefault("named", {})[name] = n
        found[0]["dropped"] += self.rejected
        return found


def _sql(name: str, **given: object) -> str:
    query: str = _DECLARED["sql"][name]
    return query.format(kept=_KEPT, marks=", ".join(_MARKS), **given)


def _table(paths: Iterable[Path]) -> str:
    return f"read_parquet([{literals(paths)}], hive_partitioning = false)"


def _moment(text: str | None, zone: ZoneInfo) -> int | None:
    """Return microseconds of an ISO 8601 date or time; one that names no zone is in ``zone``."""
    if text is None:
        return None
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is no time", "e.g. 2019-10-01, or 2019-10-01T12:00:00+02:00") from None
    moment = given if given.tzinfo else given.replace(tzinfo=zone)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


_RARE_DAY = 1e-4  # share of events at which the first or last days look like clocks that are wrong
_FAR, _FEW = 7, 0.05  # days without events, after which a small share of events is far from the others


def _notes(about: Mapping[str, Any], counts: Mapping[str, Any], database: Database) -> list[str]:
    events, no_device = about["events"], about["devices"].get(UNKNOWN, 0)
    days = [(date.fromisoformat(day), n) for day, n in about["events_by_day"].items()]
    empty = [f"{day}" for day, n in days if not n]
    facts = {
        **counts,
        **{name: about[name] for name in ("events", "clients", "visitors", "purchases")},
        **{"n_days": len(days), "n_empty": len(empty), "year": days[0][0].year},
        "empty": ", ".join(empty[:5]) + (", …" if len(empty) > 5 else ""),
        "first_odd": _edge(days, events),
        "last_odd": _edge(days[::-1], events),
        "busy": counts["busiest"] / events,
        **{"no_device": no_device, "without": no_device / events},
        "no_channel": about["channels"].get(UNKNOWN, 0),
    }
    notes, given = _DECLARED["note"], ", ".join(f"? AS {name}" for name in facts)
    whens = ", ".join(f"({note['when']})" for note in notes)
    (holds,) = database.rows(f"SELECT {whens} FROM (SELECT {given})", list(facts.values()))
    return [note["text"].format(**facts) for note, is_so in zip(notes, holds, strict=True) if is_so]


def _edge(days: list[tuple[date, int]], total: int) -> str:
    """Describe the days at one end that hold next to nothing, or little and far from the others; nothing of none."""
    busy = [one for one in days if one[1]]
    seen = list(accumulate(n for _, n in busy))
    odd = [
        place
        for place, (n, (one, _), (after, _)) in enumerate(zip(seen, busy, busy[1:], strict=False))
        if n < _RARE_DAY * total or (n <= _FEW * total and abs(after - one).days > _FAR)
    ]
    if not odd:
        return ""
    begin, close = sorted((busy[0][0], busy[odd[-1]][0]))
    fix = f"--since {close + timedelta(days=1)}" if days[0] < days[-1] else f"--until {begin}"
    span = f"{begin}" if begin == close else f"{begin} to {close}"
    return f"({span}) hold only {seen[odd[-1]]:,} of {total:,} events: wrong clocks? {fix}"


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
    importer, times_in, zone = chosen.format, given.times_in or "UTC", given.zone or chosen.zone
    rows = sum(file.rows for file, _ in chosen.files)
    buckets = given.buckets or min(MOST_BUCKETS, 1 << (max(0, rows - 1) // _BUCKET_ROWS).bit_length())
    how = {"times_in": times_in, "cleaning": encode(cleaning, {}), "mapping": encode(mapping, {})}
    with atomic_folder(folder, Log.marker()) as made:
        paths = [file.path.resolve() for file, _ in chosen.files]
        with open_database(paths, made.resolve(), times_in, given.memory_limit, given.threads) as database:
            running = _Import(database, made.resolve(), chosen, cleaning, zone or "UTC", buckets)
            made_of = [describe_whole(file) for file, _ in track(chosen.files, "checking", unit="files")]
            counts: dict[str, Any] = running.stage()
            written, rules = running.write_buckets(), running.report()
            if not written:
                counted = [(one, [*one.get("named", ())][:3] or "") for one in rules if one["dropped"]]
                lost = "; ".join(f"{one['rule']}: {one['dropped']:,} {names}" for one, names in counted)
                wrong = f"no event is left of {running.read:,} rows ({lost or 'there are none'})"
                raise DataError(wrong, "check the format, the columns and the rules")
            about = database.record(template("summary", table=_table(written)))
            days, first = about["events_by_day"], date(1970, 1, 1)
            days = {day: days.get(day, 0) for day in range(min(days), max(days) + 1)}
            about["events_by_day"] = {f"{first + timedelta(days=day)}": n for day, n in days.items()}
            for name in ("by_action", "devices", "channels"):
                about[name] = dict(Counter(about[name]).most_common())
            # Where the log names no zone and none was given, its hours are what the shop's clocks showed.
            known = bool(zone) or counts["zoneless"] == about["events"]
            counts |= {name: about.pop(name) for name in ("shared", "busiest")}
            counts |= {"hours": known or not importer.has_hours}
            counts["zoneless"] *= given.times_in is None
            odd = _notes(about, counts, database)
        shutil.rmtree(running.work)
        prints = [one["fingerprint"] for one in made_of]
        no_events = [f"left out, for it holds no events: {one}" for one in chosen.left_out]
        about |= {"importer": importer.name, "name": given.name or _name(sources[0]), "zone": zone or "UTC"}
        about |= {"rows_read": running.read, "buckets": buckets, "hours_known": known and importer.has_hours}
        about |= {
            "notes": [*importer.notes, *no_events, *odd],
            "rules": rules,
            "sources": made_of,
            "options": how,
        }
        about["fingerprint"] = fingerprint("log", Log.FORMAT, importer.name, prints, about["zone"], how)
        Log(about).save(made / Log.marker())
    return Log.open(folder)


def describe_whole(file: SourceFile) -> dict[str, Any]:
    """Describe a file; DataError for a gzipped one that is cut, of which the database would read what there is."""
    if file.gzipped:
        with file_errors(file.path, DataError), open_bytes(file.path, gzipped=True) as handle:
            while handle.read(1 << 20):
                pass
    size = file.path.stat().st_size
    return {"file": file.path.name, "bytes": size, "fingerprint": fingerprint_file(file.path)}


def _name(source: Path) -> str:
    path = source.resolve()
    return path.name if path.is_dir() else path.name.removesuffix(".gz").rpartition(".")[0] or path.name
