"""What is shown of people's counts, and how numbers are written: in the terminal, on pages, in studies.

Pages and printed tables are handed on; the CSV files of a description stay with their owner and hold every number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from diptych.core.errors import UsageError
from diptych.core.table import Cell

Row = Mapping[str, Any]

_FLOOR = 0.01  # where the tail of a distribution ends: its steps are the inverse of the number of sessions
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_COUNTS = ("purchase_sessions", "queries", "sessions", "transitions", "unique", "visitors")
_TELLING = ("high", "low", "purchase_sessions", "queries", "rate", "sessions", "unique", "visitors")
_CLASSES = ("purchase sessions", "purchasers")


@dataclass(frozen=True)
class Discretion:
    """Decides what is left out, for every table and chart that shows people's counts.

    Attributes:
        least: counts of 1 to ``least`` − 1 sessions, visitors or queries are not shown, nor shares, rates, intervals
            and quantiles that give them away; 1 shows all.
        hide_rates: leaves out conversion rates, and the counts by class and intervals that they follow from; shares
            and standardised rates stay, as in thesis section 6.2.
    """

    least: int = 5
    hide_rates: bool = False

    def __post_init__(self) -> None:
        if self.least < 1:
            raise UsageError(
                f"counts below {self.least} cannot be left out", "give 1 (all are shown) or more"
            )

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

        Columns that conversion rates follow from are missing when rates are hidden.
        """
        found = []
        for given in rows:
            row = dict(given)
            if name == "overview":
                if self.hide_rates and row["what"] in _CLASSES:
                    continue
            elif name == "session-length":
                if row["at_least"] < self.least or (self.hide_rates and row["share"] < _FLOOR):
                    continue
            else:
                counts = {one: row[one] for one in _COUNTS if one in row}
                others = row["sessions"] - row["purchase_sessions"] if "purchase_sessions" in row else None
                if self.small(*counts.values(), others):
                    told = {*_QUANTILES, "max", *(one for one in counts if not self.small(counts[one]))}
                    told = {one for one in row if one in told or isinstance(row[one], float)} - {"sessions"}
                    row |= dict.fromkeys(told)
                if name == "session-length-quantiles":
                    few = [one for one in _QUANTILES if self.few_beyond(_QUANTILES[one], row["sessions"])]
                    row |= dict.fromkeys(few)
            hidden = _TELLING if self.hide_rates and name != "overview" else ()
            found.append({one: value for one, value in row.items() if one not in hidden})
        return found

    def lines(self) -> list[str]:
        """Return what a page notes about it."""
        found = []
        if self.least > 1:
            found.append(
                f"Counts of 1 to {self.least - 1} are shown as < {self.least}. Shares, rates and intervals that "
                f"follow from them are left out, and quantiles with fewer than {self.least} sessions beyond. Other numbers may "
                "still give a count away, by subtraction. The CSV files of the description hold all numbers."
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
