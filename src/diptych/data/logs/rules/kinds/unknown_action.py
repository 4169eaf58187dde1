"""Rows whose action means nothing here; what the log calls them is listed."""

from __future__ import annotations

from diptych.data.logs.rules.declaration import RULES, RowRule

__all__: list[str] = []

RULES.add(
    RowRule(
        "unknown action",
        "what the log says was done is none of the known actions; map it with [values.action], also to other",
        40,
        lambda cleaning: True,
        lambda cleaning, period: "action IS NULL",
        "coalesce(left(said, 80), '(missing)')",
    )
)
