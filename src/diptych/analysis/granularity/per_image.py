"""Values per caption gathered per image: what is resampled are images, each with its captions.

The captions of one image are not independent (:mod:`diptych.metrics.bootstrap`), so intervals and p-values
here see one row per image, whatever the number of captions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diptych.metrics.bootstrap import Bootstrap, interval
from diptych.metrics.bootstrap import resampled_sums as bootstrap_sums


@dataclass(frozen=True, eq=False)
class PerImage:
    """Sums over the captions of each image; a caption without a value counts nowhere.

    Attributes:
        counts: (images, features) how many captions have a value.
        sums: (images, features) of values.
        squares: (images, features) of squared values.
    """

    counts: np.ndarray
    sums: np.ndarray
    squares: np.ndarray

    @property
    def means(self) -> np.ndarray:
        """(features,) over captions; NaN where no caption has a value."""
        return divided(self.sums.sum(axis=0), self.counts.sum(axis=0))

    @property
    def deviations(self) -> np.ndarray:
        """(features,) standard deviation over captions (n − 1); NaN of fewer than two."""
        totals = (one.sum(axis=0) for one in (self.counts, self.sums, self.squares))
        found: np.ndarray = np.sqrt(variances(*totals))
        return found


def gathered(values: np.ndarray, image: np.ndarray, images: int) -> PerImage:
    """Gather values per image.

    Args:
        values: (captions, features); NaN where a caption has none.
        image: (captions,) the number of each caption's image.
    """
    shape = images, values.shape[1]
    counts, sums, squares = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for column in range(shape[1]):
        given = np.asarray(values[:, column], dtype=np.float64)
        known = ~np.isnan(given)
        of, plain = image[known], given[known]
        counts[:, column] = np.bincount(of, minlength=images)
        sums[:, column] = np.bincount(of, weights=plain, minlength=images)
        squares[:, column] = np.bincount(of, weights=plain**2, minlength=images)
    return PerImage(counts, sums, squares)


def resampled_sums(tables: Sequence[np.ndarray], bootstrap: Bootstrap, draws: int = 0) -> list[np.ndarray]:
    """Sums over images of tables that hold a row per image, in every resample; the same images for all tables.

    Args:
        tables: each (images, columns).

    Returns:
        Per table (samples, columns).
    """
    drawn = bootstrap_sums(np.concatenate(tables, axis=1), bootstrap, draws)
    return np.split(drawn, np.cumsum([table.shape[1] for table in tables])[:-1], axis=1)


def intervals(samples: np.ndarray, confidence: float) -> list[tuple[float, float] | None]:
    """The percentile interval of each column of (samples, columns); None without resamples."""
    return [interval(samples[:, column], confidence) for column in range(samples.shape[1])]


def divided(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Means; NaN of nothing."""
    nothing = np.full(np.shape(sums), np.nan)
    found: np.ndarray = np.divide(sums, counts, out=nothing, where=np.asarray(counts) > 0)
    return found


def variances(counts: np.ndarray, sums: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Sample variances (n − 1) from sums; NaN of fewer than two values."""
    centred = squares - sums * divided(sums, counts)
    return np.where(counts > 1, np.maximum(centred, 0) / np.maximum(counts - 1, 1), np.nan)
