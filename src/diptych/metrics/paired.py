"""Paired tests of differences of means whose queries come in clusters: intervals, t-test, sign flips.

What is independent is an image with its captions, not a query, so every test here sees one number per cluster:
how much it adds to the difference. With clusters of one size the t-test is the plain paired t-test of the
clusters' means; with others it is that of a ratio estimator's linearised residuals. ``scipy.stats`` has neither
clusters nor one set of swaps for several differences.

Sources: Cochran, Sampling Techniques, 3rd edition, 1977, section 6 (ratio estimators); Smucker, Allan and
Carterette, CIKM 2007 (randomisation by sign flips); Dunn, Multiple comparisons among means, JASA 1961
(Bonferroni); Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics
1979.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from diptych.core.errors import UnknownNameError, UsageError
from diptych.metrics.bootstrap import Bootstrap, interval, resampled_sums
from diptych.metrics.runs import blocks

Correction = Literal["bonferroni", "holm", "none"]
CORRECTIONS: tuple[Correction, ...] = get_args(Correction)

LEVEL = 0.05  # the corrected p-value up to which a difference counts as one

_CHUNK_NUMBERS = 1 << 21
_TOLERANCE = 1e-9  # of the sum of absolute shares: what counts as equal between two orders of adding


@dataclass(frozen=True, eq=False)
class ClusterShares:
    """Each cluster's contribution to one difference of means, and how far it is from its fair part."""

    parts: np.ndarray  # (clusters,) they add up to the difference
    residuals: np.ndarray  # (clusters,) of mean 0; their spread is what the difference's error is made of
    used: np.ndarray  # (clusters,) booleans: clusters that hold a query

    @classmethod
    def added(cls, shares: Sequence[ClusterShares], scale: float = 1.0) -> ClusterShares:
        """Return the shares of a sum of differences, times ``scale``."""
        parts = scale * np.sum([one.parts for one in shares], axis=0)
        residuals = scale * np.sum([one.residuals for one in shares], axis=0)
        return cls(parts, residuals, np.any([one.used for one in shares], axis=0))

    @property
    def difference(self) -> float:
        return float(self.parts.sum())

    @property
    def freedom(self) -> int:
        """Return the degrees of freedom of its variance; below 1 it has none."""
        return int(self.used.sum()) - 1

    @property
    def variance(self) -> float:
        """Return the variance of the difference: a sum over C clusters, it is C times that of one residual."""
        return (self.freedom + 1) / max(self.freedom, 1) * float(np.sum(self.residuals**2))


@dataclass(frozen=True, eq=False)
class PairedTest:
    difference: float  # the mean of the differences
    low: float | None  # lower end of its interval; None without resamples
    high: float | None  # upper end
    p: float  # of sign flips of clusters, two-sided
    p_t: float | None  # of the paired t-test over clusters; None where it says nothing
    corrected: float  # ``p`` corrected for all that were tested together
    # (columns + 1, samples) resampled sums of the columns given, and how many queries were drawn
    sums: np.ndarray


def paired(
    columns: Sequence[Sequence[np.ndarray]],
    clusters: Sequence[np.ndarray],
    *,
    how: Bootstrap | None = None,
    flips: int = 10_000,
    correction: str = "holm",
) -> list[PairedTest]:
    """Test several differences of means together: the same resamples and swaps of clusters for all.

    Args:
        columns: per difference (n,) one run's value less the other's per query, and as many other values of the same
            queries that are resampled with it.
        clusters: per difference (n,) the number of each query's cluster, the same numbers in all.
        how: the intervals, and the seed of both.
        flips: random swaps; a p-value is at least 1 / (flips + 1).
    """
    how, correct = how or Bootstrap(), correction_named(correction)
    check_flips(flips)
    if not columns:
        return []
    known = np.unique(np.concatenate(list(clusters)))
    homes = [np.searchsorted(known, cluster) for cluster in clusters]
    shares = [shares_of(given[0], home, len(known)) for given, home in zip(columns, homes, strict=True)]
    p = sign_flip_tests(np.stack([one.parts for one in shares], axis=1), flips, how.seed)
    table = [
        np.bincount(home, weights=weights, minlength=len(known))
        for given, home in zip(columns, homes, strict=True)
        for weights in (*given, None)
    ]
    drawn = resampled_sums(np.stack(table, axis=1).astype(np.float64), how)
    found = []
    for place, final in enumerate(corrected([float(value) for value in p], correct)):
        width = len(columns[place]) + 1
        sums = drawn[:, place * width : (place + 1) * width].T
        means = np.divide(sums[0], sums[-1], out=np.full(sums.shape[1], np.nan), where=sums[-1] > 0)
        low, high = interval(means, how.confidence) or (None, None)
        found.append(
            PairedTest(
                difference=float(np.mean(columns[place][0])),
                low=low,
                high=high,
                p=float(p[place]),
                p_t=t_test([shares[place]]),
                corrected=1.0 if final is None else final,
                sums=sums,
            )
        )
    return found


def check_flips(flips: int) -> None:
    if flips < 1:
        raise UsageError(f"flips are {flips}, at least 1 is needed")


def shares_of(differences: np.ndarray, cluster: np.ndarray, clusters: int) -> ClusterShares:
    """Return the shares of one difference of means, from (n,) differences and the cluster of each."""
    sums = np.bincount(cluster, weights=differences, minlength=clusters)
    counts = np.bincount(cluster, minlength=clusters)
    parts = sums / len(differences)
    residuals = parts - parts.sum() * counts / len(differences)
    return ClusterShares(parts, residuals, counts > 0)


def t_test(folds: Sequence[ClusterShares]) -> float | None:
    """Return the two-sided p-value of the mean over folds; None of fewer than two clusters, or if all are equal."""
    from scipy.special import stdtr

    difference = sum(fold.difference for fold in folds) / len(folds)
    if all(not np.any(fold.parts) for fold in folds):
        return 1.0
    if min(fold.freedom for fold in folds) < 1:
        return None
    error = float(np.sqrt(sum(fold.variance for fold in folds))) / len(folds)
    if error <= _TOLERANCE * abs(difference):
        return None
    return float(2 * stdtr(sum(fold.freedom for fold in folds), -abs(difference) / error))


def sign_flip_tests(parts: np.ndarray, flips: int, seed: int) -> np.ndarray:
    """Return two-sided p-values of swapping the two runs at random, cluster by cluster, all differences at once.

    ``parts`` are (clusters, n) what each cluster adds to each of n differences.
    """
    clusters, random = len(parts), np.random.default_rng(seed)
    exact = clusters < 63 and 2**clusters <= flips  # every assignment of signs, the observed one among them
    drawn = 2**clusters if exact else flips
    observed = np.abs(parts.sum(axis=0)) - _TOLERANCE * np.abs(parts).sum(axis=0)
    as_large = np.zeros(parts.shape[1], dtype=np.int64)
    for some in blocks(drawn, _CHUNK_NUMBERS // max(1, clusters)):
        if exact:
            bits = (np.arange(some.start, some.stop)[:, None] >> np.arange(clusters)) & 1
        else:
            bits = random.integers(0, 2, (some.stop - some.start, clusters), dtype=np.int8)
        as_large += np.sum(np.abs((1.0 - 2.0 * bits) @ parts) >= observed, axis=0)
    return np.asarray(as_large / drawn if exact else (1 + as_large) / (1 + drawn))


def correction_named(name: str) -> Correction:
    if name not in CORRECTIONS:
        raise UnknownNameError("correction", name, CORRECTIONS)
    return name


def corrected(p: Sequence[float | None], correction: Correction) -> list[float | None]:
    """Return corrected p-values, at most 1; None where nothing was tested, which does not count."""
    tested = sorted((value, place) for place, value in enumerate(p) if value is not None)
    found: list[float | None] = [None] * len(p)
    before = 0.0
    for rank, (value, place) in enumerate(tested):
        factor = {"bonferroni": len(tested), "holm": len(tested) - rank, "none": 1}[correction]
        before = max(before, min(1.0, value * factor))
        found[place] = before
    return found


def correction_text(correction: Correction, tested: int) -> str:
    """Say what was corrected for, e.g. ``Holm over 12 comparisons``; nothing where nothing was."""
    return "" if correction == "none" else f"{correction.capitalize()} over {tested:,} comparisons"
