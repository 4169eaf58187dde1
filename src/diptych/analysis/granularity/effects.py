"""Differences and effect sizes of two collections, with intervals from resampled images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.analysis.granularity.comparison import Effect
from diptych.analysis.granularity.effect_sizes import cohens_d, placements
from diptych.analysis.granularity.per_image import (
    PerImage,
    divided,
    gathered,
    intervals,
    resampled_sums,
    variances,
)
from diptych.analysis.granularity.sides import Side
from diptych.evaluation.bootstrap import Bootstrap

__all__ = ["effects_of"]


def effects_of(sides: Sequence[Side], is_paired: bool, how: Bootstrap) -> list[dict[str, Effect | None]]:
    """Differences and effect sizes, by their names in a feature's difference; one row per feature.

    Args:
        sides: two; paired ones have their images numbered alike.
        is_paired: whether an image is drawn for both, and compared with itself.
        how: the bootstrap.
    """
    first, second = (side.gathered() for side in sides)
    # Which of two captions is the greater: each one's place among the other collection's captions.
    up, down = _placed(sides[0], sides[1]), _placed(sides[1], sides[0])
    ours = [first.counts, first.sums, first.squares, up.sums]
    theirs = [second.counts, second.sums, second.squares, down.sums]
    delta = divided(up.sums.sum(axis=0), first.counts.sum(axis=0))
    point = _statistics(_totals(ours), _totals(theirs), delta)
    if is_paired:
        apart = _of_images(first, second)
        drawn = resampled_sums([*ours, *theirs, *apart], how)
        samples = _statistics(drawn[:4], drawn[4:8], delta) | _paired_statistics(drawn[8:])
        point |= _paired_statistics(_totals(apart))
    else:
        # The two are drawn apart from each other.
        samples = _statistics(resampled_sums(ours, how, 0), resampled_sums(theirs, how, 1), delta)
    ends = {name: intervals(values, how.confidence) for name, values in samples.items()}
    nothing: dict[str, Effect | None] = {"paired_d": None, "paired_delta": None}
    return [
        nothing | {name: _effect(values[column], ends[name][column]) for name, values in point.items()}
        for column in range(len(delta))
    ]


def _totals(tables: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [table.sum(axis=0) for table in tables]


def _effect(value: float, ends: tuple[float, float] | None) -> Effect:
    return Effect(None) if np.isnan(value) else Effect(float(value), *(ends or (None, None)))


def _placed(of: Side, among: Side) -> PerImage:
    """Per image and feature, the placements of its captions among the other collection's."""
    placed = np.full(of.values.shape, np.nan)
    for column in range(of.values.shape[1]):
        own, other = np.asarray(of.values[:, column]), np.asarray(among.values[:, column])
        known, others = ~np.isnan(own), other[~np.isnan(other)]
        if len(others):
            placed[known, column] = placements(own[known], others)
    return gathered(placed, of.image, of.images)


def _statistics(
    first: Sequence[np.ndarray], second: Sequence[np.ndarray], delta: np.ndarray
) -> dict[str, np.ndarray]:
    """What two collections' sums (counts, values, squares, placements) say; any leading shape, features last.

    ``delta`` is δ of all captions: resampled, it moves with the placements of both (Hájek's projection).
    """
    (counts, sums, squares, placed), (counts_2, sums_2, squares_2, placed_2) = first, second
    mean, mean_2 = divided(sums, counts), divided(sums_2, counts_2)
    freedom, freedom_2 = np.maximum(counts - 1, 0), np.maximum(counts_2 - 1, 0)
    within = np.nan_to_num(variances(counts, sums, squares)) * freedom
    within_2 = np.nan_to_num(variances(counts_2, sums_2, squares_2)) * freedom_2
    return {
        "difference": mean_2 - mean,
        "relative": divided(mean_2 - mean, mean),
        "d": cohens_d(mean, mean_2, divided(within + within_2, freedom + freedom_2)),
        # A placement of the second's is how much more often the first's is the greater.
        "delta": np.clip(divided(placed, counts) - divided(placed_2, counts_2) - delta, -1, 1),
    }


def _of_images(first: PerImage, second: PerImage) -> list[np.ndarray]:
    """Of paired images: whether both have a value, and the difference, its square and its sign."""
    apart = divided(second.sums, second.counts) - divided(first.sums, first.counts)
    known = ~np.isnan(apart)
    apart = np.where(known, apart, 0.0)
    return [known.astype(np.float64), apart, apart**2, np.sign(apart)]


def _paired_statistics(sums: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    counts, apart, squares, signs = sums
    return {
        "paired_d": cohens_d(0.0, divided(apart, counts), variances(counts, apart, squares)),
        "paired_delta": divided(signs, counts),
    }
