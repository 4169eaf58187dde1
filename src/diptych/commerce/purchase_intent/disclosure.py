"""Disclosure control: which counts of people, and which numbers that follow from them, may be shown.

A :class:`~diptych.commerce.purchase_intent.statistics.Description` gives its rows through the control in force and no
other way, so that every table, chart, page, CSV file and study has passed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from diptych.commerce.purchase_intent.shown import TEXTS, Row, number
from diptych.core.options import Options, parameter
from diptych.core.table import Cell

_FLOOR = 0.01  # where the tail of a distribution ends: its steps are the inverse of the number of sessions
_QUANTILES = {"p50": 0.5, "p90": 0.9, "middle": 0.9, "p99": 0.99}
_COUNTS = ("at_least", "purchase_sessions", "queries", "sessions", "transitions", "unique", "visitors")
_OF_RATES = {*_COUNTS, "high", "low", "rate"} - {"transitions"}  # what conversion rates follow from


class DisclosureControl(Options):
    """Minimum cell count, suppression of smaller cells and of complements, and suppression of conversion rates."""

    least: int = parameter(
        5, "Smaller counts, and what follows from them, are not shown.", "--least-count", ge=1
    )
    hide_rates: bool = parameter(False, "Show standardised rates and shares only, as in the thesis.")

    @classmethod
    def current(cls) -> DisclosureControl:
        return _CURRENT.get()

    def small(self, *counts: int | None) -> bool:
        """Return whether one of the counts is below the minimum."""
        return any(count is not None and 0 < count < self.least for count in counts)

    def count(self, count: int | None) -> Cell:
        return Cell(f"< {self.least}") if self.small(count) else Cell(number(count), value=count)

    def share(self, part: int, of: int) -> float | None:
        """Return a part of a whole; None where either side of it is small, or the whole is nothing."""
        return part / of if of and not self.small(part, of - part) else None

    def rows(self, rows: Sequence[Row], count: str = "", whole: str = "") -> list[dict[str, Any]]:
        """Return the rows of a statistic as they may be shown.

        A small count is the text ``< 5``; numbers that follow from it are None. Where the column ``count`` adds up
        over rows with equal ``whole`` and one of them is suppressed, so is the smallest of the others. With hidden
        rates, columns and rows that these follow from are missing.
        """
        rows = [row for row in rows if row.get("at_least", self.least) >= self.least]
        if self.hide_rates:
            rows = [row for row in rows if "at_least" not in row or row["share"] >= _FLOOR]
            rows = [row for row in rows if row.get("what") not in ("purchase sessions", "purchasers")]
        suppressed, parts = set[int](), dict[Any, list[int]]()
        for place, row in enumerate(rows if count else ()):
            others = row["sessions"] - row["purchase_sessions"] if "purchase_sessions" in row else None
            if self.small(others, *(row.get(name) for name in _COUNTS)):
                suppressed.add(place)
            if row.get(count) and row.get("device") != "all" and row.get("devices") != "> 1":
                parts.setdefault(row.get(whole), []).append(place)
        for places in parts.values():
            rest = sorted(set(places) - suppressed, key=lambda place: rows[place][count])
            if len(places) - len(rest) == 1:
                suppressed |= set(rest[:1])
        shown = [self._suppressed(row, place in suppressed) for place, row in enumerate(rows)]
        hidden = _OF_RATES if self.hide_rates else ()
        return [{name: value for name, value in row.items() if name not in hidden} for row in shown]

    def _suppressed(self, row: Row, is_suppressed: bool) -> dict[str, Any]:
        shown = dict(row)
        if is_suppressed:
            kept = {"sessions"} if "purchase_sessions" in row else set()
            names = {*_COUNTS, *_QUANTILES, "max"} - kept
            shown |= {name: None for name in row if name in names or isinstance(row[name], float)}
        for name, level in _QUANTILES.items():
            if name in row and (1 - level) * row["sessions"] < self.least - 1e-9:
                shown[name] = None
        counts = _COUNTS if "what" not in row else () if row["what"] == "device types" else ("total",)
        return shown | {name: f"< {self.least}" for name in counts if self.small(row.get(name))}

    def lines(self) -> list[str]:
        """Return what a page notes about it."""
        shown = {"small": self.least > 1, "rates": self.hide_rates}
        texts = [TEXTS["parts"][name] for name, is_so in shown.items() if is_so]
        return [text.format(least=self.least, most=self.least - 1) for text in texts]


_CURRENT: ContextVar[DisclosureControl] = ContextVar("disclosure", default=DisclosureControl())  # noqa: B039


@contextmanager
def disclosing(control: DisclosureControl) -> Iterator[None]:
    """Put ``control`` in force for everything that is shown or written inside the block."""
    token = _CURRENT.set(control)
    try:
        yield
    finally:
        _CURRENT.reset(token)
