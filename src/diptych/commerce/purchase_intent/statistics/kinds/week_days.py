"""Week days on which sessions begin: thesis Figure 6.3."""

from __future__ import annotations

from diptych.commerce.purchase_intent.statistics.declaration import STATISTICS
from diptych.commerce.purchase_intent.statistics.over_time import over_time

__all__ = ["WEEK_DAYS"]

WEEK_DAYS = STATISTICS.add(
    over_time("week-days", "week_day", "start_dow", 7, "0 is Monday", "thesis Figure 6.3")
)
