"""Hours at which sessions begin: thesis Figure 6.4."""

from __future__ import annotations

from diptych.commerce.purchase_intent.statistics.declaration import STATISTICS
from diptych.commerce.purchase_intent.statistics.over_time import over_time

__all__ = ["HOURS"]

HOURS = STATISTICS.add(over_time("hours", "hour", "start_hour", 24, "0 to 23", "thesis Figure 6.4"))
