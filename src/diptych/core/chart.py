"""Chart: lines, bars and points that a result shows, as data; :mod:`diptych.report.figures` draws it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import ClassVar, Literal

from diptych.core.table import Cell, Table

Mark = Literal["line", "step", "bar", "point", "dash", "level"]

_MOST_ROWS = 60  # of the table behind a chart
_MOST_DECIMALS = 6


@dataclass(frozen=True)
class Series:
    """One line, one set of bars or of points.

    Attributes:
        name: of the legend; empty: not in it.
        y: values; None leaves a gap.
        x: their positions, rising; without them they belong to the chart's categories.
        low: lower ends of intervals, as many as ``y``.
        high: upper ends.
        mark: ``step`` holds each value up to the next position, ``dash`` is a short line across a category, ``level``
            a dotted line through the whole chart at ``y[0]``, or at ``x[0]`` where there is an ``x``.
        colour: a name of the palette; empty: the next one.
        texts: written at the marks.
        pale: in the background.
        quiet: whether the intervals of a line are in the data table only.
    """

    name: str
    y: Sequence[float | None]
    x: Sequence[float] = ()
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    mark: Mark = "line"
    colour: str = ""
    texts: Sequence[str] = ()
    pale: bool = False
    quiet: bool = False


@dataclass(frozen=True)
class Chart:
    """One pair of axes.

    Attributes:
        title: what is shown.
        series: drawn in this order.
        x: what the horizontal axis counts, with its unit.
        y: what the vertical axis counts.
        categories: names of the places along the axis, where series have no ``x``.
        log: axes that are logarithmic: ``"x"``, ``"y"`` or ``"xy"``.
        across: categories go down, and bars to the right.
        stacked: bars of a category stand on each other.
        diagonal: a dotted line where both axes have the same value.
        after: a line below: how it is to be read.
    """

    title: str
    series: Sequence[Series]
    x: str = ""
    y: str = ""
    categories: Sequence[str] = ()
    log: str = ""
    across: bool = False
    stacked: bool = False
    diagonal: bool = False
    after: str = ""
    kind: ClassVar[str] = "chart"

    def table(self) -> Table:
        """Return the values behind the chart, a row per position; long ones are thinned, and say so."""
        shown = [one for one in self.series if one.mark != "level"]
        places: Sequence[str | float] = self.categories or sorted({x for one in shown for x in one.x})
        each = [dict(zip(one.x or self.categories, _cells(one, self.log), strict=False)) for one in shown]
        step = math.ceil(len(places) / _MOST_ROWS) or 1
        rows = []
        for place in places[::step]:
            head = place if isinstance(place, str) else f"{place:,.6g}"
            rows.append([Cell(head, value=None if isinstance(place, str) else place)])
            rows[-1] += [found.get(place, Cell("–")) for found in each]
        after = f"every {step}th of {len(places):,} positions" if step > 1 else ""
        levels = [
            f"{one.name} {short_number(one.y[0])}" for one in self.series if one.mark == "level" and one.y[0]
        ]
        return Table(
            self.title,
            [self.x if not self.across else self.y, *(one.name or self.y for one in shown)],
            rows,
            after="; ".join([*levels, *([after] if after else [])]),
            folded=True,
        )


def _cells(one: Series, log: str) -> Iterator[Cell]:
    """Yield a cell for each value; all with the same decimals, unless an axis is logarithmic."""
    known = [y for y in (*one.y, *one.low, *one.high) if y is not None and math.isfinite(y)]
    most = max(0, 3 - math.floor(math.log10(max(map(abs, known), default=0) or 1)))
    decimals = next(n for n in range(most + 1) if all(round(y, n) == round(y, most) for y in known))
    show = short_number if log or most > _MOST_DECIMALS else f"{{:,.{decimals}f}}".format
    for y, low, high in zip_longest(one.y, one.low, one.high):
        note = "" if low is None or high is None else f"{show(low)} to {show(high)}"
        yield Cell("–") if y is None or math.isnan(y) else Cell(show(y), note, value=y)


def short_number(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
