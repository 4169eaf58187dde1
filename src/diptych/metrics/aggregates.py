"""From one value per query to one number, and the same for resampled queries."""

from __future__ import annotations

import numpy as np


class Aggregate:
    """The arithmetic mean, and what other statistics of values have to have."""

    name = "mean"

    def of(self, values: np.ndarray) -> float:
        """Return the statistic of (n,) values."""
        return float(np.mean(values))

    def resampled(self, values: np.ndarray, cluster: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the statistic when every cluster of queries occurs several times or not at all.

        Args:
            values: (n,) one per query.
            cluster: (n,) the cluster of each query.
            weights: (samples, n_clusters) how often each cluster occurs in each sample.

        Returns:
            (samples,) NaN for a sample that holds no query.
        """
        size = weights.shape[1]
        sums = weights @ np.bincount(cluster, weights=values, minlength=size)
        counts = weights @ np.bincount(cluster, minlength=size).astype(np.float64)
        means: np.ndarray = np.divide(sums, counts, out=np.full(len(weights), np.nan), where=counts > 0)
        return means


class Median(Aggregate):
    """The median; of an even number of values, the mean of the middle two."""

    name = "median"

    def of(self, values: np.ndarray) -> float:
        """Return the median."""
        return float(np.median(values))

    def resampled(self, values: np.ndarray, cluster: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the median of the values, each as often as its cluster was drawn."""
        order = np.argsort(values, kind="stable")
        ordered, below = values[order], np.cumsum(weights[:, cluster[order]], axis=1)
        count = below[:, -1]
        low = (below > ((count - 1) // 2)[:, None]).argmax(axis=1)
        high = (below > (count // 2)[:, None]).argmax(axis=1)
        middle: np.ndarray = (ordered[low] + ordered[high]) / 2
        middle[count == 0] = np.nan
        return middle


class FloorMedian(Median):
    """The published median rank: ``floor(median(rank counted from 0)) + 1``."""

    name = "floor of the median"

    def of(self, values: np.ndarray) -> float:
        """Return the floor of the median."""
        return float(np.floor(super().of(values)))

    def resampled(self, values: np.ndarray, cluster: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the floor of each resampled median."""
        floors: np.ndarray = np.floor(super().resampled(values, cluster, weights))
        return floors


MEAN, MEDIAN, FLOOR_MEDIAN = Aggregate(), Median(), FloorMedian()
