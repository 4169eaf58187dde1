"""Curves of any length made readable: a running mean and a thinning that keeps the extremes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def running_mean(values: np.ndarray, window: int) -> np.ndarray:
    """The mean of each value and its neighbours, ``window`` of them in all, centred.

    At the ends it is the mean of the neighbours there are.

    Args:
        values: (n,).

    Returns:
        (n,) float64.
    """
    values = np.asarray(values, dtype=np.float64)
    half = window // 2
    rows = np.arange(len(values))
    low, high = np.maximum(rows - half, 0), np.minimum(rows + half + 1, len(values))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    result: np.ndarray = (sums[high] - sums[low]) / (high - low)
    return result


def thin(x: np.ndarray, y: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """At most about ``limit`` points of a curve: of each stretch its lowest and its highest, in order.

    A spike one step wide stays visible, which taking every k-th point would lose.

    Args:
        x: (n,) positions, rising.
        y: (n,) values.
    """
    x, y = np.asarray(x), np.asarray(y)
    if len(x) <= limit:
        return x, y
    edges = np.linspace(0, len(y), limit // 2, dtype=np.int64)
    kept = {0, len(y) - 1}
    for start, stop in pairwise(edges):
        kept.add(int(start + np.argmin(y[start:stop])))
        kept.add(int(start + np.argmax(y[start:stop])))
    rows = np.array(sorted(kept))
    return x[rows], y[rows]
