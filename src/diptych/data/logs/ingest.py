"""From raw files to a log: two passes in bounded memory, and a report of every row that was read."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from diptych.core.errors import DataError, UsageError
from diptych.core.files import atomic_folder, check_replaceable, write_json
from diptych.core.fingerprint import fingerprint, fingerprint_file
from diptych.core.progress import track
from diptych.data.logs.bucket import BucketCounts, write_bucket
from diptych.data.logs.choose import Chosen, choose_format
from diptych.data.logs.cleaning import Cleaning, Period
from diptych.data.logs.counts import LogCounts, count_log
from diptych.data.logs.database import Database, open_database
from diptych.data.logs.log import EVENTS, FORMAT, MARKER, Log
from diptych.data.logs.mapping import ColumnMapping
from diptych.data.logs.notes import log_notes
from diptych.data.logs.rules import BucketRule, RowRule, asked_rules
from diptych.data.logs.source_files import SourceFile, check_whole
from diptych.data.logs.stage import Staged, stage
from diptych.data.logs.times import check_time_format
from diptych.data.logs.words import printable
from diptych.data.logs.zones import check_zone, moment

__all__ = ["MOST_BUCKETS", "ingest"]

MOST_BUCKETS = 256
_NAMED = 3  # of what was dropped, in an error
_BUCKET_ROWS = 1_500_000  # about 0.8 GB while a bucket is cleaned and sorted


def ingest(
    source: Path | str | Sequence[Path | str],
    folder: Path | str,
    *,
    format: str | None = None,
    mapping: ColumnMapping | None = None,
    zone: str | None = None,
    times_in: str = "UTC",
    cleaning: Cleaning | None = None,
    name: str | None = None,
    buckets: int | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> Log:
    """Import a raw log.

    Args:
        source: a file or a folder of them, or several; they are read in the order of their names.
        folder: where the log goes; a log that is there is replaced.
        format: a name of ``LOG_FORMATS``; recognised when not given.
        mapping: which of a user's own columns holds what.
        zone: of local days and hours; as the log says it, else UTC, when not given.
        times_in: zone of times that name none.
        cleaning: which events are dropped.
        name: what reports call the log; as its source is called when not given.
        buckets: files of events by client; by the number of rows when not given. The events do not depend on it.
        memory_limit: of the database, ``"2GB"`` when not given; what needs more is spilled to the disk.
        threads: of the database; the result does not depend on them.

    Returns:
        The log; ``about["rules"]`` has what every rule dropped and ``about["notes"]`` where to look.

    Raises:
        UsageError: something that cannot be: a format, a column, a zone, a rule, a folder with other things.
        DataError: a file is missing or damaged, or no event is left.
        StorageError: the disk or the memory is full; what was there before is whole.
    """
    sources = [Path(source)] if isinstance(source, Path | str) else [Path(one) for one in source]
    folder, cleaning = Path(folder), cleaning or Cleaning()
    if not sources:
        raise UsageError("no file is given", "name at least one")
    if buckets is not None and not 1 <= buckets <= MOST_BUCKETS:
        raise UsageError(f"buckets are {buckets}", f"1 to {MOST_BUCKETS}")
    check_replaceable(folder, MARKER)
    for one in sources:
        if one.resolve() == folder.resolve() or folder.resolve() in one.resolve().parents:
            raise UsageError(
                f"{one} lies in {folder}, which would be replaced", "write the log to another folder"
            )
    chosen = choose_format(sources, format, mapping)
    zone = zone or chosen.zone or "UTC"
    buckets = buckets or _buckets(sum(file.rows for file in chosen.files))
    for file in chosen.files:  # what is wrong with the columns is said before anything long
        chosen.format.given(file)
    with atomic_folder(folder, MARKER) as made:
        work = made / "work"
        work.mkdir()
        paths = [file.path.resolve() for file in chosen.files]
        with open_database(
            paths, made.resolve(), times_in=times_in, memory_limit=memory_limit, threads=threads
        ) as database:
            check_zone(database, zone)
            if mapping is not None:
                check_time_format(database, mapping.time_format)
            period = _period(database, cleaning, zone)
            files = [_checked(file) for file in track(chosen.files, "checking", unit="files")]
            staged, people = _two_passes(database, chosen, cleaning, period, zone, buckets, made.resolve())
            dropped = _dropped(staged, people, cleaning)
            if not people.events:
                raise DataError(
                    f"no event is left of {staged.rows:,} rows ({_lost(dropped) or 'there are none'})",
                    "check the format, the columns and the rules",
                )
            counts = count_log(database, sorted((made.resolve() / EVENTS).glob("*/*.parquet")), times_in)
        shutil.rmtree(work)
        options = {
            "times_in": times_in,
            "cleaning": cleaning.to_dict(),
            "mapping": None if mapping is None else mapping.to_dict(),
        }
        made_of = [one["fingerprint"] for one in files]
        notes = [f"left out, for it holds no events: {left}" for left in chosen.left_out]
        write_json(
            made / MARKER,
            {
                "format": FORMAT,
                "name": name or _name(sources[0]),
                "importer": chosen.format.name,
                "sources": files,
                "zone": zone,
                "options": options,
                "events": people.events,
                "rows_read": staged.rows,
                "rules": dropped,
                "notes": [*chosen.format.notes, *notes, *log_notes(counts, people, staged.marks)],
                **_contents(counts, people),
                "buckets": buckets,
                "fingerprint": fingerprint("log", FORMAT, chosen.format.name, made_of, zone, options),
            },
        )
    return Log.open(folder)


def _checked(file: SourceFile) -> dict[str, Any]:
    """What the log says of a file, which is whole."""
    check_whole(file)
    return {"file": file.name, "bytes": file.size, "fingerprint": fingerprint_file(file.path)}


def _buckets(rows: int) -> int:
    """A power of two, so that about as many rows as fit into memory are in each."""
    needed = 1
    while needed < MOST_BUCKETS and needed * _BUCKET_ROWS < rows:
        needed *= 2
    return needed


def _period(database: Database, cleaning: Cleaning, zone: str) -> Period:
    since, until = (
        None if text is None else moment(database, text, zone) for text in (cleaning.since, cleaning.until)
    )
    return Period(since, until)


def _two_passes(
    database: Database,
    chosen: Chosen,
    cleaning: Cleaning,
    period: Period,
    zone: str,
    buckets: int,
    made: Path,
) -> tuple[Staged, BucketCounts]:
    rules = asked_rules(cleaning)
    of_rows = [rule for rule in rules if isinstance(rule, RowRule)]
    of_buckets = [rule for rule in rules if isinstance(rule, BucketRule)]
    given = chosen.format.given
    staged = stage(database, chosen.files, given, of_rows, cleaning, period, buckets, made / "work")
    people = BucketCounts()
    digits = max(2, len(str(buckets - 1)))
    for number in track(range(buckets), "sorting", unit="buckets"):
        target = made / EVENTS / f"bucket={number:0{digits}d}" / "part.parquet"
        waiting = staged.bucket(number)
        people.add(write_bucket(database, waiting, of_buckets, cleaning, zone, target))
        for file in waiting:
            file.unlink()
    return staged, people


def _dropped(staged: Staged, people: BucketCounts, cleaning: Cleaning) -> list[dict[str, Any]]:
    """What every rule dropped, in the order of rules."""
    dropped = staged.dropped | people.dropped
    named = staged.named | people.named
    return [
        {
            "rule": rule.name,
            "description": rule.description,
            "dropped": dropped[rule.name],
            **({"named": named[rule.name]} if named.get(rule.name) else {}),
        }
        for rule in asked_rules(cleaning)
    ]


def _lost(dropped: Sequence[Mapping[str, Any]]) -> str:
    """What every rule dropped, and the most frequent of it."""
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
