"""Rank and linear correlation of two lists, with intervals over clusters of their entries.

Kendall's tau_b takes ties out of both lists, tau_c (Stuart) is for lists of different numbers of levels, such as
a cosine and a rating from 1 to 4. Copies of one entry tie. One resample of n entries of L levels takes n log L
steps.

Sources: Kendall, Biometrika 1938 and 1945; Stuart, Biometrika 1953; Fenwick, 1994 (the tree of sums).
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from diptych.core.errors import DataError, NumericalError
from diptych.core.extras import require
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
    few: bool = False  # an interval was requested, and there are fewer than :data:`LEAST_HITS`

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
    found = np.full((len(weights), len(COEFFICIENTS)), np.nan)
    order = np.argsort(x, kind="stable")
    x, y, cluster = x[order], y[order], cluster[order]
    x_of, y_of = (np.unique(one, return_inverse=True)[1].astype(np.int64) for one in (x, y))
    # Less the means, so that sums of squares lose no digits.
    x, y = (one - one.mean() if len(one) else one for one in (x, y))
    for row, drawn in zip(found, weights, strict=True):
        times = drawn[cluster].astype(np.float64)
        counts = [np.bincount(of, weights=times) for of in (x_of, y_of)]
        levels, total = min(map(np.count_nonzero, counts), default=0), times.sum()
        if levels < 2:
            continue
        concordant, pairs = _kernel()(x_of, y_of, times), total * (total - 1) / 2
        untied = [pairs - np.sum(one * (one - 1)) / 2 for one in counts]
        row[0] = concordant / np.sqrt(untied[0] * untied[1])
        row[1] = 2 * concordant / (total * total * (levels - 1) / levels)
        # Ranks of levels, less their mean: sums of halves, which are exact.
        ranks = [np.cumsum(one) - (one + total) / 2 for one in counts]
        row[2] = _pearson(ranks[0][x_of], ranks[1][y_of], times)
        row[3] = _pearson(x - np.sum(times * x) / total, y - np.sum(times * y) / total, times)
    return found


def _pearson(x: np.ndarray, y: np.ndarray, times: np.ndarray) -> float:
    """Return the weighted correlation of numbers whose weighted means are 0."""
    weighted = times * x  # not by BLAS, whose own threads wait for each other in a pool of threads
    spread = np.sum(weighted * x) * np.sum(times * y * y)
    return float(np.sum(weighted * y) / np.sqrt(spread)) if spread > 0 else np.nan


@cache
def _kernel() -> Callable[..., float]:
    numba = require("numba", purpose="Kendall's tau")
    compiled: Callable[..., float] = numba.njit(nogil=True)(_concordant)
    return compiled


def _concordant(x_of: np.ndarray, y_of: np.ndarray, times: np.ndarray) -> float:
    """Return concordant less discordant pairs, by ascending levels of x. Plain loops, to be compiled."""
    n, n_y = len(x_of), y_of.max() + 1
    tree, total, concordant, begin = np.zeros(n_y + 1), 0.0, 0.0, 0
    while begin < n:
        end = begin
        while end < n and x_of[end] == x_of[begin]:
            if times[end]:  # against entries of lower x: those of lower y, less those of higher
                for place in (y_of[end], y_of[end] + 1):
                    while place > 0:
                        concordant += times[end] * tree[place]
                        place -= place & -place
                concordant -= times[end] * total
            end += 1
        for i in range(begin, end):
            place = y_of[i] + 1
            total += times[i]
            while place <= n_y and times[i]:
                tree[place] += times[i]
                place += place & -place
        begin = end
    return concordant
