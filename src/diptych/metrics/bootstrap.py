"""Confidence intervals: the percentile bootstrap over images.

The captions of one image are not independent: an odd image makes all five of them hard. So whole
images are drawn with replacement, each with its captions, for both directions at once (a cluster
bootstrap: Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 3.8). Folds are
resampled within themselves. The galleries stay as they are: an interval says how far the number would
move with other queries, not with another gallery, another seed of training or another data set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from diptych.core.errors import UsageError
from diptych.metrics.aggregates import Aggregate
from diptych.metrics.ground_truth import DIRECTIONS, Direction, GroundTruth

_CHUNK_NUMBERS = 1 << 21  # weights held at once: 16 MB


@dataclass(frozen=True)
class Bootstrap:
    """Settings of bootstrap intervals.

    Attributes:
        samples: how many resamples; 0 for no intervals.
        confidence: coverage, e.g. 0.95.
        seed: of the draws.
    """

    samples: int = 1000
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.samples < 0:
            raise UsageError(f"bootstrap samples are {self.samples}, they must be 0 (none) or more")
        if not 0 < self.confidence < 1:
            raise UsageError(f"confidence is {self.confidence}, it must lie between 0 and 1")


def clusters(ground_truth: GroundTruth) -> tuple[dict[Direction, np.ndarray], int]:
    """Return the cluster of every query of each direction, and how many clusters there are.

    An image and the texts written for it are one; a text that belongs to no image is one by itself.
    """
    texts = ground_truth.text_image.copy()
    alone = np.flatnonzero(texts < 0)
    texts[alone] = ground_truth.n_images + np.arange(len(alone))
    of: dict[Direction, np.ndarray] = {"i2t": np.arange(ground_truth.n_images), "t2i": texts}
    return of, ground_truth.n_images + len(alone)


def drawn_clusters(bootstrap: Bootstrap, fold: int, size: int, widest: int) -> Iterator[np.ndarray]:
    """Yield (chunk, size) how often each cluster is drawn, ``bootstrap.samples`` rows in all."""
    random = np.random.default_rng([bootstrap.seed, fold])
    chunk = max(1, _CHUNK_NUMBERS // max(size, widest))
    for begin in range(0, bootstrap.samples, chunk):
        rows = min(chunk, bootstrap.samples - begin)
        drawn = random.integers(0, size, (rows, size)) + size * np.arange(rows)[:, None]
        counts = np.bincount(drawn.reshape(-1), minlength=rows * size)
        yield counts.reshape(rows, size).astype(np.float64)


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
    """Return (samples,) values of every measure of one fold; the same draws for all measures and directions.

    NaN for a resample without a query.
    """
    of, size = clusters(ground_truth)
    asked = {name: ground_truth.queries(name) for name in DIRECTIONS}
    found: dict[tuple[Direction, str], list[np.ndarray]] = {key: [] for key in values}
    widest = max(ground_truth.n_images, ground_truth.n_texts)
    for weights in drawn_clusters(bootstrap, fold, size, widest):
        for key, per_query in values.items():
            rows = asked[key[0]]
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
