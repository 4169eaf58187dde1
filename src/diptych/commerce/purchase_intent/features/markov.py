"""Which of two Markov chains a sequence is more likely of: that of buyers or that of all others.

The thesis names a page sequence score and a device sequence score and gives no formula; this one is ours. From
START on, every transition a → b adds ln P₁(b | a) − ln P₀(b | a), where

    P_c(b | a) = (n_c(a, b) + s) / (n_c(a, ·) + s·V)

with the transitions n_c of training sessions of class c, smoothing s and the V states that training sessions
have been in. A state that was not among them adds nothing, and neither does the step away from it: nothing is
known of it. Otherwise the class with fewer sessions, whose counts are smaller, would claim every novelty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from diptych.core.errors import StorageError

ABSENT = -1
"""The code of no state at all: before a sequence begins, and behind its end."""

SMOOTHING = 1.0
"""Sessions that every transition is taken to have had more."""


@dataclass(frozen=True, eq=False)
class MarkovRatio:
    """Two chains over the same states.

    Attributes:
        states: names, in the order of their codes.
        counts: (states + 1, states, 2) int64 transitions of others and of buyers; row 0 is START.
        smoothing: s.
    """

    states: tuple[str, ...]
    counts: np.ndarray
    smoothing: float = SMOOTHING

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
        """What each state adds to its sequence's score.

        Args:
            codes: (n, length) int64 of ``states``; their number for an unknown one, :data:`ABSENT` for none.

        Returns:
            (n, length) float64, 0 where there is no state.
        """
        added: np.ndarray = self._table[_transitions(codes)]
        added[codes == ABSENT] = 0.0
        return added

    def scores(self, codes: np.ndarray) -> np.ndarray:
        """(n,) log-likelihood ratios: positive where buyers are likelier."""
        total: np.ndarray = self.gains(codes).sum(axis=1)
        return total

    def to_dict(self) -> dict[str, Any]:
        """States and the transitions that occurred: [from, to, others', buyers'], from 0 is START."""
        occurred = np.argwhere(self.counts.any(axis=2))
        return {
            "smoothing": self.smoothing,
            "states": list(self.states),
            "transitions": [[int(a), int(b), *map(int, self.counts[a, b])] for a, b in occurred],
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> MarkovRatio:
        """The chains that ``to_dict`` described."""
        states = tuple(map(str, values["states"]))
        counts = np.zeros((len(states) + 1, len(states), 2), dtype=np.int64)
        smoothing = float(values["smoothing"])
        rows = np.array(values["transitions"], dtype=np.int64).reshape(-1, 4)
        if (rows < 0).any() or not 0 < smoothing < np.inf:
            raise StorageError("a chain has a count below 0, or is not smoothed", "fit the features again")
        counts[rows[:, 0], rows[:, 1]] = rows[:, 2:]
        return cls(states, counts, smoothing)


def fit_markov(
    codes: np.ndarray,
    labels: np.ndarray,
    names: Sequence[str],
    smoothing: float = SMOOTHING,
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
    width = len(seen) + 1
    before, after = _transitions(codes)
    there = codes != ABSENT
    both = np.zeros((width, len(seen), 2), dtype=np.int64)
    for label in (False, True):
        chosen = there & (labels == label)[:, None]
        cells = before[chosen] * max(1, len(seen)) + after[chosen]
        both[..., int(label)] = np.bincount(cells, minlength=width * len(seen)).reshape(width, len(seen))
    return MarkovRatio(tuple(names[code] for code in seen), both, smoothing)


def _transitions(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, length) rows of a table whose row 0 is START, and its columns; anything where a state is absent."""
    before = np.zeros_like(codes)
    before[:, 1:] = codes[:, :-1] + 1  # ABSENT + 1 is START
    return before, np.maximum(codes, 0)
