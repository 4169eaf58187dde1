"""From raw files to a log: two passes in bounded memory, and a report of every row that was read."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from diptych.commerce.logs.canonical import LOG_FORMATS, MARKS, LogFormat
from diptych.commerce.logs.database import Database, open_database
from diptych.commerce.logs.log import EVENTS, Log
from diptych.commerce.logs.mapping import ColumnMapping
from diptych.commerce.logs.rules import Cleaning, Rule, bucket_rules, row_rules
from diptych.commerce.logs.schema import UNKNOWN, printable
from diptych.commerce.logs.source_files import SourceFile, check_whole, files_in, look_at
from diptych.commerce.logs.sql import check_time_format, check_zone, moment
from diptych.commerce.logs.stage import BucketCounts, LogCounts, Staged, count_log, stage, write_bucket
from diptych.core.artifact import encode
from diptych.core.context import track
from diptych.core.errors import DataError, UsageError
from diptych.core.files import atomic_folder, check_replaceable
from diptych.core.fingerprint import fingerprint, fingerprint_file
from diptych.core.options import Options, parameter

_RARE_DAY = 1e-4  # share of events at which the first or last days look like clocks that are wrong
_FAR = 7  # days without events, after which few events are far from the others
_FEW = 0.05
_BUSY = 0.01  # share of events of one client
_BUSY_EVENTS = 1000
_OLD = 1990
_SHOWN = 5


def log_notes(counts: LogCounts, people: BucketCounts, marks: Mapping[str, int]) -> list[str]:
    """Return what is odd, in a fixed order."""
    return [
        *_days(counts.days),
        *_clocks(counts),
        *_rows(marks),
        *_people(counts, people),
        *_words(counts, people.events),
    ]


def _days(days: Mapping[date, int]) -> Iterator[str]:
    empty = [day for day, events in days.items() if not events]
    if empty:
        shown = ", ".join(map(str, empty[:_SHOWN])) + (", …" if len(empty) > _SHOWN else "")
        yield f"{len(empty):,} of {len(days):,} days have no event: {shown}"
    ordered = list(days.items())
    total = sum(days.values())
    for which, edge in (("first", ordered), ("last", ordered[::-1])):
        odd = _edge(edge, total)
        if odd:
            events = sum(n for _, n in odd)
            until, from_day = max(day for day, _ in odd) + timedelta(days=1), min(day for day, _ in odd)
            way_out = f"--since {until}" if which == "first" else f"--until {from_day}"
            span = f"{from_day}" if len(odd) == 1 else f"{from_day} to {until - timedelta(days=1)}"
            yield f"the {which} days ({span}) hold only {events:,} of {total:,} events: wrong clocks? {way_out}"
    if min(days).year < _OLD:
        yield f"events lie in {min(days).year}: check the format of times (--time-format)"


def _clocks(counts: LogCounts) -> Iterator[str]:
    if counts.repeated:
        yield (
            f"{counts.repeated:,} events lie in an hour that the clocks of --times-in repeat: where the log names no "
            "zone, the later one was taken"
        )


def _edge(days: list[tuple[date, int]], total: int) -> list[tuple[date, int]]:
    """Return the days at one end that hold next to nothing, or little and far from the others."""
    odd, seen, gap = 0, 0, 0
    for place, (_, events) in enumerate(days):
        if events:
            if place and gap >= _FAR and seen <= _FEW * total:
                odd = place
            gap = 0
        else:
            gap += 1
        seen += events
        if seen < _RARE_DAY * total:
            odd = place + 1
        elif seen > _FEW * total:
            break
    return [one for one in days[:odd] if one[1]]


def _rows(marks: Mapping[str, int]) -> Iterator[str]:
    for name, (_, says) in MARKS.items():
        if marks.get(name):
            yield f"{marks[name]:,} {says}"


def _people(counts: LogCounts, people: BucketCounts) -> Iterator[str]:
    if people.shared:
        yield f"{people.shared:,} of {people.clients:,} clients have several visitors: shared browsers?"
    share = people.busiest / people.events
    if people.busiest >= _BUSY_EVENTS and share >= _BUSY and people.clients > 1:
        yield f"one client has {people.busiest:,} events, {share:.1%} of all: a bot? --most-events drops such clients"
    if not counts.visitors:
        yield "no visitor is known: every session will be anonymous"


def _words(counts: LogCounts, events: int) -> Iterator[str]:
    unknown = counts.devices.get(UNKNOWN, 0)
    if unknown == events:
        yield "no device is known: statistics of devices will have one group, and features of devices say nothing"
    elif unknown:
        yield f"the device of {unknown:,} events ({unknown / events:.1%}) is unknown"
    if counts.channels.get(UNKNOWN, 0) == events:
        yield "no channel is known"
    if not counts.purchases:
        yield "a log without a purchase: statistics of classes will be empty; nothing can be trained"


_SESSIONS = ("Administrative", "ProductRelated", "PageValues", "Revenue")
"""Columns of UCI's Online Shoppers Purchasing Intention: a row is a session."""


@dataclass(frozen=True)
class Chosen:
    """What is read."""

    format: LogFormat  # the format of all files
    files: tuple[SourceFile, ...]  # of events, in the order of their names, which is the order of arrival
    left_out: tuple[str, ...] = ()  # names of files that hold no events
    zone: str | None = None  # that the log says its days are in


def choose_format(
    sources: Sequence[Path], name: str | None = None, mapping: ColumnMapping | None = None
) -> Chosen:
    """Find the format of files or folders."""
    if mapping is not None and name not in (None, "columns"):
        raise UsageError(f"format {name!r} takes no columns", "leave out the format, or the columns")
    if len(sources) == 1 and mapping is None:
        for one in LOG_FORMATS if name is None else [LOG_FORMATS.get(name)]:
            marked = one.files(sources[0]) if one.files is not None else None
            if marked is not None:
                zone = one.zone(sources[0]) if one.zone is not None else None
                return Chosen(one, _looked_at(marked, sources[0]), zone=zone)
    paths = [path for source in sources for path in (files_in(source) if source.is_dir() else [source])]
    for path, times in Counter(path.resolve() for path in paths).items():
        if times > 1:
            raise UsageError(f"{path} is given {times} times", "its events would be, too: name it once")
    if mapping is not None:
        own = replace(LOG_FORMATS.get("columns"), given=mapping.given)
        return Chosen(own, _looked_at(paths, sources[0]))
    chosen = None if name is None else LOG_FORMATS.get(name)
    files = _looked_at(paths, sources[0])
    for file in files:
        if file.has(*_SESSIONS):
            raise UsageError(
                f"{file.name} is a table of sessions (UCI), not of events; mind that its column PageValues is "
                "computed from purchases",
                f"diptych intent features {file.path} --out FEATURES",
            )
    if chosen is None:
        chosen = _recognised(files)
    events = tuple(file for file in files if file.stem not in chosen.others)
    if not events:
        raise DataError(
            f"there are no events in {', '.join(file.name for file in files)}", "give other files"
        )
    left_out = tuple(file.name for file in files if file not in events)
    return Chosen(chosen, events, left_out)


def _looked_at(paths: Sequence[Path], source: Path) -> tuple[SourceFile, ...]:
    if not paths:
        raise DataError(f"{source} has no file of events", "give the files themselves")
    return tuple(look_at(path) for path in sorted(paths, key=lambda path: (path.name, str(path))))


def _recognised(files: Sequence[SourceFile]) -> LogFormat:
    """Return the least general format that recognises all files but those that it knows to hold no events."""
    best: tuple[int, SourceFile | None] = (0, None)
    for one in sorted(LOG_FORMATS, key=lambda one: one.general):
        unknown = [file for file in files if file.stem not in one.others and not one.recognises(file)]
        if not unknown and any(one.recognises(file) for file in files):
            return one
        if len(unknown) < len(files):
            best = (len(unknown), unknown[0])
    strange = best[1] or files[0]
    raise UsageError(
        f"no log format recognises {strange.name}, with columns {', '.join(strange.first)}",
        "name its columns: --column time=COLUMN --column client=COLUMN …, or a format: "
        f"--format {', '.join(LOG_FORMATS.names())}",
    )


MOST_BUCKETS = 256
_NAMED = 3  # of what was dropped, in an error
_BUCKET_ROWS = 1_500_000  # about 0.8 GB while a bucket is cleaned and sorted


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
    times_in: str = parameter("UTC", "Zone of times that name none.")
    zone: str | None = parameter(
        None, "Zone of local days and hours, e.g. Europe/Amsterdam.", default="the log's, or UTC"
    )
    name: str | None = parameter(None, "What reports call the log.", default="as its source")
    buckets: int | None = parameter(
        None, "Files of events.", ge=1, le=MOST_BUCKETS, default="by the number of rows"
    )
    memory_limit: str | None = parameter(None, "E.g. 1GB.", default="2GB")
    threads: int | None = parameter(None, "Of the engine.", ge=1, default="all processors")


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
    mapping = mapping or ColumnMapping.of(given.column, given.columns_file, given.time_format)
    if not sources:
        raise UsageError("no file is given", "name at least one")
    check_replaceable(folder, Log.marker())
    for one in sources:
        if one.resolve() == folder.resolve() or folder.resolve() in one.resolve().parents:
            raise UsageError(
                f"{one} lies in {folder}, which would be replaced", "write the log to another folder"
            )
    chosen = choose_format(sources, given.format, mapping)
    zone, times_in = given.zone or chosen.zone or "UTC", given.times_in
    buckets = given.buckets or _buckets(sum(file.rows for file in chosen.files))
    for file in chosen.files:  # what is wrong with the columns is said before anything long
        chosen.format.given(file)
    with atomic_folder(folder, Log.marker()) as made:
        work = made / "work"
        work.mkdir()
        paths = [file.path.resolve() for file in chosen.files]
        limits = given.model_dump(include={"times_in", "memory_limit", "threads"})
        with open_database(paths, made.resolve(), **limits) as database:
            check_zone(database, zone)
            if mapping is not None:
                check_time_format(database, mapping.time_format)
            ends = (
                None if text is None else moment(database, text, zone)
                for text in (cleaning.since, cleaning.until)
            )
            rules = row_rules(cleaning, *ends), bucket_rules(cleaning)
            files = [_checked(file) for file in track(chosen.files, "checking", unit="files")]
            staged, people = _two_passes(database, chosen, rules, zone, buckets, made.resolve())
            dropped = _dropped(staged, people, [*rules[0], *rules[1]])
            if not people.events:
                raise DataError(
                    f"no event is left of {staged.rows:,} rows ({_lost(dropped) or 'there are none'})",
                    "check the format, the columns and the rules",
                )
            counts = count_log(database, sorted((made.resolve() / EVENTS).glob("*/*.parquet")), times_in)
        shutil.rmtree(work)
        how = {"times_in": times_in, "cleaning": encode(cleaning, {}), "mapping": encode(mapping, {})}
        made_of = [one["fingerprint"] for one in files]
        notes = [f"left out, for it holds no events: {left}" for left in chosen.left_out]
        log = Log(
            {
                "name": given.name or _name(sources[0]),
                "importer": chosen.format.name,
                "sources": files,
                "zone": zone,
                "options": how,
                "events": people.events,
                "rows_read": staged.rows,
                "rules": dropped,
                "notes": [*chosen.format.notes, *notes, *log_notes(counts, people, staged.marks)],
                **_contents(counts, people),
                "buckets": buckets,
                "fingerprint": fingerprint("log", Log.FORMAT, chosen.format.name, made_of, zone, how),
            }
        )
        log.save(made / Log.marker())
    return Log.open(folder)


def _checked(file: SourceFile) -> dict[str, Any]:
    """Return what the log says of a file, which is whole."""
    check_whole(file)
    return {"file": file.name, "bytes": file.size, "fingerprint": fingerprint_file(file.path)}


def _buckets(rows: int) -> int:
    """Return a power of two, so that about as many rows as fit into memory are in each."""
    needed = 1
    while needed < MOST_BUCKETS and needed * _BUCKET_ROWS < rows:
        needed *= 2
    return needed


def _two_passes(
    database: Database,
    chosen: Chosen,
    rules: tuple[list[Rule], list[Rule]],
    zone: str,
    buckets: int,
    made: Path,
) -> tuple[Staged, BucketCounts]:
    staged = stage(database, chosen.files, chosen.format.given, rules[0], buckets, made / "work")
    people = BucketCounts()
    digits = max(2, len(str(buckets - 1)))
    for number in track(range(buckets), "sorting", unit="buckets"):
        target = made / EVENTS / f"bucket={number:0{digits}d}" / "part.parquet"
        waiting = staged.bucket(number)
        people.add(write_bucket(database, waiting, rules[1], zone, target))
        for file in waiting:
            file.unlink()
    return staged, people


def _dropped(staged: Staged, people: BucketCounts, rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """Return what every rule dropped, in the order of rules."""
    dropped = staged.dropped | people.dropped
    named = staged.named | people.named
    return [
        {
            "rule": rule.name,
            "description": rule.description,
            "dropped": dropped[rule.name],
            **({"named": named[rule.name]} if named.get(rule.name) else {}),
        }
        for rule in rules
    ]


def _lost(dropped: Sequence[Mapping[str, Any]]) -> str:
    """Return what every rule dropped, and the most frequent of it."""
    parts = []
    for one in dropped:
        names = [*one.get("named", {})][:_NAMED]
        most = f", most of them {', '.join(map(printable, names))}" if names else ""
        if one["dropped"]:
            parts.append(f"{one['rule']}: {one['dropped']:,}{most}")
    return "; ".join(parts)


def _contents(counts: LogCounts, people: BucketCounts) -> dict[str, Any]:
    return {
        "first": _instant(counts.first_us),
        "last": _instant(counts.last_us),
        "clients": people.clients,
        "visitors": counts.visitors,
        "purchases": counts.purchases,
        "events_by_day": {day.isoformat(): events for day, events in counts.days.items()},
        "by_action": dict(counts.actions),
        "devices": dict(counts.devices),
        "channels": dict(counts.channels),
    }


def _instant(microseconds: int) -> str:
    """Whole seconds, ISO 8601."""
    passed = timedelta(microseconds=microseconds)
    return (datetime(1970, 1, 1, tzinfo=UTC) + passed).strftime("%Y-%m-%dT%H:%M:%SZ")


def _name(source: Path) -> str:
    path = source.resolve()
    return path.name if path.is_dir() else path.name.removesuffix(".gz").rpartition(".")[0] or path.name
