"""Disclosure control, and how numbers are written: in the terminal, on pages, in studies.

Rows of counts are read through :class:`Discretion`, which leaves out what may not be shown; tables, charts, pages and
studies are made of these rows alone. The CSV files of a description stay with their owner and hold every number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from diptych.core.options import Options, parameter
from diptych.core.table import Cell

Row = Mapping[str, Any]

_FLOOR = 0.01  # where the tail of a distribution ends: its steps are the inverse of the number of sessions
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_COUNTS = ("at_least", "purchase_sessions", "queries", "sessions", "transitions", "unique", "visitors")
_TELLING = (
    "at_least",
    "high",
    "low",
    "purchase_sessions",
    "queries",
    "rate",
    "sessions",
    "unique",
    "visitors",
)
_PARTS = {
    "channels": ("", "purchase_sessions"),
    "devices": ("", "purchase_sessions"),
    "devices-per-visitor": ("purchaser", "visitors"),
    "device-transitions": ("from_device", "transitions"),
    "hours": ("purchase", "sessions"),
    "queries": ("purchase", "sessions"),
    "session-length-quantiles": ("purchase", "sessions"),
    "unique-queries": ("purchase", "queries"),
    "week-days": ("purchase", "sessions"),
}  # statistics whose rows add up: by which column, and which count
_LARGEST_FIRST = {"channels": "channel", "devices": "device", "session-length": "device"}


class Discretion(Options):
    """Decides what is left out of people's counts, for every table, chart, page and study.

    Of counts below ``least`` shares, rates, intervals and quantiles that give them away are left out, too. With
    ``hide_rates`` so are the counts by class and intervals that conversion rates follow from (thesis section 6.2).
    """

    least: int = parameter(
        5, "Smaller counts, and what follows from them, are not shown.", "--least-count", ge=1
    )
    hide_rates: bool = parameter(False, "Show standardised rates and shares alone, as in the thesis.")

    @classmethod
    def current(cls) -> Discretion:
        """Return what is in force here, see :func:`showing`."""
        return _CURRENT.get()

    def small(self, *counts: int | None) -> bool:
        """Return whether one of the counts is too small to be shown."""
        return any(count is not None and 0 < count < self.least for count in counts)

    def count(self, count: int | None) -> Cell:
        """Return a count as tables show it."""
        return Cell(f"< {self.least}") if self.small(count) else Cell(number(count), value=count)

    def share(self, part: int, of: int) -> float | None:
        """Return a part of a whole; None where either side of it is too small, or there is nothing."""
        return part / of if of and not self.small(part, of - part) else None

    def rows(self, name: str, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """Return the rows of a statistic as they may be shown, groups of most sessions first.

        A small count is the text ``< 5``; None is what would give one away. Where one part of a whole is hidden, so
        is the smallest of the others, that it cannot be had by subtraction. Columns and rows that conversion rates
        follow from are missing when rates are hidden.
        """
        if key := _LARGEST_FIRST.get(name):
            sizes = Counter[str]()
            for row in rows:
                sizes[row[key]] += row["sessions"]
            rows = sorted(rows, key=lambda row: (-sizes[row[key]], row[key] != "all", row[key]))
        if name == "session-length":
            rows = [row for row in rows if row["at_least"] >= self.least]
            rows = [row for row in rows if not self.hide_rates or row["share"] >= _FLOOR]
        hidden = self._hidden(*_PARTS[name], rows) if name in _PARTS else set()
        found = [self._shown(row, place in hidden) for place, row in enumerate(rows)]
        if self.hide_rates:
            found = [{one: row[one] for one in row if one not in _TELLING} for row in found]
            found = [row for row in found if row.get("what") not in ("purchase sessions", "purchasers")]
        return found

    def _shown(self, given: Row, is_hidden: bool) -> dict[str, Any]:
        row = dict(given)
        if is_hidden:
            counts = [one for one in _COUNTS if one != "sessions" or "purchase_sessions" not in row]
            telling = (*counts, *_QUANTILES, "max")
            row |= {one: None for one in row if one in telling or isinstance(row[one], float)}
        for name, level in _QUANTILES.items():
            if name in row and (1 - level) * given["sessions"] < self.least - 1e-9:
                row[name] = None
        counted = ("total",) if given.get("what", "device types") != "device types" else _COUNTS
        return row | {one: f"< {self.least}" for one in counted if self.small(given.get(one))}

    def _hidden(self, key: str, count: str, rows: Sequence[Row]) -> set[int]:
        """Return the places of rows with a small count, and of those that would give one away."""
        hidden = set()
        parts: dict[Any, list[int]] = {}
        for place, row in enumerate(rows):
            counts = [row[one] for one in _COUNTS if one in row]
            others = row["sessions"] - row["purchase_sessions"] if "purchase_sessions" in row else None
            hidden |= {place} if self.small(*counts, others) else set()
            if row[count] and row.get("device") != "all" and row.get("devices") != "> 1":
                parts.setdefault(row.get(key), []).append(place)
        for places in parts.values():
            shown = sorted(set(places) - hidden, key=lambda place: rows[place][count])
            if len(places) - len(shown) == 1:
                hidden |= set(shown[:1])
        return hidden

    def notes(self, notes: Iterable[str]) -> list[str]:
        """Return those notes that tell of no small count."""
        found = {one: [int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", one)] for one in notes}
        return [note for note, counts in found.items() if not self.small(*counts)]

    def lines(self) -> list[str]:
        """Return what a page notes about it."""
        found = []
        if self.least > 1:
            found.append(
                f"Counts of 1 to {self.least - 1} are shown as < {self.least}. Shares, rates and intervals that follow "
                f"from them are left out, and quantiles with fewer than {self.least} sessions beyond. By subtraction "
                "other numbers may still give a count away. The CSV files of the description hold all numbers."
            )
        if self.hide_rates:
            found.append(
                "Conversion rates, the counts by class that they follow from, and intervals of shares are left "
                "out. Shares of both classes together with standardised rates still allow a guess at the rates."
            )
        return found


_CURRENT: ContextVar[Discretion] = ContextVar("discretion", default=Discretion())  # noqa: B039


@contextmanager
def showing(discretion: Discretion) -> Iterator[None]:
    """Let ``discretion`` decide what every table and chart inside the block shows."""
    token = _CURRENT.set(discretion)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def number(value: float | None, decimals: int = 0) -> str:
    """Return a number as tables show it: a dash for none, ``< 0.001`` for what rounds to nothing but is something."""
    if value is None:
        return "–"
    if 0 < value < 0.5 * 10**-decimals and decimals:
        return f"< {10**-decimals:.{decimals}f}"
    return f"{round(value, decimals) + 0.0:,.{decimals}f}".replace("-", "−")


def signed(value: float | None, decimals: int = 2) -> str:
    """Return a number with its sign; what rounds to nothing has +."""
    return "–" if value is None else f"{round(value, decimals) + 0.0:+,.{decimals}f}".replace("-", "−")


def percent(share: float | None, decimals: int = 1) -> str:
    """Return a share in per cent, without the sign."""
    return number(None if share is None else 100 * share, decimals)


def interval(low: float | None, high: float | None, decimals: int, scale: float = 1.0) -> str:
    """Return the ends of an interval; nothing for none."""
    if low is None or high is None:
        return ""
    ends = (f"{round(scale * end, decimals) + 0.0:,.{decimals}f}".replace("-", "−") for end in (low, high))
    return " to ".join(ends)


@dataclass(frozen=True)
class Column:
    """A column of numbers of a table: its head, the key of the rows' values, and how they are written."""

    title: str
    key: str
    decimals: int = 0
    scale: float = 1.0  # 100 for per cent
    ends: str | None = None  # what begins the keys of its interval's ends; None for no interval
    sign: bool = False  # whether it always has a sign

    def cell(self, row: Row) -> Cell:
        """Return the cell of a row; a dash where it has no value."""
        value = row.get(self.key)
        if value is None or isinstance(value, str):
            return Cell(value or "–")
        if self.sign:
            return Cell(signed(value, self.decimals), value=value)
        low, high = row.get(f"{self.ends}low"), row.get(f"{self.ends}high")
        note = "" if self.ends is None else interval(low, high, self.decimals, self.scale)
        return Cell(number(self.scale * value, self.decimals), note, value=self.scale * value)


def interval_ends(rows: Sequence[Row], prefix: str = "") -> dict[str, Any]:
    """Return the ends of a series' intervals, where all are known; ``prefix`` begins their columns."""
    low, high = ([row.get(f"{prefix}{end}") for row in rows] for end in ("low", "high"))
    return {} if None in (*low, *high) else {"low": low, "high": high}
