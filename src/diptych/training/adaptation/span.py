"""The space that a few rows span: maps learned from them change nothing outside of it.

So n pairs of rows of width d are learned from in min(2n, d) dimensions, without any approximation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Directions in which the rows extend less than this share of their longest are rounding errors.
_RANK = 1e-9


@dataclass(frozen=True, eq=False)
class Span:
    """An orthonormal basis.

    Attributes:
        basis: (d, q) float64.
    """

    basis: np.ndarray

    @classmethod
    def of(cls, *rows: np.ndarray) -> Span:
        """Return the span of all ``rows``, (n, d) each; of the whole space when there are d or more."""
        stacked = np.concatenate(rows)
        width = stacked.shape[1]
        if len(stacked) >= width:
            return cls(np.eye(width))
        _, lengths, directions = np.linalg.svd(stacked, full_matrices=False)
        return cls(directions[lengths > _RANK * lengths.max(initial=0.0)].T)

    @property
    def is_everything(self) -> bool:
        width, dimensions = self.basis.shape
        return bool(width == dimensions)

    def coordinates(self, rows: np.ndarray) -> np.ndarray:
        return rows if self.is_everything else rows @ self.basis

    def whole(self, inside: np.ndarray, outside: float) -> np.ndarray:
        """Return (d, d): the (q, q) matrix ``inside`` the span, ``outside`` times the identity beyond it."""
        if self.is_everything:
            return inside
        within = self.basis @ (inside - outside * np.eye(len(inside))) @ self.basis.T
        return np.asarray(within + outside * np.eye(len(self.basis)))
