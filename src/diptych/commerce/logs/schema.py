"""The canonical event table: one row per thing a visitor did, the same whatever shop and format it came from.

Times are whole microseconds since 1970-01-01 UTC and are computed with as integers, so that no engine's idea of
a timestamp matters. What the clock on the visitor's wall said is stored, too: hour, week day and day of a
stated zone.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SECOND = 1_000_000
"""Microseconds."""

UNKNOWN = "unknown"
"""Stands for a device, channel or page type that the log does not have."""

OTHER_CHANNEL = "other"

THESIS_DEVICES = ("smartphone", "pc", "tablet", "game console", "tv")
"""Device types of thesis section 6.3, as they are spelled here: lower case."""

THESIS_CHANNELS = ("direct", "paid", "organic", OTHER_CHANNEL)
"""Channels of thesis Table 6.2."""

ACTIONS: Mapping[str, str] = {
    "page": "a page was opened",
    "query": "a search query was submitted; the page of its results, where it is logged too, is an event of its own",
    "add": "an item was put into the basket",
    "remove": "an item was taken out of the basket",
    "purchase": "an item was bought; the page that confirms it, where it is logged too, is an event of its own",
    "other": "anything else, e.g. a log-in; it keeps a session alive and counts as no action",
}
"""Kinds of events."""

LENGTH_ACTIONS = ("page", "query", "add", "remove")
"""Actions that count towards a session's length (thesis section 6.2)."""


@dataclass(frozen=True)
class Column:
    """One column of the table."""

    name: str  # of the column
    type: str  # as Arrow calls it
    nullable: bool  # whether a value may be missing
    meaning: str  # one line, for documentation and errors


def read_columns(file: Path) -> dict[str, tuple[Column, ...]]:
    """Return the columns of each table that a TOML file declares; ``?`` behind a type: a value may be missing."""
    tables = {}
    for table, declared in tomllib.loads(file.read_text()).items():
        split = ((name, *text.split(maxsplit=1)) for name, text in declared.items())
        tables[table] = tuple(
            Column(name, kind.rstrip("?"), kind.endswith("?"), text) for name, kind, text in split
        )
    return tables


COLUMNS = read_columns(Path(__file__).with_name("events.toml"))["events"]
"""In order. Files of events have these columns and no other."""


_WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text())
MISSING_WORDS: tuple[str, ...] = tuple(_WORDS["missing"])
ACTION_WORDS: Mapping[str, tuple[str, ...]] = _WORDS["action"]
DEVICE_WORDS: Mapping[str, tuple[str, ...]] = _WORDS["device"] | {
    UNKNOWN: (UNKNOWN, "(not set)", *sorted({word.lower() for word in MISSING_WORDS}))
}
YES_WORDS: tuple[str, ...] = tuple(_WORDS["yes"])
BOT_WORDS: tuple[str, ...] = tuple(_WORDS["bots"])


def printable(word: str) -> str:
    """Return a log's word without what a terminal would take for a command."""
    return "".join(letter if letter.isprintable() else "?" for letter in word)
