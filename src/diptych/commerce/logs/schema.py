"""The canonical event table: one row per thing a visitor did, the same whatever shop and format it came from.

Times are whole microseconds since 1970-01-01 UTC and are computed with as integers, so that no engine's idea of
a timestamp matters. The visitor's local time is stored, too: hour, week day and day of a
stated zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

from diptych.core.errors import UnknownNameError
from diptych.core.reading import read_toml

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
