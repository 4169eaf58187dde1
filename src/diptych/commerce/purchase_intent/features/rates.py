"""How often sessions of a category end in a purchase, drawn to the rate of all where there are few of them.

    (buyers + m·p) / (sessions + m)

of training sessions, with p the rate of all of them and m = 20 (ours; the thesis gives no formula). A category
that was not among them has the rate p.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych.commerce.purchase_intent.features.categories import numbered
from diptych.commerce.purchase_intent.features.columns import NOTHING
from diptych.commerce.purchase_intent.features.view import SessionsView
from diptych.core.errors import UsageError

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
