"""Effect sizes: how far two samples lie apart, in standard deviations and as a share of pairs.

Sources: Cohen, Statistical power analysis for the behavioral sciences, 2nd edition, 1988 (d, and d_z of paired
values); Cliff, Dominance statistics, Psychological Bulletin 1993 (δ).
"""

from __future__ import annotations

import numpy as np

__all__ = ["cliffs_delta", "cohens_d", "placements"]


def cohens_d(
    mean: float | np.ndarray, other_mean: float | np.ndarray, variance: float | np.ndarray
) -> np.ndarray:
    """(``other_mean`` − ``mean``) / √``variance``; 0 where nothing is apart, NaN where nothing varies.

    Args:
        mean: of the first sample, or of several.
        other_mean: of the second.
        variance: pooled, of both; of the differences, the second less the first, for d_z.
    """
    apart = np.asarray(other_mean, dtype=np.float64) - mean
    spread = np.sqrt(np.maximum(np.asarray(variance, dtype=np.float64), 0))
    found = np.divide(apart, spread, out=np.full(np.broadcast(apart, spread).shape, np.nan), where=spread > 0)
    return np.where(apart == 0, 0.0, found)


def placements(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """For each of (n,) values: the share of (m,) others above it less the share below it; −1 to 1."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, values, side="left")
    not_above = np.searchsorted(ordered, values, side="right")
    apart: np.ndarray = (len(others) - not_above - below) / len(others)
    return apart


def cliffs_delta(values: np.ndarray, others: np.ndarray) -> float:
    """δ: of all pairs of a value and another, the share in which the other is greater less that in which it is less."""
    return float(placements(values, others).mean())
