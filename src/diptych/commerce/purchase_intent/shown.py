"""What is shown of people's counts, and how numbers are written: in the terminal, on pages, in studies.

Pages and printed tables are handed on; the CSV files of a description stay with their owner and hold every number.
"""

from __future__ import annotations

import re
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
_COUNTS = ("purchase_sessions", "queries", "sessions", "transitions", "unique", "visitors")
_TELLING = ("high", "low", "purchase_sessions", "queries", "rate", "sessions", "unique", "visitors")
_PARTS: Mapping[str, tuple[str, str, Sequence[str]]] = {
    "channels": ("", "purchase_sessions", ["purchase_sessions"]),
    "devices": ("", "purchase_sessions", ["purchase_sessions"]),
    "devices-per-visitor": ("purchaser", "visitors", []),
    "device-transitions": ("from_device", "transitions", []),
    "hours": ("purchase", "sessions", []),
    "queries": ("purchase", "sessions", ["sessions", "queries"]),
    "session-length-quantiles": ("purchase", "sessions", ["sessions"]),
    "unique-queries": ("purchase", "queries", ["queries", "unique"]),
    "week-days": ("purchase", "sessions", []),
}  # statistics with rows that add up: by which column, to what, and counts that would tell by subtraction
_CLASSES = ("purchase sessions", "purchasers")


class Discretion(Options):
    """Decides what is left out, for every table and chart that shows people's counts.

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

    def few_beyond(self, level: float, sessions: int) -> bool:
        """Return whether too few sessions lie above that quantile for it to be shown."""
        return (1 - level) * sessions < self.least - 1e-9

    def count(self, count: int | None) -> Cell:
        """Return a count as tables show it."""
        return Cell(f"< {self.least}") if self.small(count) else Cell(number(count), value=count)

    def rows(self, name: str, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """Return the rows of a statistic as they may be shown: None for what gives a small count away.

        Where one part of a whole is hidden, so is the smallest of the others, that it cannot be had by subtraction.
        Columns that conversion rates follow from are missing when rates are hidden.
        """
        if name == "overview":
            return [dict(row) for row in rows if not (self.hide_rates and row["what"] in _CLASSES)]
        if name == "session-length":
            rows = [row for row in rows if row["at_least"] >= self.least]
            return [dict(row) for row in rows if not self.hide_rates or row["share"] >= _FLOOR]
        hidden = self._hidden(name, rows)
        found = []
        for place, given in enumerate(rows):
            row = dict(given)
            if place in hidden:
                counts = [one for one in _PARTS.get(name, ("", "", ()))[2] if not self.small(row[one])]
                shares = [one for one in row if isinstance(row[one], float) or one in (*_QUANTILES, "max")]
                row |= dict.fromkeys([*counts, *shares])
            if name == "session-length-quantiles":
                row |= dict.fromkeys(
                    one for one in _QUANTILES if self.few_beyond(_QUANTILES[one], given["sessions"])
                )
            found.append({one: row[one] for one in row if not (self.hide_rates and one in _TELLING)})
        return found

    def _hidden(self, name: str, rows: Sequence[Row]) -> set[int]:
        """Return the places of rows with a small count, and of those that would give one away."""
        hidden = set()
        for place, row in enumerate(rows):
            counts = [row[one] for one in _COUNTS if one in row]
            others = row["sessions"] - row["purchase_sessions"] if "purchase_sessions" in row else None
            hidden |= {place} if self.small(*counts, others) else set()
        if name in _PARTS:
            key, count, _ = _PARTS[name]
            parts: dict[Any, list[int]] = {}
            for place, row in enumerate(rows):
                if row[count] and row.get("device") != "all" and row.get("devices") != "> 1":
                    parts.setdefault(row.get(key), []).append(place)
            for places in parts.values():
                shown = sorted(set(places) - hidden, key=lambda place: rows[place][count])
                if len(places) - len(shown) == 1:
                    hidden |= set(shown[:1])
        return hidden

    def notes(self, notes: Iterable[str]) -> list[str]:
        """Return those notes that tell of no small count."""
        counts = {
            note: [int(one.replace(",", "")) for one in re.findall(r"\d[\d,]*", note)] for note in notes
        }
        return [note for note, found in counts.items() if not self.small(*found)]

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


def measured(row: Row, name: str, decimals: int, scale: float = 1.0, ends: str = "") -> Cell:
    """Return the cell of a number with its interval, which is in ``low`` and ``high``, or those with a prefix."""
    value = row.get(name)
    if value is None:
        return Cell("–")
    note = interval(row.get(f"{ends}low"), row.get(f"{ends}high"), decimals, scale)
    return Cell(number(scale * value, decimals), note, value=scale * value)


@dataclass(frozen=True)
class Column:
    """A column of numbers of a table.

    Attributes:
        title: its head.
        key: of the rows' values.
        decimals: None: a count of people's sessions, which may be hidden.
        scale: 100 for per cent.
        ends: what begins the keys of its interval's ends; None for no interval.
        sign: whether it always has a sign.
    """

    title: str
    key: str
    decimals: int | None = None
    scale: float = 1.0
    ends: str | None = None
    sign: bool = False

    def cell(self, row: Row) -> Cell:
        """Return the cell of a row; a dash where it has no value."""
        value = row.get(self.key)
        if self.decimals is None:
            return Discretion.current().count(value)
        if self.sign:
            return Cell(signed(value, self.decimals), value=value)
        shown = {self.key: value} if self.ends is None else row
        return measured(shown, self.key, self.decimals, self.scale, self.ends or "")


def interval_ends(rows: Sequence[Row], prefix: str = "") -> dict[str, Any]:
    """Return the ends of a series' intervals, where all are known; ``prefix`` begins their columns."""
    low, high = ([row.get(f"{prefix}{end}") for row in rows] for end in ("low", "high"))
    return {} if None in (*low, *high) else {"low": low, "high": high}
