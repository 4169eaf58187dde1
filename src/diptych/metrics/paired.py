"""Paired tests of a difference of means whose queries come in clusters: t-test and sign flips.

What is independent is an image with its captions, not a query, so both tests see one number per
cluster: how much it adds to the difference. With clusters of one size the t-test is the plain paired
t-test of the clusters' means; with others it is that of a ratio estimator's linearised residuals.

Sources: Cochran, Sampling Techniques, 3rd edition, 1977, section 6 (ratio estimators); Smucker, Allan
and Carterette, A comparison of statistical significance tests for information retrieval evaluation,
CIKM 2007 (randomisation by sign flips).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

_CHUNK_NUMBERS = 1 << 21
_TOLERANCE = 1e-9  # of the sum of absolute shares: what counts as equal between two orders of adding


@dataclass(frozen=True, eq=False)
class Shares:
    """What each cluster adds to one difference of means, and how far it is from its fair part.

    Attributes:
        parts: (clusters,) they add up to the difference.
        residuals: (clusters,) of mean 0; their spread is what the difference's error is made of.
        used: (clusters,) booleans: clusters that hold a query.
    """

    parts: np.ndarray
    residuals: np.ndarray
    used: np.ndarray

    @property
    def difference(self) -> float:
        """The difference of means."""
        return float(self.parts.sum())


def shares_of(differences: np.ndarray, cluster: np.ndarray, clusters: int) -> Shares:
    """The shares of one difference of means.

    Args:
        differences: (n,) one run's value less the other's, per query.
        cluster: (n,) the cluster of each query.
    """
    sums = np.bincount(cluster, weights=differences, minlength=clusters)
    counts = np.bincount(cluster, minlength=clusters)
    parts = sums / len(differences)
    residuals = parts - parts.sum() * counts / len(differences)
    return Shares(parts, residuals, counts > 0)


def t_test(folds: Sequence[Shares]) -> float | None:
    """Two-sided p-value of the mean over folds of a difference.

    Returns:
        None where a t-test says nothing: fewer than two clusters in a fold, or one and the same
        difference, not 0, in every cluster.
    """
    from scipy.special import stdtr

    difference = sum(fold.difference for fold in folds) / len(folds)
    if all(not np.any(fold.parts) for fold in folds):
        return 1.0
    sizes = [int(fold.used.sum()) for fold in folds]
    if min(sizes) < 2:
        return None
    # A fold's difference is a sum over C clusters; its variance is C times that of one residual.
    variance = sum(
        size / (size - 1) * float(np.sum(fold.residuals**2)) for fold, size in zip(folds, sizes, strict=True)
    )
    error = float(np.sqrt(variance)) / len(folds)
    if error <= _TOLERANCE * abs(difference):
        return None
    return float(2 * stdtr(sum(sizes) - len(sizes), -abs(difference) / error))


def _signs(clusters: int, flips: int, seed: int) -> Iterator[np.ndarray]:
    """(chunk, clusters) of ±1: every assignment where there are at most ``flips``, random ones else."""
    step = max(1, _CHUNK_NUMBERS // max(1, clusters))
    exact = clusters < 63 and 2**clusters <= flips
    random = np.random.default_rng(seed)
    total = 2**clusters if exact else flips
    for begin in range(0, total, step):
        rows = min(step, total - begin)
        if exact:
            bits = (np.arange(begin, begin + rows)[:, None] >> np.arange(clusters)) & 1
        else:
            bits = random.integers(0, 2, (rows, clusters), dtype=np.int8)
        yield 1.0 - 2.0 * bits


def randomisation_tests(parts: np.ndarray, flips: int, seed: int) -> np.ndarray:
    """Two-sided p-values: how often a difference as large comes of swapping the two runs at random.

    Each cluster's values are swapped between the runs or not, by a fair coin, for all differences at
    once. All 2**clusters swaps are taken where they are no more than ``flips``.

    Args:
        parts: (clusters, n) what each cluster adds to each of n differences.

    Returns:
        (n,) at least 1 / (flips + 1) where swaps are random: the one that was observed is counted in.
    """
    clusters = len(parts)
    observed = np.abs(parts.sum(axis=0)) - _TOLERANCE * np.abs(parts).sum(axis=0)
    as_large = np.zeros(parts.shape[1], dtype=np.int64)
    drawn = 0
    for signs in _signs(clusters, flips, seed):
        as_large += np.sum(np.abs(signs @ parts) >= observed, axis=0)
        drawn += len(signs)
    if clusters < 63 and 2**clusters <= flips:  # the observed one is among them
        return as_large / drawn
    chance: np.ndarray = (1 + as_large) / (1 + drawn)
    return chance
