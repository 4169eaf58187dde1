"""A feature: what it is, when it is known, what it learns of training sessions, and how it is computed.

Some features learn parameters (chains of pages, a device's conversion rate), on training sessions alone, inside each
fold. What is learned is plain data, so fitted features can be stored and compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from diptych.commerce.purchase_intent.features.view import NOTHING, SessionsView
from diptych.core.errors import UsageError
from diptych.core.registry import Registry

ColumnKind = Literal["number", "text"]

MOST_CATEGORIES = 50
"""The most frequent ones have columns: a log may call every campaign a channel of its own."""

WEIGHT = 20.0
"""m: sessions at the rate of all that every category is taken to have had more."""

ABSENT = -1
"""The code of no state at all: before a sequence begins, and behind its end."""

SMOOTHING = 1.0
"""Sessions that every transition is taken to have had more."""


@dataclass(frozen=True)
class MarkovRatio:
    """Tell which of two Markov chains a sequence is more likely of: that of buyers or that of all others.

    The thesis names a page sequence score and a device sequence score and gives no formula; this one is ours. From
    START on, every transition a → b adds ln P₁(b | a) − ln P₀(b | a), where

        P_c(b | a) = (n_c(a, b) + s) / (n_c(a, ·) + s·V)

    with the transitions n_c of training sessions of class c, smoothing s and the V states that training sessions
    have been in. A state that was not among them adds nothing, and neither does the step away from it: nothing is
    known of it. Otherwise the class with fewer sessions, whose counts are smaller, would claim every novelty.

    Attributes:
        transitions: those that occurred: from (0 is START), to, others', buyers'.
    """

    states: tuple[str, ...]  # names, in the order of their codes
    transitions: tuple[tuple[int, int, int, int], ...]
    smoothing: float = SMOOTHING  # s

    @cached_property
    def counts(self) -> np.ndarray:
        """(states + 1, states, 2) int64 transitions of others and of buyers; row 0 is START."""
        counts = np.zeros((len(self.states) + 1, len(self.states), 2), dtype=np.int64)
        rows = np.array(self.transitions, dtype=np.int64).reshape(-1, 4)
        counts[rows[:, 0], rows[:, 1]] = rows[:, 2:]
        return counts

    @cached_property
    def _table(self) -> np.ndarray:
        """(states + 2, states + 1) what every transition adds; the last row and column: of states not seen."""
        n = len(self.states)
        rows = self.counts.sum(axis=1, keepdims=True) + self.smoothing * max(1, n)
        logs = np.log(self.counts + self.smoothing) - np.log(rows)
        table = np.zeros((n + 2, n + 1))
        table[: n + 1, :n] = logs[..., 1] - logs[..., 0]
        return table

    def gains(self, codes: np.ndarray) -> np.ndarray:
        """Return what each state adds to its sequence's score: (n, length) float64, 0 where there is no state.

        Args:
            codes: (n, length) int64 of ``states``; their number for an unknown one, :data:`ABSENT` for none.
        """
        added: np.ndarray = self._table[_transitions(codes)]
        added[codes == ABSENT] = 0.0
        return added

    def scores(self, codes: np.ndarray) -> np.ndarray:
        """Return (n,) log-likelihood ratios: positive where buyers are likelier."""
        total: np.ndarray = self.gains(codes).sum(axis=1)
        return total


def fit_markov(
    codes: np.ndarray, labels: np.ndarray, names: Sequence[str], smoothing: float = SMOOTHING
) -> MarkovRatio:
    """Count the transitions of training sequences.

    Args:
        codes: (n, length) int64 codes in ``names``, :data:`ABSENT` where there is no state.
        labels: (n,) bool, whose sequences are buyers'.
    """
    seen = np.unique(codes[codes != ABSENT])
    dense = np.full(len(names) + 1, ABSENT, dtype=np.int64)  # the last is that of ABSENT, -1
    dense[seen] = np.arange(len(seen))
    codes = dense[codes]
    before, after = _transitions(codes)
    there = codes != ABSENT
    both = np.zeros((len(seen) + 1, len(seen), 2), dtype=np.int64)
    for label in (0, 1):
        chosen = there & (labels == label)[:, None]
        np.add.at(both[..., label], (before[chosen], after[chosen]), 1)
    occurred = np.argwhere(both.any(axis=2)).tolist()
    transitions = tuple((a, b, *both[a, b].tolist()) for a, b in occurred)
    return MarkovRatio(tuple(names[code] for code in seen), transitions, smoothing)


def _transitions(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, length) rows of a table whose row 0 is START, and its columns; anything where a state is absent."""
    before = np.zeros_like(codes)
    before[:, 1:] = codes[:, :-1] + 1  # ABSENT + 1 is START
    return before, np.maximum(codes, 0)


Learned = None | tuple[str, ...] | tuple[tuple[str, int, int], ...] | MarkovRatio
"""Nothing, categories, (category, buyers, sessions) of each, or chains."""


class _Places(dict[str, int]):
    def __missing__(self, name: str) -> int:
        return -1


def numbered(texts: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """(n,) int64: the place of each text in ``names``, -1 where it has none."""
    places = _Places((name, number) for number, name in enumerate(names))
    return np.fromiter(map(places.__getitem__, texts.tolist()), np.int64, len(texts))


@dataclass(frozen=True)
class Plain:
    """Columns that need no parameters."""

    compute: Callable[[SessionsView], np.ndarray]  # (n,) or (n, columns) of a view
    parts: tuple[str, ...] = ("",)  # of the feature's columns, appended to its name

    def learn(self, view: SessionsView) -> None:
        """Learn nothing."""

    def names(self, feature: str, learned: Any) -> tuple[str, ...]:
        """Return the columns' names."""
        return tuple(feature + part for part in self.parts)

    def values(self, view: SessionsView, learned: Any) -> np.ndarray:
        """(n, columns) float64."""
        return self.compute(view).astype(np.float64).reshape(len(view), len(self.parts))


@dataclass(frozen=True)
class OneHot:
    """A column per category of a text, as ``channel=paid``; what training sessions had rarely or never is 0 in all."""

    column: str

    def learn(self, view: SessionsView) -> tuple[str, ...]:
        """Return the most frequent categories, sorted by name."""
        counts = Counter(view.columns[self.column].tolist())
        counts.pop(NOTHING, None)
        return tuple(sorted(sorted(counts, key=lambda name: (-counts[name], name))[:MOST_CATEGORIES]))

    def names(self, feature: str, learned: Any) -> tuple[str, ...]:
        """Return the columns' names."""
        return tuple(f"{feature}={category}" for category in learned)

    def values(self, view: SessionsView, learned: Any) -> np.ndarray:
        """(n, categories) of 0 and 1."""
        codes = numbered(view.columns[self.column], learned)
        hot = np.zeros((len(view), len(learned)))
        known = np.flatnonzero(codes >= 0)
        hot[known, codes[known]] = 1.0
        return hot


@dataclass(frozen=True)
class SmoothedRate:
    """How often sessions of a category end in a purchase, drawn to the rate of all where there are few of them.

        (buyers + m·p) / (sessions + m)

    of training sessions, with p the rate of all of them and m = 20 (ours; the thesis gives no formula). A category
    that was not among them has the rate p; no category has no rate.
    """

    column: str

    def learn(self, view: SessionsView) -> tuple[tuple[str, int, int], ...]:
        """Count buyers and sessions of each category."""
        texts = view.columns[self.column]
        categories = sorted(set(texts.tolist()) - {NOTHING})
        codes = numbered(texts, categories) + 1
        sessions = np.bincount(codes, minlength=len(categories) + 1)[1:]
        buyers = np.bincount(codes[view.labels], minlength=len(categories) + 1)[1:]
        return tuple(zip(categories, buyers.tolist(), sessions.tolist(), strict=True))

    def names(self, feature: str, learned: Any) -> tuple[str, ...]:
        """Return the one column's name."""
        return (feature,)

    def values(self, view: SessionsView, learned: Any) -> np.ndarray:
        """(n, 1); NaN where there is no category."""
        categories, buyers, sessions = ([row[place] for row in learned] for place in range(3))
        overall = sum(buyers) / max(1, sum(sessions))
        counted = np.array([*sessions, 0]) + WEIGHT
        rates = (np.array([*buyers, 0]) + WEIGHT * overall) / counted  # the last: of categories not seen
        texts = view.columns[self.column]
        values: np.ndarray = rates[numbered(texts, categories)]
        values[texts == NOTHING] = np.nan
        return values[:, None]


@dataclass(frozen=True)
class Chains:
    """Score of a sequence of states by :class:`MarkovRatio`.

    Attributes:
        codes: (n, length) states of a view as codes of fitted chains.
    """

    fit: Callable[[SessionsView], MarkovRatio]  # chains of training sessions
    codes: Callable[[SessionsView, tuple[str, ...]], np.ndarray]
    known: str = ""  # (n,) column that is NaN where there is no sequence, if any

    def learn(self, view: SessionsView) -> MarkovRatio:
        """Count the transitions."""
        return self.fit(view)

    def names(self, feature: str, learned: Any) -> tuple[str, ...]:
        """Return the one column's name."""
        return (feature,)

    def values(self, view: SessionsView, learned: Any) -> np.ndarray:
        """(n, 1); NaN where no sequence is known."""
        scores: np.ndarray = learned.scores(self.codes(view, learned.states))
        if self.known:
            scores[np.isnan(view.columns[self.known])] = np.nan
        return scores[:, None]


@dataclass(frozen=True)
class Feature:
    """One row of thesis Table 6.7, or another column.

    Attributes:
        name: e.g. ``dwell-mean``.
        label: as the thesis prints it.
        description: the formula in one line; what the thesis leaves open is said to be ours.
        group: of the ``session`` itself, or of the visitor's ``history``.
        columns: what it needs of a view's columns.
        how: what it learns and how it is computed.
        dynamic: whether it may change while the session runs.
        baseline: whether it is in the baseline set.
        default: whether it is in the extended set by default; others have to be asked for.
    """

    name: str
    label: str
    description: str
    group: Literal["session", "history"]
    columns: tuple[str, ...]
    how: Plain | OneHot | SmoothedRate | Chains
    dynamic: bool = False
    baseline: bool = False
    default: bool = True


FEATURES: Registry[Feature] = Registry("feature", "diptych.commerce.purchase_intent.features.kinds")
"""All features."""


def column_feature(name: str, kind: ColumnKind) -> Feature:
    """Return the feature that is a column of a table which brings its own; it is in no registry."""
    text = "the column as it is"
    if kind == "number":
        return Feature(name, name, text, "session", (name,), Plain(lambda view: view.columns[name]))
    return Feature(
        name,
        name,
        f"{text}; one column per category of the training sessions",
        "session",
        (name,),
        OneHot(name),
    )


@dataclass(frozen=True)
class FittedFeatures:
    """Several features of one view, side by side.

    Attributes:
        chosen: their names, in the order of their columns.
        learned: each one's parameters.
        kinds: of features that are columns of their own table, by name; empty for declared ones.
    """

    chosen: tuple[str, ...]
    learned: tuple[Learned, ...]
    kinds: dict[str, ColumnKind]

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The declarations."""
        kinds = self.kinds
        return tuple(
            column_feature(name, kinds[name]) if name in kinds else FEATURES.get(name) for name in self.chosen
        )

    @cached_property
    def names_of(self) -> tuple[tuple[str, ...], ...]:
        """Names of each feature's columns."""
        pairs: Any = zip(self.features, self.learned, strict=True)
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
        """(n, columns) float64 of a view that is cut at the step; NaN where there is no value."""
        matrix = np.empty((len(view), len(self.names)))
        at = 0
        pairs: Any = zip(self.features, self.learned, self.names_of, strict=True)
        for feature, learned, names in pairs:
            matrix[:, at : at + len(names)] = feature.how.values(view, learned)
            at += len(names)
        return matrix


def fit_features(features: Sequence[Feature], view: SessionsView) -> FittedFeatures:
    """Fit features on training sessions alone."""
    if view.labels is None:
        raise UsageError("features are fitted on sessions whose outcome is known", "give a view with labels")
    for feature in features:
        for name in feature.columns:
            if name not in view.columns:
                raise UsageError(
                    f"the feature {feature.name} needs the column {name!r}, which these sessions do not have",
                    f"there are: {', '.join(view.columns) or 'none'}",
                )
    declared = list(FEATURES)
    kinds: dict[str, ColumnKind] = {
        feature.name: "text" if isinstance(feature.how, OneHot) else "number"
        for feature in features
        if not any(feature is one for one in declared)
    }
    learned = tuple(feature.how.learn(view) for feature in features)
    fitted = FittedFeatures(tuple(feature.name for feature in features), learned, kinds)
    vars(fitted)["features"] = tuple(features)  # what the cached property would look up
    return fitted
