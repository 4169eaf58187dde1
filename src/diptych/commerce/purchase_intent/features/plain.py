"""Features without parameters: a number, or several, that a view already says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych.commerce.purchase_intent.features.view import SessionsView


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
