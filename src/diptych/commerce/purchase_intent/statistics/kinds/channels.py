"""Channels that visitors come by: thesis Table 6.2."""

from __future__ import annotations

from diptych.commerce.purchase_intent.statistics.conversion import conversion_by
from diptych.commerce.purchase_intent.statistics.declaration import STATISTICS

__all__ = ["CHANNELS"]

CHANNELS = STATISTICS.add(conversion_by("channel", "channels", "thesis Table 6.2"))
