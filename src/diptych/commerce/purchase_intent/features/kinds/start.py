"""When the session began, by the clock on the visitor's wall."""

from __future__ import annotations

import numpy as np

from diptych.commerce.purchase_intent.features.declaration import FEATURES, Feature
from diptych.commerce.purchase_intent.features.plain import Plain, column_values
from diptych.commerce.purchase_intent.features.view import SessionsView

__all__ = ["HOUR_CYCLIC", "START_HOUR", "WEEK_DAY"]

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _week_day(view: SessionsView) -> np.ndarray:
    days = view.columns["start_dow"]
    hot: np.ndarray = np.where(np.isnan(days)[:, None], np.nan, days[:, None] == np.arange(len(_DAYS)))
    return hot


def _hour_cyclic(view: SessionsView) -> np.ndarray:
    angle = view.columns["start_hour"] * (2 * np.pi / 24)
    return np.stack([np.sin(angle), np.cos(angle)], axis=1)


_START_HOUR = Plain(("start-hour",), column_values("start_hour"))
_WEEK_DAY = Plain(tuple(f"week-day={day}" for day in _DAYS), _week_day)
_HOUR_CYCLIC = Plain(("hour-cyclic:sin", "hour-cyclic:cos"), _hour_cyclic)

START_HOUR = FEATURES.add(
    Feature(
        name="start-hour",
        label="start hour",
        description="local hour of the start, a number from 0 to 23",
        group="session",
        dynamic=False,
        baseline=False,
        columns=("start_hour",),
        fit=_START_HOUR.fit,
        load=_START_HOUR.load,
    )
)

WEEK_DAY = FEATURES.add(
    Feature(
        name="week-day",
        label="week day",
        description="local week day of the start, one column per day",
        group="session",
        dynamic=False,
        baseline=False,
        columns=("start_dow",),
        fit=_WEEK_DAY.fit,
        load=_WEEK_DAY.load,
    )
)

HOUR_CYCLIC = FEATURES.add(
    Feature(
        name="hour-cyclic",
        label="start hour, cyclic",
        description="sine and cosine of the start hour's place in the day, so that 23 and 0 are neighbours (ours)",
        group="session",
        dynamic=False,
        baseline=False,
        columns=("start_hour",),
        fit=_HOUR_CYCLIC.fit,
        load=_HOUR_CYCLIC.load,
        default=False,
    )
)
