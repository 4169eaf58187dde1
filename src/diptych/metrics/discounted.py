"""Discounted cumulative gain of gains at places: Järvelin and Kekäläinen, TOIS 2002; thesis Eq. 5.2."""

from __future__ import annotations

import numpy as np


def discounts(depth: int) -> np.ndarray:
    """(depth,) one over log2(place + 1), places counted from 1: 1, 0.63, 0.5, …"""
    weights: np.ndarray = 1.0 / np.log2(np.arange(2, depth + 2))
    return weights


def discounted_gain(gains: np.ndarray) -> np.ndarray:
    """(n,) sums of (n, places) gains, each divided by log2(place + 1)."""
    total: np.ndarray = gains @ discounts(gains.shape[1])
    return total


def normalised_gain(gains: np.ndarray, best: np.ndarray) -> np.ndarray:
    """(n,) discounted gain over the greatest that any order reaches: in [0, 1].

    A query whose best is 0 has nothing to find and counts as 0.

    Args:
        gains: (n, places).
        best: (n, places) the greatest gains there are, descending.
    """
    most = discounted_gain(best)
    ratio = np.divide(discounted_gain(gains), most, out=np.zeros(len(most)), where=most > 0)
    normalised: np.ndarray = np.minimum(ratio, 1.0)  # what rounding may add in the last digit
    return normalised
