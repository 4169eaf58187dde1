"""The declared features of thesis Table 6.7, and ours."""

from __future__ import annotations

import numpy as np

from diptych.commerce.logs.schema import SECOND
from diptych.commerce.purchase_intent.features.fitting import (
    ABSENT,
    FEATURES,
    Chains,
    Feature,
    MarkovRatio,
    OneHot,
    Plain,
    SmoothedRate,
    fit_markov,
    numbered,
)
from diptych.commerce.purchase_intent.features.view import (
    EARLIER_DEVICES,
    LAST_DEVICES,
    NO_PAGE,
    NOTHING,
    SessionsView,
)

OTHER_PAGE = "(other)"
"""What page types are called together that have no code of their own."""

_SEQUENCE = (*reversed(EARLIER_DEVICES), "device")
"""Columns in the order of time."""

_BEFORE = EARLIER_DEVICES[0]
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _column(name: str) -> Plain:
    """A view's column as it is."""
    return Plain(lambda view: view.columns[name])


def _device_codes(view: SessionsView, names: tuple[str, ...]) -> np.ndarray:
    """(n, LAST_DEVICES) codes in ``names``, their number for another device."""
    n = len(names)
    place = np.array([*range(n), ABSENT, n])  # the last is for numbered's -1
    return np.stack(
        [place[numbered(view.columns[column], (*names, NOTHING))] for column in _SEQUENCE], axis=1
    )


def _fit_devices(view: SessionsView) -> MarkovRatio:
    known = view.take(~np.isnan(view.columns["devices"]))
    assert known.labels is not None
    names = tuple(sorted(set().union(*(known.columns[column].tolist() for column in _SEQUENCE)) - {NOTHING}))
    return fit_markov(_device_codes(known, names), known.labels, names)


def _page_codes(view: SessionsView, states: tuple[str, ...]) -> np.ndarray:
    """The pages of a view, whatever its vocabulary, as states of the chains."""
    place = {name: code for code, name in enumerate(states)}
    codes = [place.get(name, len(place)) for name in (*view.vocabulary, OTHER_PAGE)]
    pages: np.ndarray = np.array([*codes, ABSENT])[view.page_types]  # NO_PAGE is -1: the last
    return pages


def _fit_pages(view: SessionsView) -> MarkovRatio:
    """Chains of the pages before the first purchase: no page behind it teaches what leads to one."""
    assert view.labels is not None
    codes = view.page_types.astype(np.int64)
    if view.pages_before_purchase is not None:
        behind = np.arange(codes.shape[1]) >= view.pages_before_purchase[:, None]
        codes[behind] = NO_PAGE
    return fit_markov(codes, view.labels, (*view.vocabulary, OTHER_PAGE))


def _switch_probability(view: SessionsView) -> np.ndarray:
    probability: np.ndarray = (view.columns["switches"] + 0.5) / (view.columns["pairs"] + 2)
    return probability


def _dwells(view: SessionsView) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(n, steps − 1) seconds, 0 where there is none, whether there is one, and (n,) their mean.

    Page i is left when page i + 1 opens, so after k pages k − 1 dwell times are known: none before the second page.
    """
    known = view.page_types[:, 1:] != NO_PAGE
    seconds = np.where(known, np.diff(view.page_times, axis=1), 0) / SECOND
    return seconds, known, seconds.sum(axis=1) / _counts(known)


def _counts(known: np.ndarray) -> np.ndarray:
    counts: np.ndarray = known.sum(axis=1).astype(np.float64)
    counts[counts == 0] = np.nan
    return counts


def _dwell_deviation(view: SessionsView) -> np.ndarray:
    seconds, known, mean = _dwells(view)
    apart = np.where(known, seconds - mean[:, None], 0.0)
    deviation: np.ndarray = np.sqrt((apart**2).sum(axis=1) / _counts(known))
    return deviation


def _days_since(view: SessionsView) -> np.ndarray:
    days, orders = view.columns["days_since_purchase"], view.columns["orders"]
    never: np.ndarray = np.where(np.isnan(orders), np.nan, orders == 0)  # NaN: the visitor is not known
    return np.stack([days, never], axis=1)


def _pages(view: SessionsView) -> np.ndarray:
    """All sessions of one step have the same number: it is for models of several steps, and the thesis lists it."""
    counts: np.ndarray = (view.page_types != NO_PAGE).sum(axis=1)
    return counts


def _week_day(view: SessionsView) -> np.ndarray:
    days = view.columns["start_dow"]
    hot: np.ndarray = np.where(np.isnan(days)[:, None], np.nan, days[:, None] == np.arange(len(_DAYS)))
    return hot


def _hour_cyclic(view: SessionsView) -> np.ndarray:
    angle = view.columns["start_hour"] * (2 * np.pi / 24)
    return np.stack([np.sin(angle), np.cos(angle)], axis=1)


for _feature in (
    Feature(
        "dwell-mean",
        "current page dwell time, mean",
        "mean seconds from a page to the next, of pages that were left; none before the second page",
        "session",
        (),
        Plain(lambda view: _dwells(view)[2]),
        dynamic=True,
        baseline=True,
    ),
    Feature(
        "dwell-deviation",
        "current page dwell time, σ",
        "standard deviation (of the population) of seconds from a page to the next; 0 for one of them",
        "session",
        (),
        Plain(_dwell_deviation),
        dynamic=True,
        baseline=True,
    ),
    Feature(
        "page-sequence-score",
        "page sequence score",
        "sum over pages of ln P(type | type before) of buyers less that of others, two Markov chains of "
        "training sessions; page types that they do not have add nothing (ours)",
        "session",
        (),
        Chains(_fit_pages, _page_codes),
        dynamic=True,
        baseline=True,
    ),
    Feature(
        "pages",
        "number of pages",
        "pages opened by now, which is the step: the same for all sessions of one step",
        "session",
        (),
        Plain(_pages),
        dynamic=True,
        baseline=True,
    ),
    Feature(
        "channel",
        "channel type",
        "one column per channel of the training sessions, at most 50; another one is 0 in all of them",
        "session",
        ("channel",),
        OneHot("channel"),
    ),
    Feature(
        "start-hour",
        "start hour",
        "local hour of the start, a number from 0 to 23",
        "session",
        ("start_hour",),
        _column("start_hour"),
    ),
    Feature(
        "week-day",
        "week day",
        "local week day of the start, one column per day",
        "session",
        ("start_dow",),
        Plain(_week_day, tuple(f"={day}" for day in _DAYS)),
    ),
    Feature(
        "hour-cyclic",
        "start hour, cyclic",
        "sine and cosine of the start hour's place in the day, so that 23 and 0 are neighbours (ours)",
        "session",
        ("start_hour",),
        Plain(_hour_cyclic, (":sin", ":cos")),
        default=False,
    ),
    Feature(
        "device",
        "device type",
        "one column per device type of the training sessions, at most 50; another one is 0 in all of them",
        "session",
        ("device",),
        OneHot("device"),
    ),
    Feature(
        "device-rate",
        "device conversion rate",
        "share of training sessions on the device type that end in a purchase, drawn to the share of all "
        "as by 20 sessions more (ours)",
        "session",
        ("device",),
        SmoothedRate("device"),
    ),
    # The device of the session before, and its conversion rate, are in no set unless they are asked for: the thesis
    # found that they hurt (section 6.5.3).
    Feature(
        "previous-device",
        "previous device type",
        "device type of the visitor's session before, one column each; the thesis left it out",
        "history",
        (_BEFORE,),
        OneHot(_BEFORE),
        default=False,
    ),
    Feature(
        "previous-device-rate",
        "previous device conversion rate",
        "share of training sessions after one on that device type that end in a purchase, smoothed; none "
        "where there is no session before; the thesis left it out",
        "history",
        (_BEFORE,),
        SmoothedRate(_BEFORE),
        default=False,
    ),
    Feature(
        "orders",
        "number of orders",
        "the visitor's sessions with a purchase, where its first came before this session's start",
        "history",
        ("orders",),
        _column("orders"),
        baseline=True,
    ),
    Feature(
        "days-since-purchase",
        "days since last purchase",
        "days from the latest of these purchases to this start, none where there is none; and whether there is none",
        "history",
        ("days_since_purchase", "orders"),
        Plain(_days_since, ("", ":never")),
        baseline=True,
    ),
    Feature(
        "sessions",
        "number of sessions",
        "the visitor's sessions before this one",
        "history",
        ("sessions",),
        _column("sessions"),
    ),
    Feature(
        "history-days",
        "days of history",
        "days from the log's first session to this start: all that orders and sessions can know of (ours)",
        "history",
        ("history_days",),
        _column("history_days"),
        default=False,
    ),
    Feature(
        "devices",
        "number of devices",
        "different device types of the visitor's sessions up to this one, this one among them",
        "history",
        ("devices",),
        _column("devices"),
    ),
    Feature(
        "device-sequence-score",
        "device sequence score",
        f"as the page sequence score, of the device types of the visitor's last {LAST_DEVICES} sessions, "
        "this one among them; chains of training sessions by how they ended (ours)",
        "history",
        (*_SEQUENCE, "devices"),
        Chains(_fit_devices, _device_codes, known="devices"),
    ),
    Feature(
        "switch-probability",
        "switch probability",
        "(switches + 0.5) / (pairs + 2) of consecutive sessions before this one, on two device types or not (ours)",
        "history",
        ("switches", "pairs"),
        Plain(_switch_probability),
    ),
):
    FEATURES.add(_feature)
