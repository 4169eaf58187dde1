"""Aggregates over queries and their confidence intervals: the percentile bootstrap over images.

The captions of one image are not independent, so whole images are drawn with replacement, each with its captions,
for both directions at once (a cluster bootstrap: Davison and Hinkley, Bootstrap Methods and their Application,
1997, section 3.8). Folds are resampled within themselves. The galleries stay: an interval says how far the number
would move with other queries, not with another gallery, seed of training or data set.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from diptych.core.errors import UsageError
from diptych.metrics.ground_truth import DIRECTIONS, Direction, GroundTruth
from diptych.metrics.runs import blocks

_CHUNK_NUMBERS = 1 << 21  # weights held at once: 16 MB


class Aggregate:
    """The arithmetic mean, and what other statistics of values have to have."""

    name = "mean"

    def of(self, values: np.ndarray) -> float:
        return float(np.mean(values))

    def resampled(self, values: np.ndarray, cluster: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return (samples,) statistics with cluster c ``weights[s, c]`` times; NaN of a sample without a query."""
        size = weights.shape[1]
        sums = weights @ np.bincount(cluster, weights=values, minlength=size)
        counts = weights @ np.bincount(cluster, minlength=size).astype(np.float64)
        return np.asarray(np.divide(sums, counts, out=np.full(len(weights), np.nan), where=counts > 0))


class Median(Aggregate):
    """The median, or with ``floor`` the published median rank: ``floor(median(rank counted from 0)) + 1``."""

    def __init__(self, floor: bool = False) -> None:
        self.name = "floor of the median" if floor else "median"
        self._rounded = np.floor if floor else np.asarray

    def of(self, values: np.ndarray) -> float:
        return float(self._rounded(np.median(values)))

    def resampled(self, values: np.ndarray, cluster: np.ndarray, weights: np.ndarray) -> np.ndarray:
        order = np.argsort(values, kind="stable")
        ordered, below = values[order], np.cumsum(weights[:, cluster[order]], axis=1)
        count = below[:, -1]
        middle = [ordered[(below > (half // 2)[:, None]).argmax(axis=1)] for half in (count - 1, count)]
        return np.where(count == 0, np.nan, self._rounded((middle[0] + middle[1]) / 2))


MEAN, MEDIAN, FLOOR_MEDIAN = Aggregate(), Median(), Median(floor=True)


@dataclass(frozen=True)
class Bootstrap:
    """Settings of bootstrap intervals."""

    samples: int = 1000  # how many resamples; 0 for no intervals
    confidence: float = 0.95  # coverage, e.g. 0.95
    seed: int = 0  # of the draws

    def __post_init__(self) -> None:
        if self.samples < 0:
            raise UsageError(f"bootstrap samples are {self.samples}, they must be 0 (none) or more")
        if not 0 < self.confidence < 1:
            raise UsageError(f"confidence is {self.confidence}, it must lie between 0 and 1")


def clusters(ground_truth: GroundTruth) -> tuple[dict[Direction, np.ndarray], int]:
    """Return the cluster of every query per direction (an image and its texts are one), and their number."""
    texts, n_images = ground_truth.text_image.copy(), ground_truth.n_images
    unpaired = np.flatnonzero(texts < 0)
    texts[unpaired] = n_images + np.arange(len(unpaired))
    return {"i2t": np.arange(n_images), "t2i": texts}, n_images + len(unpaired)


def drawn_clusters(bootstrap: Bootstrap, fold: int, size: int, widest: int) -> Iterator[np.ndarray]:
    """Yield (chunk, size) how often each cluster is drawn, ``bootstrap.samples`` rows in all."""
    random = np.random.default_rng([bootstrap.seed, fold])
    for some in blocks(bootstrap.samples, _CHUNK_NUMBERS // max(size, widest)):
        yield drawn_counts(random, some.stop - some.start, size).astype(np.float64)


def drawn_counts(random: np.random.Generator, samples: int, size: int) -> np.ndarray:
    """Return (samples, size) how often each of ``size`` things is drawn in as many draws."""
    drawn = random.integers(0, size, (samples, size)) + size * np.arange(samples)[:, None]
    return np.bincount(drawn.reshape(-1), minlength=samples * size).reshape(samples, size)


def resampled_sums(table: np.ndarray, bootstrap: Bootstrap, fold: int = 0) -> np.ndarray:
    """Return (samples, columns) sums over clusters of (clusters, columns) in every resample."""
    drawn = [weights @ table for weights in drawn_clusters(bootstrap, fold, len(table), len(table))]
    return np.concatenate(drawn) if drawn else np.empty((0, table.shape[1]))


def resample(
    bootstrap: Bootstrap,
    fold: int,
    ground_truth: GroundTruth,
    values: Mapping[tuple[Direction, str], np.ndarray],
    aggregates: Mapping[tuple[Direction, str], Aggregate],
) -> dict[tuple[Direction, str], np.ndarray]:
    """Return (samples,) values of every measure of one fold, all on the same draws; NaN of one without a query."""
    of, size = clusters(ground_truth)
    evaluated = {name: ground_truth.queries(name) for name in DIRECTIONS}
    found: dict[tuple[Direction, str], list[np.ndarray]] = {key: [] for key in values}
    widest = max(ground_truth.n_images, ground_truth.n_texts)
    for weights in drawn_clusters(bootstrap, fold, size, widest):
        for key, per_query in values.items():
            rows = evaluated[key[0]]
            found[key].append(aggregates[key].resampled(per_query[rows], of[key[0]][rows], weights))
    return {key: np.concatenate(parts) for key, parts in found.items()}


def interval(samples: Sequence[float] | np.ndarray, confidence: float) -> tuple[float, float] | None:
    """Return the percentile interval; None when no resample holds a query."""
    usable = np.asarray(samples, dtype=np.float64)
    usable = usable[~np.isnan(usable)]
    if not len(usable):
        return None
    tail = (1 - confidence) / 2
    low, high = np.quantile(usable, [tail, 1 - tail])
    return float(low), float(high)
