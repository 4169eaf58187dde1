"""What an imported log holds, counted over its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from diptych.data.logs.database import Database
from diptych.data.logs.schema import SECOND
from diptych.data.logs.sql import literal
from diptych.data.logs.stage import files_of

_FIRST = date(1970, 1, 1)


@dataclass(frozen=True)
class LogCounts:
    """Events of a log, by what they are.

    Attributes:
        first_us: the earliest time.
        last_us: the latest.
        visitors: different ones.
        purchases: events that mean one.
        days: local day → events; days without any in between have 0.
        actions: action → events.
        devices: device type → events.
        channels: channel → events.
        repeated: events in the later of two hours that the clocks of a zone show alike.
    """

    first_us: int
    last_us: int
    visitors: int
    purchases: int
    days: Mapping[date, int]
    actions: Mapping[str, int]
    devices: Mapping[str, int]
    channels: Mapping[str, int]
    repeated: int = 0


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
