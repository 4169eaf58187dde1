"""Drawing from distributions by numbers that are drawn for a thing alone, many things at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, timedelta
from enum import IntEnum, auto
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from diptych.commerce.logs.schema import SECOND
from diptych.core.draws import draw_uniform
from diptych.core.errors import UsageError

SESSION_KEYS = 4096
"""Sessions that a visitor may have at most: a session's key is visitor × this + its number."""


class Draw(IntEnum):
    """What a number is drawn for; two of one thing never share one."""

    KIND = auto()
    SESSIONS = auto()
    DEVICES = auto()
    PROPENSITY = auto()
    COUNTRY = auto()
    COOKIE = auto()
    DAY = auto()
    HOUR = auto()
    MOMENT = auto()
    FOLD = auto()
    CHANNEL = auto()
    DEVICE = auto()
    LOGIN = auto()
    LOGIN_PAGE = auto()
    INTENT = auto()
    COUNT = auto()
    PAGES_AFTER = auto()
    PAGE = auto()
    DWELL = auto()
    EXACT_GAP = auto()
    ITEM = auto()
    ADD = auto()
    REMOVE = auto()
    QUERY = auto()
    QUERY_TEXT = auto()
    QUERY_STYLE = auto()
    DIRT = auto()
    BOT = auto()
    ORDER = auto()


def visitor_draw(seed: int, what: Draw, visitors: np.ndarray) -> np.ndarray:
    """(n,) float64 in [0, 1), of visitors by number."""
    return draw_uniform(seed, int(what), visitors)


def session_draw(seed: int, what: Draw, keys: np.ndarray, positions: np.ndarray | int = 0) -> np.ndarray:
    """(n,) float64 in [0, 1), of sessions by key, or of their pages by position."""
    return draw_uniform(seed, int(what), keys, positions)


def cumulated(rows: np.ndarray) -> np.ndarray:
    """Distributions in rows, as :func:`choose` takes them: (r, c) → (r · c,) rising through all rows."""
    rows = np.atleast_2d(rows)
    sums = np.cumsum(rows, axis=1)
    sums /= sums[:, -1:]
    flat: np.ndarray = (sums + np.arange(len(rows))[:, None]).ravel()
    return flat


def choose(flat: np.ndarray, columns: int, uniform: np.ndarray, rows: np.ndarray | int = 0) -> np.ndarray:
    """(n,) int64: for each of n draws a column, by the distribution in its row.

    Args:
        uniform: (n,) draws in [0, 1).
        rows: (n,) which distribution, or one for all.
    """
    places = np.searchsorted(flat, uniform + rows, side="right") - rows * columns
    return np.minimum(places, columns - 1)  # a draw next to 1 may be rounded into the next row


def geometric(uniform: np.ndarray, mean: float | np.ndarray) -> np.ndarray:
    """(n,) int64 of 0, 1, …: geometric with this mean, (1 - q) q^n with q = mean / (1 + mean)."""
    mean = np.maximum(mean, 1e-12)
    numbers: np.ndarray = np.floor(np.log1p(-uniform) / np.log(mean / (1 + mean))).astype(np.int64)
    return numbers


FIRST_DAY = date(2019, 10, 1)
"""As in thesis section 6.3: October 2019, on whose 27th clocks are set back in Europe."""

HOUR = 3600 * SECOND
DAY = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_AFTER = 5
"""Days after the last one that a long session may run into."""


class Calendar:
    """Conversions between local and universal time in microseconds, vectorised."""

    def __init__(self, zone: str, days: int) -> None:
        try:
            self._zone = ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise UsageError(f"there is no time zone {zone!r}", "e.g. Europe/Amsterdam, or UTC") from None
        self.days = days
        self.first_day = (FIRST_DAY - date(1970, 1, 1)).days
        self._changes, self._offsets = self._offsets_of_the_time()

    def _offsets_of_the_time(self) -> tuple[np.ndarray, np.ndarray]:
        """When the offset from universal time changes, and the offsets from then on: looked for every half hour."""
        moment = _EPOCH + timedelta(days=self.first_day - 2)
        end = moment + timedelta(days=self.days + _AFTER + 2)
        changes: list[int] = []
        offsets: list[int] = []
        while moment < end:
            offset = moment.astimezone(self._zone).utcoffset() or timedelta(0)
            offset_us = offset // timedelta(microseconds=1)
            if not offsets or offsets[-1] != offset_us:
                changes.append((moment - _EPOCH) // timedelta(microseconds=1))
                offsets.append(offset_us)
            moment += timedelta(minutes=30)
        return np.array(changes, np.int64), np.array(offsets, np.int64)

    def offset_us(self, t_us: np.ndarray) -> np.ndarray:
        """Return what local clocks are ahead at these universal times."""
        if len(self._offsets) == 1:
            return np.full(len(t_us), self._offsets[0])
        place = np.searchsorted(self._changes, t_us, side="right") - 1
        offsets: np.ndarray = self._offsets[np.maximum(place, 0)]
        return offsets

    def local_us(self, t_us: np.ndarray) -> np.ndarray:
        """Return the local time, as microseconds since 1970-01-01 in local time."""
        local_us: np.ndarray = t_us + self.offset_us(t_us)
        return local_us

    def universal_us(self, local_us: np.ndarray, later: np.ndarray) -> np.ndarray:
        """Return the universal time of a local one.

        Args:
            local_us: microseconds since 1970-01-01 in local time.
            later: (n,) bool, which one is meant where clocks show the same time twice. A time that clocks skip is
                read by the offset of before or of after: they will show another one.
        """
        by_later = np.full(len(local_us), self._offsets[0])
        by_earlier = by_later.copy()
        for change, old, new in zip(self._changes[1:], self._offsets[:-1], self._offsets[1:], strict=True):
            by_later[local_us - new >= change] = new
            by_earlier[local_us - old >= change] = new
        t_us: np.ndarray = local_us - np.where(later, by_later, by_earlier)
        return t_us

    def week_day(self, local_us: np.ndarray) -> np.ndarray:
        """0 is Monday."""
        return (local_us // DAY + 3) % 7  # 1970-01-01 was a Thursday

    def hour(self, local_us: np.ndarray) -> np.ndarray:
        """0 to 23."""
        return local_us // HOUR % 24


DATASET = "shop-log"
"""What ``dataset.json`` calls it."""

VERSION = 2
"""Raised whenever the same seed would give another log or truth; part of the cache's key."""

MARKER = "dataset.json"
"""What was asked for: ``dataset``, ``version``, ``fingerprint``, ``format``, ``zone``, ``days``, ``seed`` …"""

TRUTH = "truth.json"

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
    """Return where the events are, as a pattern inside the folder: of ``csv`` or ``parquet``."""
    return "events.csv.gz" if file_format == "csv" else "events/part-*.parquet"


Table = TypeVar("Table", bound="Rows")


@dataclass(frozen=True)
class Rows:
    """A table whose every field is an array of as many rows."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def take(self: Table, rows: np.ndarray) -> Table:
        """Return some of the rows, by number or by mask."""
        return replace(self, **{field.name: getattr(self, field.name)[rows] for field in fields(self)})

    def but(self: Table, **columns: Any) -> Table:
        """Return the same rows with other values in some columns: an array, or one value for all."""
        return replace(
            self, **{name: np.broadcast_to(values, len(self)).copy() for name, values in columns.items()}
        )

    @classmethod
    def joined(cls: type[Table], *parts: Table) -> Table:
        """Return all rows of all parts."""
        return cls(**{f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls)})
