"""Device types: thesis Table 6.4."""

from __future__ import annotations

from diptych.commerce.purchase_intent.statistics.conversion import conversion_by
from diptych.commerce.purchase_intent.statistics.declaration import STATISTICS

__all__ = ["DEVICES"]

DEVICES = STATISTICS.add(conversion_by("device", "devices", "thesis Table 6.4"))
