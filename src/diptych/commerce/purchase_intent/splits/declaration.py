"""A way of telling training from test sessions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from diptych.core.registry import Registry


@dataclass(frozen=True)
class SplitInput:
    """What a split may look at: everything (n,).

    Attributes:
        labels: bool.
        persons: int64 numbers of who it was: equal for sessions of one person.
        start_us, end_us: times.
    """

    labels: np.ndarray
    persons: np.ndarray
    start_us: np.ndarray
    end_us: np.ndarray

    def take(self, rows: np.ndarray) -> SplitInput:
        """Some of the sessions."""
        return SplitInput(self.labels[rows], self.persons[rows], self.start_us[rows], self.end_us[rows])


@dataclass(frozen=True)
class Fold:
    """Rows to train on and rows to test on, int64, rising, disjoint."""

    train: np.ndarray
    test: np.ndarray


@dataclass(frozen=True)
class Split:
    """One way.

    Attributes:
        name: ``random``, ``grouped`` or ``time``.
        description: one line, with what it lets leak.
        folds: from (input, number of folds, seed).
        default_folds: how many when nobody says.
        shares_persons: whether sessions of one person may be on both sides of a fold.
    """

    name: str
    description: str
    folds: Callable[[SplitInput, int, int], list[Fold]]
    default_folds: int = 10
    shares_persons: bool = True


SPLITS: Registry[Split] = Registry("split", "diptych.commerce.purchase_intent.splits.kinds")
"""All ways; each is declared in a file of its own."""
