"""Rows that are nobody's."""

from __future__ import annotations

from diptych.data.logs.rules.declaration import RULES, RowRule

__all__: list[str] = []

RULES.add(
    RowRule(
        "no client",
        "neither client nor visitor is known",
        30,
        lambda cleaning: True,
        lambda cleaning, period: "client_id IS NULL",
    )
)
