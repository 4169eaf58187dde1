"""Events outside of a period."""

from __future__ import annotations

from diptych.data.logs.cleaning import Cleaning, Period
from diptych.data.logs.rules.declaration import RULES, RowRule

__all__: list[str] = []


def _drops(cleaning: Cleaning, period: Period) -> str:
    parts = [
        *([f"t_us < {period.since_us}"] if period.since_us is not None else []),
        *([f"t_us >= {period.until_us}"] if period.until_us is not None else []),
    ]
    return " OR ".join(parts)


RULES.add(
    RowRule(
        "outside",
        "before --since, or at --until or after",
        50,
        lambda cleaning: cleaning.since is not None or cleaning.until is not None,
        _drops,
    )
)
