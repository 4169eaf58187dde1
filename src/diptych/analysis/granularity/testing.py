"""p-values of no difference between two collections: of swapped images, or of means with one residual per image."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from diptych.analysis.granularity.per_image import divided
from diptych.analysis.granularity.sides import Side
from diptych.evaluation.paired import randomisation_tests, shares_of

__all__ = ["paired_p", "unpaired_p"]


def paired_p(sides: Sequence[Side], flips: int, seed: int) -> list[float | None]:
    """By sign flips: an image's values of both collections are swapped or not.

    Values count from the mean of both collections: an image with more captions in one than in the other would
    else seem to differ by as much as they are long.
    """
    tables = [side.gathered() for side in sides]
    totals = [table.counts.sum(axis=0) for table in tables]
    known = (totals[0] > 0) & (totals[1] > 0)
    mean = divided(sum(table.sums.sum(axis=0) for table in tables), totals[0] + totals[1])
    before, after = (
        divided(table.sums - mean * table.counts, total) for table, total in zip(tables, totals, strict=True)
    )
    parts = after - before
    p = randomisation_tests(np.nan_to_num(parts), flips, seed)
    return [float(one) if there else None for one, there in zip(p, known, strict=True)]


def unpaired_p(sides: Sequence[Side]) -> list[float | None]:
    """By Welch's t-test; None where a collection has fewer than two images with a value, or nothing varies."""
    from scipy.special import stdtr

    found: list[float | None] = []
    for column in range(sides[0].values.shape[1]):
        parts = [_mean_and_error(side, column) for side in sides]
        if any(one is None for one in parts):
            found.append(None)
            continue
        (mean, error, freedom), (mean_2, error_2, freedom_2) = (one for one in parts if one is not None)
        both = error + error_2
        if both <= 0:
            found.append(1.0 if mean == mean_2 else None)
            continue
        degrees = both**2 / (error**2 / freedom + error_2**2 / freedom_2)
        found.append(float(2 * stdtr(degrees, -abs(mean_2 - mean) / math.sqrt(both))))
    return found


def _mean_and_error(side: Side, column: int) -> tuple[float, float, int] | None:
    """A mean over captions, its squared error with images as what is independent, and degrees of freedom."""
    values = np.asarray(side.values[:, column])
    known = ~np.isnan(values)
    if not known.any():
        return None
    shares = shares_of(values[known], side.image[known], side.images)
    size = int(shares.used.sum())
    if size < 2:
        return None
    return shares.difference, size / (size - 1) * float(np.sum(shares.residuals**2)), size - 1
