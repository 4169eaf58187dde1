"""The features of thesis Table 6.7, and ours: what each learns of training sessions, and how it is computed.

Some features learn parameters (chains of pages, a device's conversion rate), on training sessions alone, inside each
fold. What is learned is plain data, so that fitted features are stored as JSON and one session is scored at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from diptych.commerce.logs.schema import SECOND
from diptych.commerce.purchase_intent.features.view import (
    EARLIER_DEVICES,
    HISTORY_COLUMNS,
    LAST_DEVICES,
    NO_PAGE,
    NOTHING,
    SessionsView,
)
from diptych.core.errors import UsageError
from diptych.core.registry import Registry

ColumnKind = Literal["number", "text"]

ABSENT = -1
"""The code of no state at all: before a sequence begins, and behind its end."""

OTHER_PAGE = "(other)"
"""What page types are called together that have no code of their own."""

_MOST_CATEGORIES = 50  # with columns, the most frequent: a log may call every campaign a channel of its own
_WEIGHT = 20.0  # sessions at the rate of all that every category is taken to have had more
_SEQUENCE = (*reversed(EARLIER_DEVICES), "device")  # columns in the order of time
_BEFORE = EARLIER_DEVICES[0]
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass(frozen=True)
class MarkovRatio:
    """Tell which of two Markov chains a sequence is more likely of: that of buyers or that of all others.

    The thesis names a page sequence score and a device sequence score and gives no formula; this one is ours. From
    START on, every transition a → b adds ln P₁(b | a) − ln P₀(b | a), where

        P_c(b | a) = (n_c(a, b) + s) / (n_c(a, ·) + s·V)

    with the transitions n_c of training sessions of class c, smoothing s and the V states that training sessions
    have been in. A state that was not among them adds nothing, and neither does the step away from it: nothing is
    known of it. Otherwise the class with fewer sessions, whose counts are smaller, would claim every novelty.
    """

    states: tuple[str, ...]  # names, in the order of their codes
    transitions: tuple[tuple[int, int, int, int], ...]  # from (0 is START), to, others' and buyers' count
    smoothing: float = 1.0  # s

    @cached_property
    def _gains(self) -> np.ndarray:
        """(states + 2, states + 1) what every transition adds; 0 in the last row and column, of states not seen."""
        n = len(self.states)
        counts = np.zeros((n + 1, n, 2), dtype=np.int64)
        rows = np.array(self.transitions, dtype=np.int64).reshape(-1, 4)
        counts[rows[:, 0], rows[:, 1]] = rows[:, 2:]
        totals = counts.sum(axis=1, keepdims=True) + self.smoothing * max(1, n)
        logs = np.log(counts + self.smoothing) - np.log(totals)
        gains = np.zeros((n + 2, n + 1))
        gains[: n + 1, :n] = logs[..., 1] - logs[..., 0]
        return gains

    def scores(self, codes: np.ndarray) -> np.ndarray:
        """Return (n,) log-likelihood ratios: positive where buyers are likelier.

        Args:
            codes: (n, length) int64 of ``states``; their number for an unknown one, :data:`ABSENT` for none.
        """
        total: np.ndarray = np.where(codes == ABSENT, 0.0, self._gains[_transitions(codes)]).sum(axis=1)
        return total


def fit_markov(codes: np.ndarray, labels: np.ndarray, names: Sequence[str]) -> MarkovRatio:
    """Count the transitions of training sequences.

    Args:
        codes: (n, length) int64 codes in ``names``, :data:`ABSENT` where there is no state.
        labels: (n,) bool, whose sequences are buyers'.
    """
    seen = np.unique(codes[codes != ABSENT])
    dense = np.full(len(names) + 1, ABSENT, dtype=np.int64)  # the last is that of ABSENT, -1
    dense[seen] = np.arange(len(seen))
    codes = dense[codes]
    there = codes != ABSENT
    before, after = _transitions(codes)
    of_buyers = np.broadcast_to(labels[:, None].astype(np.int64), codes.shape)
    counts = np.zeros((len(seen) + 1, len(seen), 2), dtype=np.int64)
    np.add.at(counts, (before[there], after[there], of_buyers[there]), 1)
    occurred = np.argwhere(counts.any(axis=2)).tolist()
    transitions = tuple((a, b, *counts[a, b].tolist()) for a, b in occurred)
    return MarkovRatio(tuple(names[code] for code in seen), transitions)


def _transitions(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (n, length) rows of a table whose row 0 is START, and its columns; anything where a state is absent."""
    before = np.zeros_like(codes)
    before[:, 1:] = codes[:, :-1] + 1  # ABSENT + 1 is START
    return before, np.maximum(codes, 0)


Learned = None | tuple[str, ...] | tuple[tuple[str, int, int], ...] | MarkovRatio
"""Nothing, categories, (category, buyers, sessions) of each, or chains."""


def _codes(texts: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Return (n,) the place of each text in ``names``, -1 where it has none."""
    places = {name: number for number, name in enumerate(names)}
    return np.fromiter((places.get(text, -1) for text in texts.tolist()), np.int64, len(texts))


class How:
    """What a feature learns, what its columns are called, and their values."""

    def learn(self, view: SessionsView) -> Any:
        """Return the parameters; none here."""
        return None

    def names(self, feature: str, learned: Any) -> tuple[str, ...]:
        """Return the columns' names."""
        return (feature,)

    def values(self, view: SessionsView, learned: Any) -> np.ndarray:
        """Return (n, columns) float64, NaN where there is no value."""
        raise NotImplementedError


@dataclass(frozen=True)
class Plain(How):
    """Columns that need no parameters."""

    compute: Callable[[SessionsView], np.ndarray]  # (n,) or (n, columns) of a view
    parts: tuple[str, ...] = ("",)  # of the feature's columns, appended to its name

    def names(self, feature: str, learned: Any) -> tuple[str, ...]:
        return tuple(feature + part for part in self.parts)

    def values(self, view: SessionsView, learned: Any) -> np.ndarray:
        return self.compute(view).astype(np.float64).reshape(len(view), len(self.parts))


@dataclass(frozen=True)
class OneHot(How):
    """A column per category of a text, as ``channel=paid``; what training sessions had rarely or never is 0 in all."""

    column: str

    def learn(self, view: SessionsView) -> tuple[str, ...]:
        counts = Counter(view.columns[self.column].tolist())
        counts.pop(NOTHING, None)
        return tuple(sorted(sorted(counts, key=lambda name: (-counts[name], name))[:_MOST_CATEGORIES]))

    def names(self, feature: str, learned: Any) -> tuple[str, ...]:
        return tuple(f"{feature}={category}" for category in learned)

    def values(self, view: SessionsView, learned: Any) -> np.ndarray:
        hot: np.ndarray = _codes(view.columns[self.column], learned)[:, None] == np.arange(len(learned))
        return hot.astype(np.float64)


@dataclass(frozen=True)
class SmoothedRate(How):
    """How often sessions of a category end in a purchase, drawn to the rate of all where there are few of them.

        (buyers + m·p) / (sessions + m)

    of training sessions, with p the rate of all of them and m = 20 (ours; the thesis gives no formula). A category
    that was not among them has the rate p; no category has no rate.
    """

    column: str

    def learn(self, view: SessionsView) -> tuple[tuple[str, int, int], ...]:
        texts = view.columns[self.column]
        sessions, buyers = Counter(texts.tolist()), Counter(texts[view.labels].tolist())
        return tuple((name, buyers[name], sessions[name]) for name in sorted(sessions) if name != NOTHING)

    def values(self, view: SessionsView, learned: Any) -> np.ndarray:
        texts = view.columns[self.column]
        counts = np.array([row[1:] for row in learned] + [(0, 0)], dtype=np.float64)  # the last: not seen
        overall = counts[:, 0].sum() / max(1, counts[:, 1].sum())
        rates = (counts[:, 0] + _WEIGHT * overall) / (counts[:, 1] + _WEIGHT)
        found = rates[_codes(texts, [row[0] for row in learned])]
        return np.where(texts == NOTHING, np.nan, found)[:, None]


@dataclass(frozen=True)
class Chains(How):
    """Score of a sequence of states by :class:`MarkovRatio`."""

    fit: Callable[[SessionsView], MarkovRatio]  # chains of training sessions
    codes: Callable[
        [SessionsView, tuple[str, ...]], np.ndarray
    ]  # (n, length) states of a view as codes of chains
    known: str = ""  # (n,) column that is NaN where there is no sequence, if any

    def learn(self, view: SessionsView) -> MarkovRatio:
        return self.fit(view)

    def values(self, view: SessionsView, learned: Any) -> np.ndarray:
        scores: np.ndarray = learned.scores(self.codes(view, learned.states))
        if self.known:
            scores[np.isnan(view.columns[self.known])] = np.nan
        return scores[:, None]


@dataclass(frozen=True)
class Feature:
    """One row of thesis Table 6.7, or another column."""

    name: str  # e.g. dwell-mean
    label: str  # as the thesis prints it
    description: str  # the formula in one line; what the thesis leaves open is said to be ours
    group: Literal["session", "history"]  # of the session itself, or of the visitor
    columns: tuple[str, ...]  # what it needs of a view's
    how: How  # what it learns and how it is computed
    dynamic: bool = False  # whether it may change while the session runs
    baseline: bool = False  # whether it is in the baseline set
    default: bool = True  # whether it is in the extended set by default; others have to be asked for


def _device_codes(view: SessionsView, names: tuple[str, ...]) -> np.ndarray:
    """Return (n, LAST_DEVICES) codes in ``names``, their number for another device."""
    n = len(names)
    place = np.array([*range(n), ABSENT, n])  # the last is for a code of -1
    return np.stack([place[_codes(view.columns[one], (*names, NOTHING))] for one in _SEQUENCE], axis=1)


def _fit_devices(view: SessionsView) -> MarkovRatio:
    known = view.take(~np.isnan(view.columns["devices"]))
    assert known.labels is not None
    names = tuple(sorted(set().union(*(known.columns[one].tolist() for one in _SEQUENCE)) - {NOTHING}))
    return fit_markov(_device_codes(known, names), known.labels, names)


def _page_codes(view: SessionsView, states: tuple[str, ...]) -> np.ndarray:
    """Return the pages of a view, whatever its vocabulary, as states of the chains."""
    place = {name: code for code, name in enumerate(states)}
    codes = [place.get(name, len(place)) for name in (*view.vocabulary, OTHER_PAGE)]
    pages: np.ndarray = np.array([*codes, ABSENT])[view.page_types]  # NO_PAGE is -1: the last
    return pages


def _fit_pages(view: SessionsView) -> MarkovRatio:
    """Count the pages before the first purchase: no page behind it teaches what leads to one."""
    assert view.labels is not None
    codes = view.page_types.astype(np.int64)
    if view.pages_before_purchase is not None:
        codes[np.arange(codes.shape[1]) >= view.pages_before_purchase[:, None]] = NO_PAGE
    return fit_markov(codes, view.labels, (*view.vocabulary, OTHER_PAGE))


def _dwells(view: SessionsView) -> tuple[np.ndarray, np.ndarray]:
    """Return (n,) mean and standard deviation of the seconds from a page to the next, NaN of none.

    Page i is left when page i + 1 opens, so after k pages k − 1 dwell times are known: none before the second page.
    """
    known = view.page_types[:, 1:] != NO_PAGE
    seconds = np.where(known, np.diff(view.page_times, axis=1), 0) / SECOND
    counts = known.sum(axis=1).astype(np.float64)
    counts[counts == 0] = np.nan
    mean = seconds.sum(axis=1) / counts
    apart = np.where(known, seconds - mean[:, None], 0.0)
    return mean, np.sqrt((apart**2).sum(axis=1) / counts)


def _days_since(view: SessionsView) -> np.ndarray:
    days, orders = view.columns["days_since_purchase"], view.columns["orders"]
    never: np.ndarray = np.where(np.isnan(orders), np.nan, orders == 0)  # NaN: the visitor is not known
    return np.stack([days, never], axis=1)


def _week_day(view: SessionsView) -> np.ndarray:
    days = view.columns["start_dow"][:, None]
    hot: np.ndarray = np.where(np.isnan(days), np.nan, days == np.arange(len(_DAYS)))
    return hot


def _hour_cyclic(view: SessionsView) -> np.ndarray:
    angle = view.columns["start_hour"] * (2 * np.pi / 24)
    return np.stack([np.sin(angle), np.cos(angle)], axis=1)


def _column(name: str) -> Plain:
    return Plain(lambda view: view.columns[name])


_HOW: dict[str, tuple[How, tuple[str, ...]]] = {
    "dwell-mean": (Plain(lambda view: _dwells(view)[0]), ()),
    "dwell-deviation": (Plain(lambda view: _dwells(view)[1]), ()),
    "page-sequence-score": (Chains(_fit_pages, _page_codes), ()),
    "pages": (Plain(lambda view: (view.page_types != NO_PAGE).sum(axis=1)), ()),
    "channel": (OneHot("channel"), ("channel",)),
    "start-hour": (_column("start_hour"), ("start_hour",)),
    "week-day": (Plain(_week_day, tuple(f"={day}" for day in _DAYS)), ("start_dow",)),
    "device": (OneHot("device"), ("device",)),
    "device-rate": (SmoothedRate("device"), ("device",)),
    "orders": (_column("orders"), ("orders",)),
    "days-since-purchase": (Plain(_days_since, ("", ":never")), ("days_since_purchase", "orders")),
    "sessions": (_column("sessions"), ("sessions",)),
    "devices": (_column("devices"), ("devices",)),
    "device-sequence-score": (Chains(_fit_devices, _device_codes, "devices"), (*_SEQUENCE, "devices")),
    "switch-probability": (
        Plain(lambda view: (view.columns["switches"] + 0.5) / (view.columns["pairs"] + 2)),
        ("switches", "pairs"),
    ),
    "history-days": (_column("history_days"), ("history_days",)),
    "hour-cyclic": (Plain(_hour_cyclic, (":sin", ":cos")), ("start_hour",)),
    "previous-device": (OneHot(_BEFORE), (_BEFORE,)),
    "previous-device-rate": (SmoothedRate(_BEFORE), (_BEFORE,)),
}
_TABLE = f"""
dwell-mean; current page dwell time, mean; dynamic baseline
    mean seconds from a page to the next, of pages that were left; none before the second page
dwell-deviation; current page dwell time, σ; dynamic baseline
    standard deviation (of the population) of seconds from a page to the next; 0 for one of them
page-sequence-score; page sequence score; dynamic baseline
    sum over pages of ln P(type | type before) of buyers less that of others, two Markov chains of training sessions; \
page types that they do not have add nothing (ours)
pages; number of pages; dynamic baseline
    pages opened by now, which is the step: the same for all sessions of one step
channel; channel type;
    one column per channel of the training sessions, at most {_MOST_CATEGORIES}; another one is 0 in all of them
start-hour; start hour;
    local hour of the start, a number from 0 to 23
week-day; week day;
    local week day of the start, one column per day
device; device type;
    one column per device type of the training sessions, at most {_MOST_CATEGORIES}; another one is 0 in all of them
device-rate; device conversion rate;
    share of training sessions on the device type that end in a purchase, drawn to the share of all as by \
{_WEIGHT:.0f} sessions more (ours)
orders; number of orders; baseline
    the visitor's sessions with a purchase, where its first came before this session's start
days-since-purchase; days since last purchase; baseline
    days from the latest of these purchases to this start, none where there is none; and whether there is none
sessions; number of sessions;
    the visitor's sessions before this one
devices; number of devices;
    different device types of the visitor's sessions up to this one, this one among them
device-sequence-score; device sequence score;
    as the page sequence score, of the device types of the visitor's last {LAST_DEVICES} sessions, this one among \
them; chains of training sessions by how they ended (ours)
switch-probability; switch probability;
    (switches + 0.5) / (pairs + 2) of consecutive sessions before this one, on two device types or not (ours)
history-days; days of history; optional
    days from the log's first session to this start: all that orders and sessions can know of (ours)
hour-cyclic; start hour, cyclic; optional
    sine and cosine of the start hour's place in the day, so that 23 and 0 are neighbours (ours)
previous-device; previous device type; optional
    device type of the visitor's session before, one column each; the thesis left it out, for it hurt (6.5.3)
previous-device-rate; previous device conversion rate; optional
    share of training sessions after one on that device type that end in a purchase, smoothed; none where there is \
no session before; the thesis left it out, for it hurt (6.5.3)
"""  # a name, the thesis's name, marks; then what it is: the rows of Table 6.7, then others

FEATURES: Registry[Feature] = Registry("feature", __name__)
"""All features."""


def _declared() -> tuple[Feature, ...]:
    lines = _TABLE.strip().splitlines()
    found = []
    for head, description in zip(lines[::2], lines[1::2], strict=True):
        name, label, marks = map(str.strip, head.split(";"))
        how, columns = _HOW[name]
        feature = Feature(
            name,
            label,
            description.strip(),
            "history" if set(columns) & set(HISTORY_COLUMNS) else "session",
            columns,
            how,
            dynamic="dynamic" in marks,
            baseline="baseline" in marks,
            default="optional" not in marks,
        )
        found.append(FEATURES.add(feature))
    return tuple(found)


_DECLARED = _declared()


def features_of(setting: str, feature_set: str, step: int, also: Sequence[str] = ()) -> list[Feature]:
    """Return the features of one cell, in the order of Table 6.7, others behind them."""
    return [
        one
        for one in _DECLARED
        if (step != 0 or not one.dynamic)
        and (setting != "anonymous" or one.group != "history")
        and (one.baseline if feature_set == "baseline" else one.default or one.name in also)
    ]


def column_feature(name: str, kind: ColumnKind) -> Feature:
    """Return the feature that is a column of a table which brings its own; it is in no registry."""
    text, how = "the column as it is", _column(name) if kind == "number" else OneHot(name)
    text += "" if kind == "number" else "; one column per category of the training sessions"
    return Feature(name, name, text, "session", (name,), how)


@dataclass(frozen=True)
class FittedFeatures:
    """Several features of one view, side by side."""

    chosen: tuple[str, ...]  # their names, in the order of their columns
    learned: tuple[Learned, ...]  # each one's parameters
    kinds: dict[str, ColumnKind]  # of features that are columns of their own table; empty for declared ones

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The declarations."""
        kinds = self.kinds
        return tuple(
            column_feature(one, kinds[one]) if one in kinds else FEATURES.get(one) for one in self.chosen
        )

    @cached_property
    def names_of(self) -> tuple[tuple[str, ...], ...]:
        """Names of each feature's columns."""
        pairs = zip(self.features, self.learned, strict=True)
        return tuple(feature.how.names(feature.name, learned) for feature, learned in pairs)

    @property
    def names(self) -> tuple[str, ...]:
        """Of all columns."""
        return tuple(name for names in self.names_of for name in names)

    @property
    def owners(self) -> tuple[str, ...]:
        """The feature that each column belongs to."""
        return tuple(name for name, columns in zip(self.chosen, self.names_of, strict=True) for _ in columns)

    def matrix(self, view: SessionsView) -> np.ndarray:
        """Return (n, columns) float64 of a view that is cut at the step; NaN where there is no value."""
        pairs = zip(self.features, self.learned, strict=True)
        return np.hstack(
            [np.empty((len(view), 0)), *(one.how.values(view, learned) for one, learned in pairs)]
        )


def fit_features(features: Sequence[Feature], view: SessionsView) -> FittedFeatures:
    """Fit features on training sessions alone."""
    if view.labels is None:
        raise UsageError("features are fitted on sessions whose outcome is known", "give a view with labels")
    for feature in features:
        if missing := [name for name in feature.columns if name not in view.columns]:
            raise UsageError(
                f"the feature {feature.name} needs the column {missing[0]!r}, which these sessions do not have",
                f"there are: {', '.join(view.columns) or 'none'}",
            )
    kinds: dict[str, ColumnKind] = {
        one.name: "text" if isinstance(one.how, OneHot) else "number"
        for one in features
        if one not in _DECLARED
    }
    learned = tuple(feature.how.learn(view) for feature in features)
    fitted = FittedFeatures(tuple(feature.name for feature in features), learned, kinds)
    vars(fitted)["features"] = tuple(features)  # what the cached property would look up
    return fitted
