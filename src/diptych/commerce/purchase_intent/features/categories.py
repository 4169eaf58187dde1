"""One column per category, 1 where a session is of it: one-hot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych.commerce.purchase_intent.features.columns import NOTHING
from diptych.commerce.purchase_intent.features.view import SessionsView

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
