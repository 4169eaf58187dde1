"""Labels that say nothing about the sessions they are laid on, and what chance makes of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def permuted_by_person(labels: np.ndarray, persons: np.ndarray, seed: Sequence[int]) -> np.ndarray:
    """Lay the labels of people on other people's sessions.

    The labels of all sessions, person after person in one random order, become those of the sessions in another:
    as many purchases as before, mostly together where they were one person's, and independent of who it is.

    Args:
        labels: (n,) bool.
        persons: (n,) int64.

    Returns:
        (n,) bool.
    """
    people, place = np.unique(persons, return_inverse=True)
    random = np.random.default_rng(list(seed))
    taken, laid = (np.argsort(random.permutation(len(people))[place], kind="stable") for _ in range(2))
    permuted = np.empty_like(labels)
    permuted[laid] = labels[taken]
    return permuted


def mean_interval(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """Student's interval of the mean of a few independent values."""
    from scipy import stats

    given = np.asarray(values, dtype=np.float64)
    half = stats.t.ppf((1 + confidence) / 2, len(given) - 1) * given.std(ddof=1) / np.sqrt(len(given))
    return float(given.mean() - half), float(given.mean() + half)
