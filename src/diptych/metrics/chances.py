"""What happens to the first positive of a tie group when every order is equally likely.

A group of ``negatives`` and ``positives`` items starts after ``before`` others. The place of its first
positive follows the negative hypergeometric distribution.
"""

from __future__ import annotations

import numpy as np


def found_within(
    before: np.ndarray, negatives: np.ndarray, positives: np.ndarray, cutoff: int | np.ndarray
) -> np.ndarray:
    """Probability that the group's first positive is among the first ``cutoff`` of the gallery.

    1 - C(negatives, x) / C(negatives + positives, x) for the x = cutoff - before places that are open.

    Returns:
        (g,) float64; exactly 0 or 1 where no order is open.
    """
    total = negatives + positives
    places = np.clip(np.asarray(cutoff) - before, 0, total)
    missed = np.ones(len(places))
    # The same product has `places` factors or, read the other way, `positives` factors.
    other, steps = np.maximum(places, positives), np.minimum(places, positives)
    for step in range(int(steps.max(initial=0))):
        factor = (total - other - step) / np.maximum(total - step, 1)
        missed = np.where(step < steps, missed * np.maximum(factor, 0.0), missed)
    return 1.0 - missed


def expected_first_place(before: np.ndarray, negatives: np.ndarray, positives: np.ndarray) -> np.ndarray:
    """Expected rank, from 1, of the group's first positive."""
    expected: np.ndarray = before + 1 + negatives / (positives + 1)
    return expected


def expected_reciprocal(
    before: np.ndarray, negatives: np.ndarray, positives: np.ndarray, cutoff: int | None = None
) -> np.ndarray:
    """Expected 1/rank of the group's first positive, 0 beyond ``cutoff``.

    Equal groups are computed once; the time is bounded by the largest group or the cut-off.
    """
    groups, which = np.unique(np.stack([before, negatives, positives]), axis=1, return_inverse=True)
    before, negatives, positives = groups
    total = np.zeros(groups.shape[1])
    chance = positives / (negatives + positives)  # that the first positive takes the step-th open place
    most = int(negatives.max(initial=0))
    for step in range(most + 1 if cutoff is None else min(most + 1, cutoff)):
        rank = before + 1 + step
        total += np.where((cutoff is None) | (rank <= (cutoff or 0)), chance / rank, 0.0)
        chance = chance * (negatives - step) / np.maximum(negatives + positives - step - 1, 1)
    values: np.ndarray = total[which.reshape(-1)]
    return values
