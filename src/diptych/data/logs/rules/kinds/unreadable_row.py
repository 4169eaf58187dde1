"""Rows that are none: damaged lines, another number of values, bad quotation marks."""

from __future__ import annotations

from diptych.data.logs.rules.declaration import RULES, UNREADABLE_ROW, RowRule

__all__: list[str] = []

RULES.add(
    RowRule(
        UNREADABLE_ROW,
        "no row of the file's columns: wrong number of values, bad quotation marks, a line break inside of them, "
        "NUL, or bytes that are not UTF-8",
        10,
        lambda cleaning: True,
        lambda cleaning, period: "NOT readable",
    )
)
