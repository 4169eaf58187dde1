"""The canonical event table: one row per thing a visitor did, the same whatever shop and format it came from.

Times are whole microseconds since 1970-01-01 UTC and are computed with as integers, so that no engine's idea of
a timestamp matters. What the clock on the visitor's wall said is stored beside: hour, week day and day of a
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
"""A device, channel or page type that nobody stated."""

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
"""What an event can be."""

LENGTH_ACTIONS = ("page", "query", "add", "remove")
"""What counts towards a session's length (thesis section 6.2)."""


@dataclass(frozen=True)
class Column:
    """One column of the table."""

    name: str  # of the column
    type: str  # as Arrow calls it
    nullable: bool  # whether a value may be missing
    meaning: str  # one line, for documentation and errors


def columns(text: str) -> tuple[Column, ...]:
    """Return columns from lines of name, type and meaning; ``?`` behind a type: a value may be missing."""
    lines = (line.split(maxsplit=2) for line in text.strip().splitlines())
    return tuple(Column(name, kind.rstrip("?"), kind.endswith("?"), meaning) for name, kind, meaning in lines)


COLUMNS = columns(
    """
    event_id      int64   number of the event in the order it arrived in; breaks ties of time
    client_id     string  the browser: a cookie; who has logged in or not is the same client
    visitor_id    string? the customer, where known at this event: logged in or recognised
    given_session string? the log's own session, where it brings one
    t_us          int64   microseconds since 1970-01-01 UTC
    local_day     int32   days since 1970-01-01 in the stated zone
    local_hour    int8    0 to 23 in the stated zone
    local_dow     int8    week day in the stated zone, 0 is Monday
    device        string  device type in lower case, or unknown
    channel       string  how the visitor came, in lower case, or unknown
    country       string? two letters in upper case, where the log has it
    action        string  one of page, query, add, remove, purchase, other
    page_type     string? of pages: home, search, product, basket, … in the shop's own words
    query         string? what was typed
    item_id       string? the product the event is about
    price         double? of the item, in the log's currency
    is_purchase   bool    whether the event means that something was bought
    """
)
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
