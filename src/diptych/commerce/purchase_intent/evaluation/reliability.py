"""Reliability: do as many sessions end in a purchase as the probabilities say?

Bins hold equally many sessions, so that rare high probabilities and the many low ones are seen with the same
precision; sessions of equal probability stay together, so that a bin may be larger and bins may be fewer.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

BINS = 10


def reliability(probabilities: np.ndarray, labels: np.ndarray, bins: int = BINS) -> list[dict[str, Any]]:
    """Rows {low, high, n, mean_score, share}, lowest first.

    Args:
        probabilities: (n,) in [0, 1].
        labels: (n,) bool.
    """
    order = np.argsort(probabilities, kind="stable")
    ordered, bought = probabilities[order], labels[order]
    n = len(ordered)
    wanted = [n * one // bins for one in range(1, bins)]
    # A cut within equal probabilities moves behind the last of them.
    cuts = np.unique(np.searchsorted(ordered, ordered[[cut - 1 for cut in wanted if cut]], side="right"))
    edges = [0, *(int(cut) for cut in cuts if cut < n), n]
    return [
        {
            "low": float(ordered[begin]),
            "high": float(ordered[end - 1]),
            "n": end - begin,
            "mean_score": float(ordered[begin:end].mean()),
            "share": float(bought[begin:end].mean()),
        }
        for begin, end in pairwise(edges)
        if end > begin
    ]
