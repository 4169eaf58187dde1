"""Features of tables that bring their own columns: each column as it is, a number or one-hot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from diptych.commerce.purchase_intent.features.declaration import Feature
from diptych.commerce.purchase_intent.features.view import NOTHING, SessionsView
from diptych.core.errors import UsageError

MOST_CATEGORIES = 50
"""The most frequent ones have columns: a log may call every campaign a channel of its own."""


@dataclass(frozen=True)
class Categories:
    """One-hot columns of a text.

    What was not among the training sessions, or was rare among them, is 0 in all columns.

    Attributes:
        feature: its name, before every column's.
        column: of the view.
        categories: in the order of their columns.
    """

    feature: str
    column: str
    categories: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """``channel=paid``, …"""
        return tuple(f"{self.feature}={category}" for category in self.categories)

    def values(self, view: SessionsView) -> np.ndarray:
        """(n, categories) of 0 and 1."""
        codes = numbered(view.columns[self.column], self.categories)
        hot = np.zeros((len(view), len(self.categories)))
        known = np.flatnonzero(codes >= 0)
        hot[known, codes[known]] = 1.0
        return hot

    def to_dict(self) -> dict[str, Any]:
        """The categories."""
        return {"categories": list(self.categories)}


@dataclass(frozen=True)
class OneHot:
    """How a text becomes columns; :meth:`fit` and :meth:`load` are what a declaration asks for.

    Attributes:
        feature: its name.
        column: of the view.
    """

    feature: str
    column: str

    def fit(self, view: SessionsView) -> Categories:
        """The most frequent categories, sorted by name."""
        counts = Counter(view.columns[self.column].tolist())
        counts.pop(NOTHING, None)
        frequent = sorted(counts, key=lambda name: (-counts[name], name))[:MOST_CATEGORIES]
        return Categories(self.feature, self.column, tuple(sorted(frequent)))

    def load(self, values: dict[str, Any]) -> Categories:
        """The categories that were kept."""
        return Categories(self.feature, self.column, tuple(values["categories"]))


class _Places(dict[str, int]):
    def __missing__(self, name: str) -> int:
        return -1


def numbered(texts: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """(n,) int64: the place of each text in ``names``, -1 where it has none."""
    places = _Places((name, number) for number, name in enumerate(names))
    return np.fromiter(map(places.__getitem__, texts.tolist()), np.int64, len(texts))


@dataclass(frozen=True)
class Plain:
    """A feature that needs no fitting.

    Its methods :meth:`fit` and :meth:`load` are what a declaration asks for; both give the object itself.

    Attributes:
        names: of its columns.
        compute: (n,) or (n, columns) of a view.
    """

    names: tuple[str, ...]
    compute: Callable[[SessionsView], np.ndarray]

    def fit(self, view: SessionsView) -> Plain:
        """Nothing is learned."""
        return self

    def load(self, values: dict[str, Any]) -> Plain:
        """Nothing was kept."""
        return self

    def values(self, view: SessionsView) -> np.ndarray:
        """(n, columns) float64."""
        return self.compute(view).astype(np.float64).reshape(len(view), len(self.names))

    def to_dict(self) -> dict[str, Any]:
        """Nothing."""
        return {}


def column_values(name: str) -> Callable[[SessionsView], np.ndarray]:
    """The numbers of a view's column."""
    return lambda view: view.columns[name]


ColumnKind = Literal["number", "text"]


@dataclass(frozen=True)
class ColumnFeature(Feature):
    """A feature that is one column of a view; not in the registry, for only its table knows it.

    Attributes:
        kind: whether the column is a number or a text.
    """

    kind: ColumnKind = "number"


def column_feature(name: str, kind: ColumnKind) -> ColumnFeature:
    """The feature of the view's column ``name``."""
    how = Plain((name,), column_values(name)) if kind == "number" else OneHot(name, name)
    one_hot = "; one column per category of the training sessions"
    return ColumnFeature(
        name=name,
        label=name,
        description="the column as it is" + ("" if kind == "number" else one_hot),
        group="session",
        dynamic=False,
        baseline=False,
        columns=(name,),
        fit=how.fit,
        load=how.load,
        kind=kind,
    )


# How often sessions of a category end in a purchase, drawn to the rate of all where there are few of them.
#
#     (buyers + m·p) / (sessions + m)
#
# of training sessions, with p the rate of all of them and m = 20 (ours; the thesis gives no formula). A category
# that was not among them has the rate p.


WEIGHT = 20.0
"""m: sessions at the rate of all that every category is taken to have had more."""


@dataclass(frozen=True)
class Rates:
    """Smoothed rates by category; NaN where there is no category.

    Attributes:
        names: of the one column.
        column: of the view.
        categories: sorted by name.
        buyers: of each.
        sessions: of each.
    """

    names: tuple[str, ...]
    column: str
    categories: tuple[str, ...]
    buyers: tuple[int, ...]
    sessions: tuple[int, ...]

    def values(self, view: SessionsView) -> np.ndarray:
        """(n, 1)."""
        overall = sum(self.buyers) / max(1, sum(self.sessions))
        counted = np.array([*self.sessions, 0]) + WEIGHT
        rates = (np.array([*self.buyers, 0]) + WEIGHT * overall) / counted  # the last: of categories not seen
        texts = view.columns[self.column]
        values: np.ndarray = rates[numbered(texts, self.categories)]
        values[texts == NOTHING] = np.nan
        return values[:, None]

    def to_dict(self) -> dict[str, Any]:
        """[category, buyers, sessions] of each."""
        rows = zip(self.categories, self.buyers, self.sessions, strict=True)
        return {"rates": [list(row) for row in rows]}


@dataclass(frozen=True)
class SmoothedRate:
    """How rates are counted; :meth:`fit` and :meth:`load` are what a declaration asks for.

    Attributes:
        feature: its name, and that of its column.
        column: of the view.
    """

    feature: str
    column: str

    def fit(self, view: SessionsView) -> Rates:
        """Count the training sessions.

        Raises:
            UsageError: nobody knows how they ended.
        """
        if view.labels is None:
            raise UsageError("rates need sessions whose outcome is known", "give a view with labels")
        texts = view.columns[self.column]
        categories = tuple(sorted(set(texts.tolist()) - {NOTHING}))
        codes = numbered(texts, categories) + 1
        sessions = np.bincount(codes, minlength=len(categories) + 1)[1:]
        buyers = np.bincount(codes[view.labels], minlength=len(categories) + 1)[1:]
        return Rates(
            (self.feature,), self.column, categories, tuple(buyers.tolist()), tuple(sessions.tolist())
        )

    def load(self, values: dict[str, Any]) -> Rates:
        """The counts that were kept."""
        rows = values["rates"]
        categories, buyers, sessions = (tuple(row[place] for row in rows) for place in range(3))
        return Rates((self.feature,), self.column, categories, buyers, sessions)
