"""The canonical event table: one row per thing a visitor did, the same whatever shop and format it came from.

Times are whole microseconds since 1970-01-01 UTC and are computed with as integers, so that no engine's idea of
a timestamp matters. What the clock on the visitor's wall said is stored beside: hour, week day and day of a
stated zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
    """One column of the table.

    Attributes:
        name: of the column.
        type: as Arrow calls it.
        nullable: whether a value may be missing.
        meaning: one line, for documentation and errors.
    """

    name: str
    type: str
    nullable: bool
    meaning: str


COLUMNS = (
    Column("event_id", "int64", False, "number of the event in the order it arrived in; breaks ties of time"),
    Column(
        "client_id", "string", False, "the browser: a cookie; who has logged in or not is the same client"
    ),
    Column("visitor_id", "string", True, "the customer, where known at this event: logged in or recognised"),
    Column("given_session", "string", True, "the log's own session, where it brings one"),
    Column("t_us", "int64", False, "microseconds since 1970-01-01 UTC"),
    Column("local_day", "int32", False, "days since 1970-01-01 in the stated zone"),
    Column("local_hour", "int8", False, "0 to 23 in the stated zone"),
    Column("local_dow", "int8", False, "week day in the stated zone, 0 is Monday"),
    Column("device", "string", False, "device type in lower case, or unknown"),
    Column("channel", "string", False, "how the visitor came, in lower case, or unknown"),
    Column("country", "string", True, "two letters in upper case, where the log has it"),
    Column("action", "string", False, "one of " + ", ".join(ACTIONS)),
    Column("page_type", "string", True, "of pages: home, search, product, basket, … in the shop's own words"),
    Column("query", "string", True, "what was typed"),
    Column("item_id", "string", True, "the product the event is about"),
    Column("price", "double", True, "of the item, in the log's currency"),
    Column("is_purchase", "bool", False, "whether the event means that something was bought"),
)
"""In order. Files of events have these columns and no other."""


def column_types() -> dict[str, str]:
    """Name → Arrow type."""
    return {column.name: column.type for column in COLUMNS}
