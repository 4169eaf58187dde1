"""Tables with a line per device and both classes side by side: lengths, queries, different queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from diptych.report.intent_description_tables import MOST_ROWS, further_text, shown_name
from diptych.report.intent_discretion import Discretion, interval, number, percent
from diptych.report.intent_length_figures import ALL
from diptych.report.intent_page import Cell, Table

Row = Mapping[str, Any]

_NONE = Cell("–")


def length_table(quantiles: Sequence[Row], discretion: Discretion) -> Table:
    """Of ``session-length-quantiles``: thesis Figure 6.2 in numbers."""

    def cells(row: Row) -> tuple[Cell, ...]:
        counts = () if discretion.hide_rates else (Cell(discretion.count(row["sessions"])),)
        if discretion.small(row["sessions"]):
            return (*counts, *(_NONE,) * 4)
        quantiles = (
            _NONE if discretion.few_beyond(level, row["sessions"]) else Cell(number(row[name]))
            for name, level in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))
        )
        return (*counts, Cell(number(row["mean"], 1)), *quantiles)

    counts = () if discretion.hide_rates else ("Sessions",)
    columns = (*counts, "Mean", "P50", "P90", "P99")
    return _class_table("Session length in actions", quantiles, columns, cells, discretion)


def query_table(rows: Sequence[Row], discretion: Discretion) -> Table:
    """Of ``queries``: thesis Table 6.5."""
    hidden = discretion.hide_rates
    columns = (
        ("Per session", "% of queries") if hidden else ("Sessions", "Queries", "Per session", "% of queries")
    )

    def cells(row: Row) -> tuple[Cell, ...]:
        small = discretion.small(row["sessions"])
        ends = "" if hidden else interval(row["low"], row["high"], 2, 1.0)
        values = (
            _NONE if small else Cell(number(row["per_session"], 2), ends),
            _NONE if small else Cell(percent(row["share"])),
        )
        if hidden:
            return values
        return (
            Cell(discretion.count(row["sessions"])),
            _NONE if small else Cell(number(row["queries"])),
            *values,
        )

    return _class_table("Queries per session", rows, columns, cells, discretion)


def unique_table(rows: Sequence[Row], discretion: Discretion) -> Table:
    """Of ``unique-queries``: thesis Table 6.6."""
    hidden = discretion.hide_rates
    columns = ("% of different", "% different") if hidden else ("Different", "% of different", "% different")

    def cells(row: Row) -> tuple[Cell, ...]:
        if discretion.small(row["queries"]):
            return (_NONE,) * len(columns)
        counts = () if hidden else (Cell(number(row["unique"])),)
        return (
            *counts,
            Cell(percent(row["share"])),
            Cell(percent(row["unique_share"]) if row["queries"] else "–"),
        )

    return _class_table("Different queries", rows, columns, cells, discretion)


def _class_table(
    caption: str,
    rows: Sequence[Row],
    columns: Sequence[str],
    cells: Callable[[Row], tuple[Cell, ...]],
    discretion: Discretion,
) -> Table:
    """A line per device, all of them together first; the first column counts, unless counts are left out."""
    found = {(row["device"], row["purchase"]): row for row in rows}
    devices = sorted({row["device"] for row in rows}, key=lambda one: (one != ALL, one))
    shown = devices[: MOST_ROWS + 1]
    nobody = (_NONE if discretion.hide_rates else Cell("0"), *(_NONE,) * (len(columns) - 1))
    lines = []
    for device in shown:
        buy, other = (
            cells(found[device, purchase]) if (device, purchase) in found else nobody
            for purchase in (True, False)
        )
        lines.append((_device(device), *buy, *other))
    return Table(
        caption,
        ("Device", *columns, *columns),
        lines,
        groups=(("", 1), ("purchase", len(columns)), ("no purchase", len(columns))),
        after=further_text(len(devices) - len(shown), "devices"),
    )


def _device(name: str) -> Cell:
    return Cell("all devices" if name == ALL else shown_name(name))
