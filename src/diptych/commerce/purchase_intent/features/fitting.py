"""Views of sessions, as arrays, and the features of thesis Table 6.7 that are computed from them.

A million sessions of a log and the one session that runs just now are both a view, so that training and serving
cannot differ. A view of step k is cut first: what lies behind page k is not in it, so no feature can look there.
Encoders learn from training sessions only, inside each fold; what they learn is plain data, stored as JSON.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from diptych.commerce.logs.log import SECOND, read_columns
from diptych.core.errors import UsageError
from diptych.core.extras import require
from diptych.core.reading import read_toml
from diptych.core.registry import Registry

NOTHING = (
    ""  # the type of a page that was not opened, an earlier session that does not exist, an unknown visitor
)
OTHER_PAGE = "(other)"  # page types that are not among the most frequent
PURPOSE = "a table of features"


_COLUMNS = read_columns(Path(__file__).with_name("columns.toml"))
COLUMNS = _COLUMNS["session"] | _COLUMNS["history"]  # name → text or number
HISTORY_COLUMNS = tuple(_COLUMNS["history"])
EARLIER_DEVICES = tuple(name for name in HISTORY_COLUMNS if name.startswith("device_before_"))


@dataclass(frozen=True)
class SessionsView:
    """n sessions; pages begin at the left."""

    columns: Mapping[
        str, np.ndarray
    ]  # name → (n,) of what a start shows: str objects, or float64, NaN for none
    page_types: np.ndarray  # (n, steps) str objects, NOTHING where there is no page
    page_times: np.ndarray  # (n, steps) int64 microseconds; 0 where there is no page
    labels: np.ndarray | None = field(
        default=None, compare=False
    )  # (n,) bool: it ends in a purchase, if known
    # (n,) float64 pages opened before the first purchase, infinity without one; only fitting looks at it
    pages_before_purchase: np.ndarray | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.page_types)

    def take(self, rows: np.ndarray) -> Self:
        names = ("page_types", "page_times", "labels", "pages_before_purchase")
        taken = {name: one[rows] for name in names if (one := getattr(self, name)) is not None}
        return replace(self, columns={name: one[rows] for name, one in self.columns.items()}, **taken)

    def until(self, step: int) -> Self:
        return replace(self, page_types=self.page_types[:, :step], page_times=self.page_times[:, :step])

    def until_purchase(self) -> Self:
        """Return the view without the types of pages behind a purchase: none of them teaches what leads to one."""
        if self.pages_before_purchase is None:
            return self
        behind = np.arange(self.page_types.shape[1]) >= self.pages_before_purchase[:, None]
        return replace(self, page_types=np.where(behind, NOTHING, self.page_types))


def column(kind: str, n: int, values: Iterable[Any] | None = None) -> np.ndarray:
    """Return (n,) values of a column of that kind; without values NaN, or :data:`NOTHING`."""
    if kind == "number":
        return np.full(n, np.nan) if values is None else np.fromiter(values, np.float64)
    return text_array([NOTHING] * n if values is None else values)


def text_array(values: Iterable[str]) -> np.ndarray:
    return np.fromiter(values, dtype=object)


_MOST_CATEGORIES = 50  # with columns, the most frequent: a log may call every campaign a channel of its own
_WEIGHT = 20.0  # sessions at the rate of all that every category is taken to have had more


def _codes(texts: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Return the place of each text in ``names``: their number for another one, -1 for :data:`NOTHING`."""
    places = {name: number for number, name in enumerate(names)} | {NOTHING: -1}
    found = (places.get(text, len(names)) for text in texts.ravel().tolist())
    return np.fromiter(found, np.int64, texts.size).reshape(texts.shape)


@dataclass(frozen=True)
class OneHot:
    """A column per category of a text, as ``channel=paid``; what training sessions had rarely or never is 0 in all."""

    categories: tuple[str, ...]

    @classmethod
    def fit(cls, texts: np.ndarray, labels: np.ndarray) -> Self:
        counts = Counter(sorted(texts[texts != NOTHING].tolist()))
        return cls(tuple(sorted(name for name, _ in counts.most_common(_MOST_CATEGORIES))))

    def encode(self, texts: np.ndarray) -> np.ndarray:
        hot: np.ndarray = _codes(texts, self.categories)[:, None] == np.arange(len(self.categories))
        return hot


@dataclass(frozen=True)
class SmoothedRate:
    """The rate at which training sessions of a category end in a purchase: scikit-learn's TargetEncoder.

    That is (buyers + m·p) / (sessions + m), with p the rate of all of them and m = 20 (ours; the thesis gives no
    formula). A category that was not among them has the rate p; no category has no rate.
    """

    rates: dict[str, float]
    overall: float  # p

    @classmethod
    def fit(cls, texts: np.ndarray, labels: np.ndarray) -> Self:
        there = texts != NOTHING
        if not there.any():
            return cls({}, 0.0)
        encoders = require("sklearn.preprocessing", "commerce", "features of sessions")
        encoder = encoders.TargetEncoder(smooth=_WEIGHT, target_type="continuous")
        encoder.fit(texts[there, None], labels[there].astype(np.float64))
        rates = zip(encoder.categories_[0].tolist(), encoder.encodings_[0].tolist(), strict=True)
        return cls(dict(rates), float(encoder.target_mean_))

    def encode(self, texts: np.ndarray) -> np.ndarray:
        rates = self.rates | {NOTHING: np.nan}
        return np.array([rates.get(text, self.overall) for text in texts.tolist()])[:, None]


@dataclass(frozen=True)
class MarkovRatio:
    """Tell which of two Markov chains a sequence is more likely of: that of buyers or that of all others.

    The thesis names a page sequence score and a device sequence score and gives no formula; this one is ours. From
    START on, every transition a → b adds ln P₁(b | a) − ln P₀(b | a), where

        P_c(b | a) = (n_c(a, b) + s) / (n_c(a, ·) + s·V)

    with the transitions n_c of training sessions of class c, smoothing s and the V states that training sessions
    have been in. A state that was not among them adds nothing, and neither does the step away from it: otherwise the
    class with fewer sessions, whose counts are smaller, would claim every novelty.
    """

    states: tuple[str, ...]  # names, in the order of their codes
    transitions: tuple[tuple[int, int, int, int], ...]  # from (0 is START), to, others' and buyers' count
    smoothing: float = 1.0  # s

    @classmethod
    def fit(cls, sequences: np.ndarray, labels: np.ndarray) -> Self:
        """Count the transitions of (n, length) states, :data:`NOTHING` where there is none."""
        states = tuple(sorted(set(sequences.ravel().tolist()) - {NOTHING}))
        before, after = _steps(sequences, states)
        counts = np.zeros((len(states) + 1, len(states), 2), dtype=np.int64)
        there, of_buyers = after >= 0, np.broadcast_to(labels.astype(np.int64)[:, None], after.shape)
        np.add.at(counts, (before[there], after[there], of_buyers[there]), 1)
        occurred = np.argwhere(counts.any(axis=2)).tolist()
        return cls(states, tuple((a, b, *counts[a, b].tolist()) for a, b in occurred))

    @cached_property
    def _gains(self) -> np.ndarray:
        """(states + 2, states + 1) what every transition adds; 0 in the last row and column, of states not seen."""
        n = len(self.states)
        counts, gains = np.full((n + 1, n, 2), self.smoothing), np.zeros((n + 2, n + 1))
        for a, b, *of in self.transitions:
            counts[a, b] += of
        logs = np.log(counts) - np.log(counts.sum(axis=1, keepdims=True, initial=0.0 if n else 1.0))
        gains[: n + 1, :n] = logs[..., 1] - logs[..., 0]
        return gains

    def encode(self, sequences: np.ndarray) -> np.ndarray:
        """Return (n, 1) log-likelihood ratios, positive where buyers are likelier; NaN of no sequence."""
        before, after = _steps(sequences, self.states)
        there = after >= 0
        total = np.where(there, self._gains[before, np.maximum(after, 0)], 0.0).sum(axis=1)
        return np.where(there.any(axis=1), total, np.nan)[:, None]


def _steps(sequences: np.ndarray, states: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the state before every state, 0 is START, others one more than their code; and that state."""
    after = _codes(sequences, states)
    return np.insert(after + 1, 0, 0, axis=1)[:, :-1], after


Encoder = OneHot | SmoothedRate | MarkovRatio


@dataclass(frozen=True)
class Feature:
    """One row of thesis Table 6.7, or another column, as ``features.toml`` declares it."""

    name: str  # e.g. dwell-mean
    label: str  # as the thesis prints it
    description: str  # the formula in one line; ours where the thesis leaves it open
    columns: tuple[str, ...]  # what it needs of a view's
    values: Callable[[SessionsView], np.ndarray]  # (n,) or (n, length): numbers, or texts to encode
    encoder: type[Encoder] | None = None  # None: the values are the feature's columns
    parts: tuple[str, ...] = ("",)  # of the names of its columns
    dynamic: bool = False  # may change while the session runs
    baseline: bool = False  # in the baseline set
    default: bool = True  # in the extended set by default; others are named in FeatureOptions.also

    @property
    def group(self) -> Literal["session", "history"]:
        """Return its subject: the session itself, or the visitor."""
        return "history" if {*self.columns} & {*HISTORY_COLUMNS} else "session"

    def names(self, learned: Encoder | None) -> list[str]:
        parts = [f"={one}" for one in learned.categories] if isinstance(learned, OneHot) else self.parts
        return [self.name + part for part in parts]


def _devices(view: SessionsView) -> np.ndarray:
    found = np.stack([view.columns[one] for one in (*reversed(EARLIER_DEVICES), "device")], axis=1)
    found[np.isnan(view.columns["devices"])] = NOTHING  # the visitor's sessions are not known
    return found


def _dwells(view: SessionsView) -> tuple[np.ndarray, np.ndarray]:
    """Return (n,) mean and deviation of the seconds from a page to the next, k − 1 after k pages; NaN of none."""
    known = view.page_types[:, 1:] != NOTHING
    seconds = np.where(known, np.diff(view.page_times, axis=1), 0) / SECOND
    counts = np.where(known.any(axis=1), known.sum(axis=1), np.nan)
    mean = seconds.sum(axis=1) / counts
    apart = np.where(known, seconds - mean[:, None], 0.0)
    return mean, np.sqrt((apart**2).sum(axis=1) / counts)


def _is(values: np.ndarray, which: Any) -> np.ndarray:
    return np.where(np.isnan(values), np.nan, values == which)


def _column(name: str) -> Callable[[SessionsView], np.ndarray]:
    return lambda view: view.columns[name]


FEATURES: Registry[Feature] = Registry("feature", __name__)
_ENCODERS: Mapping[str, type[Encoder]] = {"one-hot": OneHot, "rate": SmoothedRate, "markov": MarkovRatio}
_VALUES: Mapping[str, Callable[[SessionsView], np.ndarray]] = {
    "dwell-mean": lambda view: _dwells(view)[0],
    "dwell-deviation": lambda view: _dwells(view)[1],
    "page-sequence-score": lambda view: view.page_types,
    "pages": lambda view: (view.page_types != NOTHING).sum(axis=1),
    "week-day": lambda view: _is(view.columns["start_dow"][:, None], np.arange(7)),
    "days-since-purchase": lambda view: np.stack(
        [view.columns["days_since_purchase"], _is(view.columns["orders"], 0)], axis=1
    ),
    "device-sequence-score": _devices,
    "switch-probability": lambda view: (view.columns["switches"] + 0.5) / (view.columns["pairs"] + 2),
    "hour-cyclic": lambda view: np.stack(
        [turn(view.columns["start_hour"] * (2 * np.pi / 24)) for turn in (np.sin, np.cos)], axis=1
    ),
}  # others are their column
_DECLARED = read_toml(Path(__file__).with_name("features.toml"))
for _name, _one in _DECLARED.items():
    _one |= {key: tuple(value) for key, value in _one.items() if isinstance(value, list)}
    _one |= {"values": _VALUES.get(_name) or _column(_one["columns"][0])}
    FEATURES.add(Feature(_name, encoder=_ENCODERS.get(_one.pop("encoder", "")), **_one))


def features_of(setting: str, feature_set: str, step: int, also: Sequence[str] = ()) -> list[Feature]:
    """Return the features of one cell, in the order of Table 6.7, others behind them."""
    known = [one for one in map(FEATURES.get, _DECLARED) if step or not one.dynamic]
    known = [one for one in known if setting != "anonymous" or one.group != "history"]
    if feature_set == "baseline":
        return [one for one in known if one.baseline]
    return [one for one in known if one.default or one.name in also]


def column_feature(name: str, is_text: bool) -> Feature:
    """Return the feature that is a column of a table which brings its own; it is in no registry."""
    text = "the column as it is" + "; one column per category of the training sessions" * is_text
    return Feature(name, name, text, (name,), _column(name), OneHot if is_text else None)


@dataclass(frozen=True)
class FittedFeatures:
    """Several features and what each has learned."""

    chosen: tuple[str, ...]  # their names, in the order of their columns
    learned: tuple[Encoder | None, ...]  # each one's fitted encoder

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        return tuple(
            FEATURES.get(name) if name in _DECLARED else column_feature(name, isinstance(learned, OneHot))
            for name, learned in zip(self.chosen, self.learned, strict=True)
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        pairs = zip(self.features, self.learned, strict=True)
        return tuple(name for feature, learned in pairs for name in feature.names(learned))

    @cached_property
    def owners(self) -> tuple[str, ...]:
        pairs = zip(self.features, self.learned, strict=True)
        return tuple(feature.name for feature, learned in pairs for _ in feature.names(learned))

    def matrix(self, view: SessionsView) -> np.ndarray:
        """Return (n, columns) float64 of a view that is cut at the step; NaN where there is no value."""
        parts = [np.empty((len(view), 0))]
        for feature, learned in zip(self.features, self.learned, strict=True):
            values = feature.values(view)
            encoded = values if learned is None else learned.encode(values)
            parts.append(encoded.astype(np.float64).reshape(len(view), len(feature.names(learned))))
        return np.hstack(parts)


def fit_features(features: Sequence[Feature], view: SessionsView) -> FittedFeatures:
    labels, known = view.labels, view.until_purchase()
    if labels is None:
        raise UsageError("features are fitted on sessions whose outcome is known", "give a view with labels")
    learned = (one.encoder.fit(one.values(known), labels) if one.encoder else None for one in features)
    fitted = FittedFeatures(tuple(feature.name for feature in features), tuple(learned))
    vars(fitted)["features"] = tuple(features)  # what the cached property would look up
    return fitted
