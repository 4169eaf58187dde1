"""Compare the granularity of two collections: differences, effect sizes, intervals, corrected p-values.

Collections of the same images (COCO and COCO-FG) are paired: an image is drawn with its captions of both, and
its two values are swapped for the p-value. Others are drawn apart from each other, and the p-value is that of
Welch's t-test with one residual per image.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from diptych.analysis.granularity.result import (
    Effect,
    FeatureDifference,
    Granularity,
    GranularityComparison,
    PerImage,
    divided,
    gathered,
    intervals,
    resampled_sums,
    variances,
)
from diptych.core.errors import MismatchError, UnknownNameError
from diptych.metrics.bootstrap import Bootstrap
from diptych.metrics.paired import (
    check_flips,
    corrected,
    correction_named,
    correction_text,
    shares_of,
    sign_flip_tests,
)

Pairing = Literal["auto", "images", "none"]


@dataclass(frozen=True, eq=False)
class Side:
    """One collection: (captions, features) values, NaN where there is none, and the number of each one's image."""

    values: np.ndarray
    image: np.ndarray
    images: int

    def gathered(self) -> PerImage:
        """Sums per image."""
        return gathered(self.values, self.image, self.images)


def sides_of(first: Granularity, second: Granularity, pairing: str) -> tuple[list[Side], int, list[str]]:
    """Both collections with images numbered from 0, how many are paired (0 for not), and what to say of it.

    Images are compared by id; texts without images have none in common.
    """
    if pairing not in get_args(Pairing):
        raise UnknownNameError("pairing", pairing, get_args(Pairing))
    ours, theirs = _places(first), _places(second)
    common = [name for name in ours if name in theirs]
    if pairing == "images" and not common:
        raise MismatchError(
            f"{first.name} and {second.name} have no image in common, by its id",
            "compare them without pairing",
        )
    if common and (pairing == "images" or (pairing == "auto" and len(common) == min(len(ours), len(theirs)))):
        notes = [f"paired: {len(common):,} images with the captions of both"]
        if left_out := len(ours) + len(theirs) - 2 * len(common):
            notes.append(f"left out: {left_out:,} images that only one collection has")
        sides = [_paired_side(first, ours, common), _paired_side(second, theirs, common)]
        return sides, len(common), notes
    said = (
        "as asked"
        if pairing == "none"
        else f"{len(common):,} of {len(ours):,} and {len(theirs):,} images in common"
    )
    return [_side(first), _side(second)], 0, [f"not paired: {said}"]


def _places(one: Granularity) -> dict[str, int]:
    """The rows of images that have captions, by their ids; nothing for texts without images."""
    if not one.about["paired by"]:
        return {}
    return {str(one.image_ids[row]): row for row in np.unique(one.caption_image).tolist()}


def _side(one: Granularity) -> Side:
    _, image = np.unique(one.caption_image, return_inverse=True)
    return Side(np.asarray(one.values), image, int(image.max()) + 1)


def _paired_side(one: Granularity, places: Mapping[str, int], common: Sequence[str]) -> Side:
    number = np.full(len(one.image_ids), -1)
    number[[places[name] for name in common]] = np.arange(len(common))
    image = number[one.caption_image]
    keep = image >= 0
    return Side(np.asarray(one.values)[keep], image[keep], len(common))


# Effect sizes: how far two samples lie apart, in standard deviations and as a share of pairs.
#
# Sources: Cohen, Statistical power analysis for the behavioral sciences, 2nd edition, 1988 (d, and d_z of paired
# values); Cliff, Dominance statistics, Psychological Bulletin 1993 (δ).


def cohens_d(
    mean: float | np.ndarray, other_mean: float | np.ndarray, variance: float | np.ndarray
) -> np.ndarray:
    """(``other_mean`` − ``mean``) / √``variance``; 0 where nothing is apart, NaN where nothing varies.

    Args:
        other_mean: of the second.
        variance: pooled, of both; of the differences, the second less the first, for d_z.
    """
    apart = np.asarray(other_mean, dtype=np.float64) - mean
    spread = np.sqrt(np.maximum(np.asarray(variance, dtype=np.float64), 0))
    found = np.divide(apart, spread, out=np.full(np.broadcast(apart, spread).shape, np.nan), where=spread > 0)
    return np.where(apart == 0, 0.0, found)


def placements(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """For each of (n,) values: the share of (m,) others above it less the share below it; −1 to 1."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, values, side="left")
    not_above = np.searchsorted(ordered, values, side="right")
    apart: np.ndarray = (len(others) - not_above - below) / len(others)
    return apart


def effects_of(sides: Sequence[Side], is_paired: bool, how: Bootstrap) -> list[dict[str, Effect | None]]:
    """Differences and effect sizes, by their names in a feature's difference; one row per feature."""
    first, second = (side.gathered() for side in sides)
    # Which of two captions is the greater: each one's place among the other collection's captions.
    up, down = _placed(sides[0], sides[1]), _placed(sides[1], sides[0])
    ours = [first.counts, first.sums, first.squares, up.sums]
    theirs = [second.counts, second.sums, second.squares, down.sums]
    delta = divided(up.sums.sum(axis=0), first.counts.sum(axis=0))
    at_once = [[one.sum(axis=0) for one in side] for side in (ours, theirs)]
    point = _statistics(at_once[0], at_once[1], delta)
    if is_paired:
        apart = _of_images(first, second)
        drawn = resampled_sums([*ours, *theirs, *apart], how)
        samples = _statistics(drawn[:4], drawn[4:8], delta) | _paired_statistics(drawn[8:])
        point |= _paired_statistics([one.sum(axis=0) for one in apart])
    else:
        # The two are drawn apart from each other.
        samples = _statistics(resampled_sums(ours, how, 0), resampled_sums(theirs, how, 1), delta)
    ends = {name: intervals(values, how.confidence) for name, values in samples.items()}
    nothing: dict[str, Effect | None] = {"paired_d": None, "paired_delta": None}
    return [
        nothing | {name: _effect(values[column], ends[name][column]) for name, values in point.items()}
        for column in range(len(delta))
    ]


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
    p = sign_flip_tests(np.nan_to_num(parts), flips, seed)
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


def compare_granularity(
    first: Granularity,
    second: Granularity,
    *,
    pairing: str = "auto",
    bootstrap: Bootstrap | None = None,
    flips: int = 10_000,
    correction: str = "holm",
) -> GranularityComparison:
    """Compare two collections in every feature.

    Args:
        second: the other.
    """
    check_flips(flips)
    correct, how = correction_named(correction), bootstrap or Bootstrap()
    _check_alike(first, second)
    sides, paired, notes = sides_of(first, second, pairing)
    p = paired_p(sides, flips, how.seed) if paired else unpaired_p(sides)
    means = [side.gathered().means.tolist() for side in sides]
    rows = zip(
        first.features, *means, effects_of(sides, bool(paired), how), p, corrected(p, correct), strict=True
    )
    test = f"sign flips of {paired:,} images" if paired else "Welch's t-test over images"
    tested = correction_text(correct, sum(one is not None for one in p))
    return GranularityComparison(
        first=first.name,
        second=second.name,
        paired=paired,
        differences=tuple(
            FeatureDifference(
                name=feature.name,
                first=None if math.isnan(mean) else mean,
                second=None if math.isnan(other) else other,
                **effects,
                p=plain,
                corrected=together,
                decimals=feature.decimals,
            )
            for feature, mean, other, effects, plain, together in rows
        ),
        notes=(
            *notes,
            f"p: {test}{', ' if tested else ''}{tested}",
            f"{100 * how.confidence:g} % intervals of {how.samples:,} resamples of images"
            if how.samples
            else "no intervals",
        ),
    )


def _check_alike(first: Granularity, second: Granularity) -> None:
    for what, one, other in (
        ("features", [x.name for x in first.features], [x.name for x in second.features]),
        ("definitions", [x.definition for x in first.features], [x.definition for x in second.features]),
        ("languages", first.about["language"], second.about["language"]),
    ):
        if one != other:
            raise MismatchError(
                f"{first.name} and {second.name} were measured with other {what}: {one} and {other}",
                "measure both alike: diptych analyse granularity FIRST SECOND",
            )
