"""Rows whose time is none, or not between 1970 and 2200."""

from __future__ import annotations

from diptych.data.logs.rules.declaration import RULES, RowRule
from diptych.data.logs.times import EARLIEST, LATEST

__all__: list[str] = []

RULES.add(
    RowRule(
        "unreadable time",
        "the time is missing or none, is on the first day of 1970 or before, or in 2200 or after",
        20,
        lambda cleaning: True,
        lambda cleaning, period: f"t_us IS NULL OR t_us < {EARLIEST} OR t_us >= {LATEST}",
        "left(written, 80)",
    )
)
