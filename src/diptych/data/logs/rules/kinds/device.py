"""Events of other devices: bots often name none (thesis section 6.3)."""

from __future__ import annotations

from diptych.data.logs.rules.declaration import RULES, RowRule
from diptych.data.logs.sql import literals

__all__: list[str] = []

RULES.add(
    RowRule(
        "device",
        "of another device type than --device, or of an unknown one",
        70,
        lambda cleaning: bool(cleaning.devices),
        lambda cleaning, period: f"device NOT IN ({literals(cleaning.devices)})",
        "left(device, 80)",
    )
)
