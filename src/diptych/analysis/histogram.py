"""How gradient weights are distributed: a histogram on a logarithmic scale, filled batch by batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_LOWEST, _HIGHEST, _PER_DECADE = -8, 4, 5


def _edges() -> np.ndarray:
    return 10.0 ** (np.arange(_LOWEST * _PER_DECADE, _HIGHEST * _PER_DECADE + 1) / _PER_DECADE)


@dataclass(eq=False)
class WeightHistogram:
    """Weights |w| ≥ 0 of one kind of candidate, five bins to the power of ten.

    Attributes:
        queries: how many queries the weights came from.
        zeros: weights that are exactly 0.
        counts: (62,) weights below 10⁻⁸ but not 0, in each of the 60 bins, and above 10⁴; a weight on
            an edge is in the bin above it.
        sums: (62,) the same weights summed.
    """

    queries: int = 0
    zeros: int = 0
    counts: np.ndarray = field(default_factory=lambda: np.zeros(len(_edges()) + 1, dtype=np.int64))
    sums: np.ndarray = field(default_factory=lambda: np.zeros(len(_edges()) + 1))

    @property
    def edges(self) -> np.ndarray:
        """(61,) the edges between the bins."""
        return _edges()

    @property
    def candidates(self) -> int:
        """How many weights were added, zeros too."""
        return self.zeros + int(self.counts.sum())

    def add(self, weights: np.ndarray, queries: int) -> None:
        """Count the weights of one batch.

        Args:
            weights: (n,) at least 0.
        """
        weights = np.asarray(weights, dtype=np.float64)
        nonzero = weights[weights > 0]
        place = np.searchsorted(_edges(), nonzero, side="right")
        self.queries += queries
        self.zeros += len(weights) - len(nonzero)
        self.counts += np.bincount(place, minlength=len(self.counts))
        self.sums += np.bincount(place, weights=nonzero, minlength=len(self.sums))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "queries": self.queries,
            "zeros": self.zeros,
            "edges": self.edges.tolist(),
            "counts": self.counts.tolist(),
            "sums": self.sums.tolist(),
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> WeightHistogram:
        """The inverse of :meth:`to_dict`."""
        return cls(given["queries"], given["zeros"], np.array(given["counts"]), np.array(given["sums"]))
