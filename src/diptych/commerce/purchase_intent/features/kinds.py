"""One file per member."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych.commerce.purchase_intent.features.column_features import (
    OneHot,
    Plain,
    SmoothedRate,
    column_values,
    numbered,
)
from diptych.commerce.purchase_intent.features.declaration import FEATURES, Feature
from diptych.commerce.purchase_intent.features.markov import ABSENT, MarkovRatio, fit_markov
from diptych.commerce.purchase_intent.features.view import (
    EARLIER_DEVICES,
    LAST_DEVICES,
    NO_PAGE,
    NOTHING,
    SessionsView,
)
from diptych.core.errors import UsageError
from diptych.data.logs.schema import SECOND

_CHANNEL = OneHot("channel", "channel")

CHANNEL = FEATURES.add(
    Feature(
        name="channel",
        label="channel type",
        description="one column per channel of the training sessions, at most 50; another one is 0 in all of them",
        group="session",
        dynamic=False,
        baseline=False,
        columns=("channel",),
        fit=_CHANNEL.fit,
        load=_CHANNEL.load,
    )
)


_DEVICE = OneHot("device", "device")
_RATE = SmoothedRate("device-rate", "device")

DEVICE = FEATURES.add(
    Feature(
        name="device",
        label="device type",
        description="one column per device type of the training sessions, at most 50; another one is 0 in all of them",
        group="session",
        dynamic=False,
        baseline=False,
        columns=("device",),
        fit=_DEVICE.fit,
        load=_DEVICE.load,
    )
)

DEVICE_RATE = FEATURES.add(
    Feature(
        name="device-rate",
        label="device conversion rate",
        description="share of training sessions on the device type that end in a purchase, drawn to the share of all "
        "as by 20 sessions more (ours)",
        group="session",
        dynamic=False,
        baseline=False,
        columns=("device",),
        fit=_RATE.fit,
        load=_RATE.load,
    )
)


_SEQUENCE = (*reversed(EARLIER_DEVICES), "device")
"""Columns in the order of time."""


def _codes(view: SessionsView, names: tuple[str, ...]) -> np.ndarray:
    """(n, LAST_DEVICES) codes in ``names``, their number for another device."""
    n = len(names)
    place = np.array([*range(n), ABSENT, n])  # the last is for numbered's -1
    return np.stack(
        [place[numbered(view.columns[column], (*names, NOTHING))] for column in _SEQUENCE], axis=1
    )


@dataclass(frozen=True)
class FittedDeviceSequence:
    """Chains of device types.

    Attributes:
        chains: of buyers and of others.
    """

    chains: MarkovRatio

    @property
    def names(self) -> tuple[str, ...]:
        """One column."""
        return ("device-sequence-score",)

    def values(self, view: SessionsView) -> np.ndarray:
        """(n, 1); NaN where the devices are not known."""
        scores = self.chains.scores(_codes(view, self.chains.states))
        scores[np.isnan(view.columns["devices"])] = np.nan
        return scores[:, None]

    def to_dict(self) -> dict[str, Any]:
        """The chains."""
        return self.chains.to_dict()


def _fit(view: SessionsView) -> FittedDeviceSequence:
    if view.labels is None:
        raise UsageError("chains need sessions whose outcome is known", "give a view with labels")
    known = view.take(~np.isnan(view.columns["devices"]))
    assert known.labels is not None
    names = tuple(sorted(set().union(*(known.columns[column].tolist() for column in _SEQUENCE)) - {NOTHING}))
    return FittedDeviceSequence(fit_markov(_codes(known, names), known.labels, names))


def _switch_probability(view: SessionsView) -> np.ndarray:
    probability: np.ndarray = (view.columns["switches"] + 0.5) / (view.columns["pairs"] + 2)
    return probability


_DEVICES = Plain(("devices",), column_values("devices"))
_SWITCH = Plain(("switch-probability",), _switch_probability)

DEVICES = FEATURES.add(
    Feature(
        name="devices",
        label="number of devices",
        description="different device types of the visitor's sessions up to this one, this one among them",
        group="history",
        dynamic=False,
        baseline=False,
        columns=("devices",),
        fit=_DEVICES.fit,
        load=_DEVICES.load,
    )
)

DEVICE_SEQUENCE_SCORE = FEATURES.add(
    Feature(
        name="device-sequence-score",
        label="device sequence score",
        description=f"as the page sequence score, of the device types of the visitor's last {LAST_DEVICES} sessions, "
        "this one among them; chains of training sessions by how they ended (ours)",
        group="history",
        dynamic=False,
        baseline=False,
        columns=(*_SEQUENCE, "devices"),
        fit=_fit,
        load=lambda values: FittedDeviceSequence(MarkovRatio.from_dict(values)),
    )
)

SWITCH_PROBABILITY = FEATURES.add(
    Feature(
        name="switch-probability",
        label="switch probability",
        description="(switches + 0.5) / (pairs + 2) of consecutive sessions before this one, on two device types or "
        "not (ours)",
        group="history",
        dynamic=False,
        baseline=False,
        columns=("switches", "pairs"),
        fit=_SWITCH.fit,
        load=_SWITCH.load,
    )
)


# How long pages were looked at.
#
# Page i is left when page i + 1 opens, so after k pages k − 1 dwell times are known: none before the second page.
def _dwells(view: SessionsView) -> tuple[np.ndarray, np.ndarray]:
    """(n, steps − 1) seconds, 0 where there is none, and (n,) how many there are; NaN for none."""
    known = view.page_types[:, 1:] != NO_PAGE
    seconds = np.where(known, np.diff(view.page_times, axis=1), 0) / SECOND
    counts = known.sum(axis=1).astype(np.float64)
    counts[counts == 0] = np.nan
    return seconds, counts


def _mean(view: SessionsView) -> np.ndarray:
    seconds, counts = _dwells(view)
    mean: np.ndarray = seconds.sum(axis=1) / counts
    return mean


def _deviation(view: SessionsView) -> np.ndarray:
    seconds, counts = _dwells(view)
    mean = seconds.sum(axis=1) / counts
    apart = np.where(view.page_types[:, 1:] != NO_PAGE, seconds - mean[:, None], 0.0)
    deviation: np.ndarray = np.sqrt((apart**2).sum(axis=1) / counts)
    return deviation


_MEAN = Plain(("dwell-mean",), _mean)
_DEVIATION = Plain(("dwell-deviation",), _deviation)

DWELL_MEAN = FEATURES.add(
    Feature(
        name="dwell-mean",
        label="current page dwell time, mean",
        description="mean seconds from a page to the next, of pages that were left; none before the second page",
        group="session",
        dynamic=True,
        baseline=True,
        columns=(),
        fit=_MEAN.fit,
        load=_MEAN.load,
    )
)

DWELL_DEVIATION = FEATURES.add(
    Feature(
        name="dwell-deviation",
        label="current page dwell time, σ",
        description="standard deviation (of the population) of seconds from a page to the next; 0 for one of them",
        group="session",
        dynamic=True,
        baseline=True,
        columns=(),
        fit=_DEVIATION.fit,
        load=_DEVIATION.load,
    )
)


def _days_since(view: SessionsView) -> np.ndarray:
    days, orders = view.columns["days_since_purchase"], view.columns["orders"]
    never: np.ndarray = np.where(np.isnan(orders), np.nan, orders == 0)  # NaN: nobody knows the visitor
    return np.stack([days, never], axis=1)


_ORDERS = Plain(("orders",), column_values("orders"))
_DAYS_SINCE = Plain(("days-since-purchase", "days-since-purchase:never"), _days_since)

ORDERS = FEATURES.add(
    Feature(
        name="orders",
        label="number of orders",
        description="the visitor's sessions with a purchase, where its first came before this session's start",
        group="history",
        dynamic=False,
        baseline=True,
        columns=("orders",),
        fit=_ORDERS.fit,
        load=_ORDERS.load,
    )
)

DAYS_SINCE_PURCHASE = FEATURES.add(
    Feature(
        name="days-since-purchase",
        label="days since last purchase",
        description="days from the latest of these purchases to this start, none where there is none; and whether "
        "there is none",
        group="history",
        dynamic=False,
        baseline=True,
        columns=("days_since_purchase", "orders"),
        fit=_DAYS_SINCE.fit,
        load=_DAYS_SINCE.load,
    )
)


OTHER_PAGE = "(other)"
"""What page types are called together that have no code of their own."""


@dataclass(frozen=True)
class FittedPageSequence:
    """Chains of page types.

    Attributes:
        chains: of buyers and of others.
    """

    chains: MarkovRatio

    @property
    def names(self) -> tuple[str, ...]:
        """One column."""
        return ("page-sequence-score",)

    def values(self, view: SessionsView) -> np.ndarray:
        """(n, 1)."""
        return self.chains.scores(self._codes(view))[:, None]

    def gains(self, view: SessionsView) -> np.ndarray:
        """(n, steps): what each page adds to the score."""
        return self.chains.gains(self._codes(view))

    def _codes(self, view: SessionsView) -> np.ndarray:
        """The pages of a view, whatever its vocabulary, as states of the chains."""
        place = {name: code for code, name in enumerate(self.chains.states)}
        names = (*view.vocabulary, OTHER_PAGE)
        codes = [place.get(name, len(place)) for name in names]
        states: np.ndarray = np.array([*codes, ABSENT])[view.page_types]  # NO_PAGE is -1: the last
        return states

    def to_dict(self) -> dict[str, Any]:
        """The chains."""
        return self.chains.to_dict()


def _page_sequence_fit(view: SessionsView) -> FittedPageSequence:
    if view.labels is None:
        raise UsageError("chains need sessions whose outcome is known", "give a view with labels")
    codes = view.page_types.astype(np.int64)
    if view.pages_before_purchase is not None:
        behind = np.arange(codes.shape[1]) >= view.pages_before_purchase[:, None]
        codes[behind] = NO_PAGE
    return FittedPageSequence(fit_markov(codes, view.labels, (*view.vocabulary, OTHER_PAGE)))


PAGE_SEQUENCE_SCORE = FEATURES.add(
    Feature(
        name="page-sequence-score",
        label="page sequence score",
        description="sum over pages of ln P(type | type before) of buyers less that of others, two Markov chains of "
        "training sessions; page types that they do not have add nothing (ours)",
        group="session",
        dynamic=True,
        baseline=True,
        columns=(),
        fit=_page_sequence_fit,
        load=lambda values: FittedPageSequence(MarkovRatio.from_dict(values)),
    )
)


# How many pages are open by now.
#
# All sessions of one step have the same number, so a model of that step alone learns nothing from it; it is there
# because the thesis lists it, and for models of several steps.
def _pages(view: SessionsView) -> np.ndarray:
    counts: np.ndarray = (view.page_types != NO_PAGE).sum(axis=1)
    return counts


_PAGES = Plain(("pages",), _pages)

PAGES = FEATURES.add(
    Feature(
        name="pages",
        label="number of pages",
        description="pages opened by now, which is the step: the same for all sessions of one step",
        group="session",
        dynamic=True,
        baseline=True,
        columns=(),
        fit=_PAGES.fit,
        load=_PAGES.load,
    )
)


# The device of the visitor's session before, and its conversion rate: the thesis found that they hurt.
#
# So they are in no set unless they are asked for (thesis section 6.5.3).
_BEFORE = EARLIER_DEVICES[0]
_PREVIOUS_DEVICE_DEVICE = OneHot("previous-device", _BEFORE)
_PREVIOUS_DEVICE_RATE = SmoothedRate("previous-device-rate", _BEFORE)

PREVIOUS_DEVICE = FEATURES.add(
    Feature(
        name="previous-device",
        label="previous device type",
        description="device type of the visitor's session before, one column each; the thesis left it out",
        group="history",
        dynamic=False,
        baseline=False,
        columns=(_BEFORE,),
        fit=_PREVIOUS_DEVICE_DEVICE.fit,
        load=_PREVIOUS_DEVICE_DEVICE.load,
        default=False,
    )
)

PREVIOUS_DEVICE_RATE = FEATURES.add(
    Feature(
        name="previous-device-rate",
        label="previous device conversion rate",
        description="share of training sessions after one on that device type that end in a purchase, smoothed; none "
        "where there is no session before; the thesis left it out",
        group="history",
        dynamic=False,
        baseline=False,
        columns=(_BEFORE,),
        fit=_PREVIOUS_DEVICE_RATE.fit,
        load=_PREVIOUS_DEVICE_RATE.load,
        default=False,
    )
)


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
