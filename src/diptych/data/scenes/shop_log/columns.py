"""The files of a generated shop log, as a shop would have written them: what whoever imports one has to know."""

from __future__ import annotations

from collections.abc import Mapping

DATASET = "shop-log"
"""What ``dataset.json`` calls it."""

VERSION = 1
"""Raised whenever the same seed would give another log; part of the cache's key."""

MARKER = "dataset.json"
"""What was asked for: ``dataset``, ``version``, ``fingerprint``, ``format``, ``zone``, ``days``, ``seed`` …"""

TRUTH = "truth.json"
ORACLE = "oracle.parquet"

RAW_COLUMNS: Mapping[str, str] = {
    "time": "ISO 8601 with microseconds and Z (phones and tablets) or the zone's offset (other devices)",
    "cookie": "the browser on one device of one visitor, 16 hexadecimal digits; empty for lost events",
    "customer": "the visitor's number, where known at this event: recognised on arrival or logged in by then",
    "device": "one of DEVICES in the shop's spelling; bots have none or another",
    "channel": "how the session began: Direct, Paid, Organic or Other",
    "country": "two letters; all customers come from COUNTRIES",
    "action": "one of ACTIONS",
    "page": "of page events: home, category, search, product, basket, checkout, account, service or confirmation",
    "query": "of query events: what was typed, with the visitor's own capitals and blanks",
    "item": "of product pages, of add and remove, and of confirmations: the product",
    "price": "of the item, in euros",
    "purchased": "true for the page that confirms a purchase, false for all other events",
}
"""Name → meaning, in order; the same in CSV (with a header; empty means missing) and Parquet. All are texts,
but for ``price`` (float) and ``purchased`` (true or false)."""

ACTIONS: Mapping[str, str] = {
    "page": "page",
    "query": "query",
    "add": "add",
    "remove": "remove",
    "login": "other",
}
"""The log's action → the canonical one. A confirmed purchase is a page whose ``purchased`` is true."""

DEVICES: Mapping[str, str] = {
    "Smartphone": "smartphone",
    "PC": "pc",
    "Tablet": "tablet",
    "Game Console": "game console",
    "TV": "tv",
}
"""The log's spelling → the canonical one: lower case."""

COUNTRIES = ("NL", "BE", "DE")
"""Where customers come from. Events of other countries are bots'."""

MOST_EVENTS = 5_000
"""No visitor's cookie has as many events in 28 days; the one bot of a dirty log has more."""


def event_files(file_format: str) -> str:
    """Where the events are, as a pattern inside the folder: of ``csv`` or ``parquet``."""
    return "events.csv.gz" if file_format == "csv" else "events/part-*.parquet"
