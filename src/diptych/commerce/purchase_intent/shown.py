"""Write numbers of purchase intent as tables, pages and studies show them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diptych.core.table import Cell, Table

Row = Mapping[str, Any]

TEXTS: Mapping[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("pages.toml").read_text("utf-8"))


def _text(value: float, decimals: int, sign: str = "") -> str:
    return f"{round(value, decimals) + 0.0:{sign},.{decimals}f}".replace("-", "−")


def number(value: float | None, decimals: int = 0) -> str:
    """Return a number as tables show it: a dash for none, ``< 0.001`` for what rounds to nothing but is something."""
    if value is None:
        return "–"
    if 0 < value < 0.5 * 10**-decimals and decimals:
        return f"< {10**-decimals:.{decimals}f}"
    return _text(value, decimals)


def signed(value: float | None, decimals: int = 2) -> str:
    """Return a number with its sign; what rounds to nothing has +."""
    return "–" if value is None else _text(value, decimals, "+")


def percent(share: float | None, decimals: int = 1) -> str:
    """Return a share in per cent, without the sign."""
    return number(None if share is None else 100 * share, decimals)


def interval(low: float | None, high: float | None, decimals: int, scale: float = 1.0) -> str:
    """Return the ends of an interval; nothing for none."""
    if low is None or high is None:
        return ""
    return f"{_text(scale * low, decimals)} to {_text(scale * high, decimals)}"


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


def table_of(
    caption: str,
    heads: Sequence[str],
    columns: Sequence[Column],
    names: Sequence[Sequence[Cell]],
    rows: Sequence[Row],
    **look: Any,
) -> Table:
    """Return a table whose rows are ``names``, below ``heads``, and the cells of ``columns``."""
    cells = [[*of, *(one.cell(row) for one in columns)] for of, row in zip(names, rows, strict=True)]
    return Table(caption, (*heads, *(one.title for one in columns)), cells, **look)


def interval_ends(rows: Sequence[Row], prefix: str = "") -> dict[str, Any]:
    """Return the ends of a series' intervals, where all are known; ``prefix`` begins their columns."""
    low, high = ([row.get(f"{prefix}{end}") for row in rows] for end in ("low", "high"))
    return {} if None in (*low, *high) else {"low": low, "high": high}
