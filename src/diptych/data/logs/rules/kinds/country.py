"""Events from elsewhere: bots mostly come from where no customers are (thesis section 6.3)."""

from __future__ import annotations

from diptych.data.logs.cleaning import Cleaning, Period
from diptych.data.logs.rules.declaration import RULES, RowRule
from diptych.data.logs.sql import literals

__all__: list[str] = []


def _drops(cleaning: Cleaning, period: Period) -> str:
    missing = "false" if cleaning.keep_missing_country else "true"
    return f"coalesce(country NOT IN ({literals(cleaning.countries)}), {missing})"


RULES.add(
    RowRule(
        "country",
        "from another country than --country, or from none where --keep-missing-country does not say to keep it",
        60,
        lambda cleaning: bool(cleaning.countries),
        _drops,
        "coalesce(country, '(missing)')",
    )
)
