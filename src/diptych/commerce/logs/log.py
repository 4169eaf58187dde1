"""Log: a folder of canonical events, as an import wrote it.

Events are in as many buckets (``events/bucket=00/part.parquet``, …) as ``log.json`` says, by a hash of their client:
all of a client is in one, a pass needs the memory of one, and in it events are in the order of client, time and event.
Times are whole microseconds since 1970-01-01 UTC and are computed with as integers, so that no engine's idea of a
timestamp matters; hour, week day and day are those of the log's zone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from diptych.core.artifact import Artifact
from diptych.core.chart import Chart, Series
from diptych.core.errors import UnknownNameError
from diptych.core.reading import read_toml
from diptych.core.table import Cell, Table, Tabular, harmless

SECOND = 1_000_000  # microseconds
UNKNOWN = "unknown"  # a device, channel or page type that the log does not have

THESIS_DEVICES = ("smartphone", "pc", "tablet", "game console", "tv")
"""Device types of thesis section 6.3, as they are spelled here: lower case."""

THESIS_CHANNELS = ("direct", "paid", "organic", "other")
"""Channels of thesis Table 6.2."""

LENGTH_ACTIONS = ("page", "query", "add", "remove")
"""Actions that count towards a session's length (thesis section 6.2)."""


def read_columns(file: Path) -> dict[str, dict[str, str]]:
    """Return the columns of each table that a TOML file declares, in order, and their types as Arrow calls them."""
    declared = read_toml(file).items()
    return {table: {name: text.split()[0].rstrip("?") for name, text in of.items()} for table, of in declared}


COLUMNS = read_columns(Path(__file__).with_name("events.toml"))["events"]
"""Files of events have these columns and no other."""

_WORDS = read_toml(Path(__file__).with_name("words.toml"))
MISSING_WORDS: tuple[str, ...] = tuple(_WORDS["missing"])
ACTION_WORDS: Mapping[str, tuple[str, ...]] = _WORDS["action"]
ACTIONS = tuple(ACTION_WORDS)
DEVICE_WORDS: Mapping[str, tuple[str, ...]] = _WORDS["device"] | {
    UNKNOWN: (UNKNOWN, "(not set)", *sorted({word.lower() for word in MISSING_WORDS}))
}
YES_WORDS: tuple[str, ...] = tuple(_WORDS["yes"])
BOT_WORDS: tuple[str, ...] = tuple(_WORDS["bots"])


def zone_of(name: str) -> ZoneInfo:
    if name not in (names := available_timezones()):
        raise UnknownNameError("time zone", name, names)
    return ZoneInfo(name)


EVENTS = "events"


@dataclass(frozen=True)
class Log(Tabular, Artifact, kind="log", recreate="diptych intent ingest FILE --out LOG"):
    """An imported log."""

    about: dict[str, Any]  # of what it was made, how, and what every rule dropped
    folder: Path = field(init=False, default=Path(), compare=False)  # where it is

    @property
    def name(self) -> str:
        return str(self.about["name"])

    @property
    def fingerprint(self) -> str:
        return str(self.about["fingerprint"])

    @property
    def n_events(self) -> int:
        return int(self.about["events"])

    @property
    def zone(self) -> str:
        return str(self.about["zone"])

    @property
    def hours_known(self) -> bool:
        """Return whether local hours are those of the shop's clocks, so that they may be interpreted."""
        return bool(self.about.get("hours_known", True))

    @property
    def buckets(self) -> list[Path]:
        return sorted((self.folder / EVENTS).glob("bucket=*/*.parquet"))

    def describe(self) -> str:
        return f"{self.name}: {self.n_events:,} events, {self.about['first']} to {self.about['last']} ({self.zone})"

    def lines(self) -> list[str]:
        about = self.about
        return [
            f"{about['events']:,} events kept, of {about['rows_read']:,} rows that were read",
            f"events by action: {_listed(about['by_action'], 10)}",
            f"by device: {_listed(about['devices'], 10)}",
            f"{about['clients']:,} clients, {about['visitors']:,} known visitors, {about['purchases']:,} purchases",
            *(f"note: {note}" for note in about["notes"]),
            self.describe(),
        ]

    def tables(self) -> list[Table]:
        rows = [
            [
                Cell(one["rule"]),
                Cell.number(one["dropped"], 0),
                Cell(f"{100 * one['dropped'] / self.about['rows_read']:.2f}"),
                Cell(one["description"], words=True),
                Cell(_listed(one.get("named", {}), 5), words=True),
            ]
            for one in self.about["rules"]
            if one["dropped"]
        ]
        heads = ("rule", "rows", "%", "what it drops", "most of them")
        return [Table("What the import dropped", heads, rows)] if rows else []

    def charts(self) -> list[Chart]:
        days = self.about.get("events_by_day") or {}
        counts = Series("events", list(days.values()), range(1, len(days) + 1), mark="bar")
        span = f"day, from {min(days)} to {max(days)}" if days else ""
        return [Chart("Events by day", [counts], span, "events")] if len(days) > 1 else []


def _listed(counts: dict[str, int], most: int) -> str:
    return ", ".join(f"{harmless(word)} {count:,}" for word, count in list(counts.items())[:most])
