"""How often the visitor was here before, and how far back the log goes."""

from __future__ import annotations

from diptych.commerce.purchase_intent.features.declaration import FEATURES, Feature
from diptych.commerce.purchase_intent.features.plain import Plain, column_values

__all__ = ["HISTORY_DAYS", "SESSIONS"]

_SESSIONS = Plain(("sessions",), column_values("sessions"))
_HISTORY_DAYS = Plain(("history-days",), column_values("history_days"))

SESSIONS = FEATURES.add(
    Feature(
        name="sessions",
        label="number of sessions",
        description="the visitor's sessions before this one",
        group="history",
        dynamic=False,
        baseline=False,
        columns=("sessions",),
        fit=_SESSIONS.fit,
        load=_SESSIONS.load,
    )
)

HISTORY_DAYS = FEATURES.add(
    Feature(
        name="history-days",
        label="days of history",
        description="days from the log's first session to this start: all that orders and sessions can know of (ours)",
        group="history",
        dynamic=False,
        baseline=False,
        columns=("history_days",),
        fit=_HISTORY_DAYS.fit,
        load=_HISTORY_DAYS.load,
        default=False,
    )
)
