"""Rank and linear correlation of two lists, with intervals over clusters of their entries.

Kendall's tau_b takes ties out of both lists, tau_c (Stuart) is for lists of different numbers of levels, such as
a cosine and a rating from 1 to 4. Copies of one entry tie. One resample of n entries of L levels takes n log L
steps.

Sources: Kendall, Biometrika 1938 and 1945; Stuart, Biometrika 1953; Fenwick, 1994 (the tree of sums).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from diptych.core.errors import DataError, NumericalError
from diptych.core.table import Cell
from diptych.metrics.bootstrap import Bootstrap, drawn_counts, interval
from diptych.metrics.ranks import available_threads

# clusters with an entry apart from its list's most frequent value, below which there is no interval: of fewer,
# resamples of random lists lie on one side of 0 too often (5 hits: 8 %, 3: 24 %, 1: 85 % of 95 % intervals)
LEAST_HITS = 10

COEFFICIENTS = ("tau_b", "tau_c", "spearman", "pearson")  # in the order of every table

_CHUNK_NUMBERS = 1 << 20  # weights held at once by a thread
_CHUNK_SAMPLES = 50


@dataclass(frozen=True)
class Coefficient:
    value: float | None  # in [-1, 1]; None where a list is constant, which correlates with nothing
    low: float | None = None  # lower end of its interval; None without one
    high: float | None = None  # upper end
    few: bool = False  # an interval was asked for, and there are fewer than :data:`LEAST_HITS`

    @property
    def cell(self) -> Cell:
        shown = Cell.number(self.value, 3, self.low, self.high, sign="+")
        return replace(shown, note="–") if self.few and self.value is not None else shown


def correlate(
    x: np.ndarray, y: np.ndarray, cluster: np.ndarray, how: Bootstrap | None = None
) -> dict[str, Coefficient]:
    """Correlate (n,) numbers; entries of one ``cluster``, (n,) whole numbers, are drawn together."""
    how = how or Bootstrap(samples=0)
    left, right = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if not len(left) == len(right) == len(cluster):
        raise DataError(f"{len(x)} and {len(y)} numbers of {len(cluster)} entries cannot be correlated")
    for one in (left, right):
        for bad in np.flatnonzero(~np.isfinite(one))[:1]:
            raise NumericalError(f"entry {bad} to be correlated is {one[bad]}")
    kinds, of = np.unique(cluster, return_inverse=True)
    whole = weighted_correlations(left, right, of, np.ones((1, len(kinds)), dtype=np.int64))[0]
    few = bool(how.samples) and min(_hits(left, of), _hits(right, of)) < LEAST_HITS
    samples = _resampled(left, right, of, len(kinds), how) if how.samples and not few else None
    found = dict.fromkeys(COEFFICIENTS, Coefficient(None))
    for place in np.flatnonzero(~np.isnan(whole)).tolist():
        ends = None if samples is None else interval(samples[:, place], how.confidence)
        low, high = ends or (None, None)
        found[COEFFICIENTS[place]] = Coefficient(float(whole[place]), low, high, few)
    return found


def _hits(values: np.ndarray, cluster: np.ndarray) -> int:
    """Count the clusters with an entry apart from the most frequent value."""
    _, level, counts = np.unique(values, return_inverse=True, return_counts=True)
    return len(np.unique(cluster[level != np.argmax(counts)])) if len(values) else 0


def _resampled(x: np.ndarray, y: np.ndarray, of: np.ndarray, size: int, how: Bootstrap) -> np.ndarray:
    """Return (samples, 4) coefficients; the same for any number of threads."""
    rows = max(1, min(_CHUNK_SAMPLES, _CHUNK_NUMBERS // size))

    def chunk(begin: int) -> np.ndarray:
        random = np.random.default_rng([how.seed, size, begin])
        weights = drawn_counts(random, min(rows, how.samples - begin), size)
        return weighted_correlations(x, y, of, weights)

    with ThreadPoolExecutor(available_threads()) as pool:
        return np.concatenate(list(pool.map(chunk, range(0, how.samples, rows))))


def weighted_correlations(
    x: np.ndarray, y: np.ndarray, cluster: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return (samples, 4) coefficients by (samples, n_clusters) int64 ``weights``; NaN for a constant list."""
    x_levels, x_of = np.unique(x, return_inverse=True)
    y_levels, y_of = np.unique(y, return_inverse=True)
    order = np.argsort(x_of, kind="stable")
    found = np.full((len(weights), len(COEFFICIENTS)), np.nan)
    if len(x):
        _kernel()(
            # Less the means, so that sums of squares lose no digits.
            (x - x.mean())[order],
            (y - y.mean())[order],
            x_of[order].astype(np.int64),
            y_of[order].astype(np.int64),
            len(x_levels),
            len(y_levels),
            cluster[order].astype(np.int64),
            np.ascontiguousarray(weights, dtype=np.int64),
            found,
        )
    return found


@cache
def _kernel() -> Callable[..., None]:
    import numba

    compiled: Callable[..., None] = numba.njit(nogil=True)(_correlations)
    return compiled


def _correlations(
    x: np.ndarray,
    y: np.ndarray,
    x_of: np.ndarray,
    y_of: np.ndarray,
    n_x: int,
    n_y: int,
    cluster: np.ndarray,
    weights: np.ndarray,
    found: np.ndarray,
) -> None:
    """Fill ``found``; entries by ascending ``x``. Plain loops, to be compiled."""
    n = len(x)
    for sample in range(len(weights)):
        x_count, y_count = np.zeros(n_x), np.zeros(n_y)
        tree = np.zeros(n_y + 1)
        total = concordant = 0.0
        sums = np.zeros(5)
        begin = 0
        while begin < n:
            end = begin
            while end < n and x_of[end] == x_of[begin]:
                end += 1
            for i in range(begin, end):  # against entries of lower x
                w = weights[sample, cluster[i]]
                if w == 0:
                    continue
                below, place = 0.0, y_of[i]
                while place > 0:
                    below += tree[place]
                    place -= place & -place
                not_above, place = 0.0, y_of[i] + 1  # the same, and those of the same y
                while place > 0:
                    not_above += tree[place]
                    place -= place & -place
                concordant += w * (below - (total - not_above))
            for i in range(begin, end):
                w = weights[sample, cluster[i]]
                if w == 0:
                    continue
                place = y_of[i] + 1
                while place <= n_y:
                    tree[place] += w
                    place += place & -place
                total += w
                x_count[x_of[i]] += w
                y_count[y_of[i]] += w
                sums[0] += w * x[i]
                sums[1] += w * y[i]
                sums[2] += w * x[i] * x[i]
                sums[3] += w * y[i] * y[i]
                sums[4] += w * x[i] * y[i]
            begin = end
        kinds = min(np.count_nonzero(x_count), np.count_nonzero(y_count))
        if kinds < 2:
            continue
        # Ranks of levels, less their mean, and pairs that tie: sums of halves, which are exact.
        x_rank = np.cumsum(x_count) - (x_count + total) / 2
        y_rank = np.cumsum(y_count) - (y_count + total) / 2
        x_ties = np.sum(x_count * (x_count - 1)) / 2
        y_ties = np.sum(y_count * (y_count - 1)) / 2
        pairs = total * (total - 1) / 2
        found[sample, 0] = concordant / math.sqrt((pairs - x_ties) * (pairs - y_ties))
        found[sample, 1] = 2 * concordant / (total * total * (kinds - 1) / kinds)
        both = 0.0
        for i in range(n):
            both += weights[sample, cluster[i]] * x_rank[x_of[i]] * y_rank[y_of[i]]
        x_spread, y_spread = np.sum(x_count * x_rank**2), np.sum(y_count * y_rank**2)
        found[sample, 2] = both / math.sqrt(x_spread * y_spread)
        covariance = sums[4] - sums[0] * sums[1] / total
        x_variance = sums[2] - sums[0] * sums[0] / total
        y_variance = sums[3] - sums[1] * sums[1] / total
        if x_variance > 0 and y_variance > 0:
            found[sample, 3] = covariance / math.sqrt(x_variance * y_variance)
