"""Compare the granularity of two collections: differences, effect sizes, intervals, corrected p-values.

Collections of the same images (COCO and COCO-FG) are paired: an image is drawn with its captions of both, and
its two values are swapped for the p-value. Others are drawn apart from each other, and the p-value is that of
Welch's t-test with one residual per image.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from diptych.analysis.granularity.measure import PerImage, divided, granularity, variances
from diptych.analysis.granularity.result import Effect, FeatureDifference, Granularity, GranularityComparison
from diptych.core.errors import MismatchError, UnknownNameError
from diptych.core.files import check_replaceable, safe_name
from diptych.core.options import parameter
from diptych.data.collection import Collection
from diptych.data.language import Language
from diptych.data.source import SamplesOption, SeedOption
from diptych.metrics.bootstrap import Bootstrap, interval, resampled_sums
from diptych.metrics.paired import Correction, corrected, correction_text, shares_of, sign_flip_tests

Pairing = Literal["auto", "images", "none"]

_FLIPS = 10_000
_CORRECTION: Correction = "holm"


class GranularityOptions(SamplesOption, SeedOption):
    """Options of granularity: what is counted, and how two collections are compared."""

    feature: list[str] = parameter([], "A feature. Repeatable.", default="all")
    compat: Literal["none", "published"] = parameter("none", "published: as for thesis Table 5.1.")
    pairing: Pairing = parameter(
        "auto", "auto: by image, where one has all of the other's; images: common ones."
    )


@dataclass(frozen=True, eq=False)
class Side:
    """One collection with its images numbered from 0."""

    values: np.ndarray  # (captions, features), NaN where there is none
    image: np.ndarray  # (captions,) the number of each one's image
    images: int

    @cached_property
    def sums(self) -> PerImage:
        return PerImage.of(self.values, self.image, self.images)

    def placed(self, among: Side) -> PerImage:
        """Return sums of placements: for each value the share of the other's values above it less those below it."""
        placed = np.full(self.values.shape, np.nan)
        for column, (own, other) in enumerate(zip(self.values.T, among.values.T, strict=True)):
            known, others = ~np.isnan(own), np.sort(other[~np.isnan(other)])
            if len(others):
                below, not_above = (np.searchsorted(others, own[known], end) for end in ("left", "right"))
                placed[known, column] = (len(others) - not_above - below) / len(others)
        return PerImage.of(placed, self.image, self.images)


def sides_of(first: Granularity, second: Granularity, pairing: str) -> tuple[list[Side], int, list[str]]:
    """Return both collections, how many images are paired by their ids (0 for not), and notes."""
    if pairing not in get_args(Pairing):
        raise UnknownNameError("pairing", pairing, get_args(Pairing))
    both = (first, second)
    # the rows of images that have captions, by their ids; nothing for texts without images
    rows = [
        {str(one.image_ids[row]): row for row in np.unique(one.caption_image) if one.about["paired by"]}
        for one in both
    ]
    ours, theirs = (len(one) for one in rows)
    common = [name for name in rows[0] if name in rows[1]]
    if pairing == "images" and not common:
        what = f"{first.name} and {second.name} have no image in common, by its id"
        raise MismatchError(what, "compare them without pairing")
    sides = []
    if common and (pairing == "images" or (pairing == "auto" and len(common) == min(ours, theirs))):
        for one, places in zip(both, rows, strict=True):
            number = np.full(len(one.image_ids), -1)
            number[[places[name] for name in common]] = np.arange(len(common))
            image = number[one.caption_image]
            sides.append(Side(np.asarray(one.values)[image >= 0], image[image >= 0], len(common)))
        notes = [f"paired: {len(common):,} images with the captions of both"]
        left_out = ours + theirs - 2 * len(common)
        notes += [f"left out: {left_out:,} images that only one collection has"] if left_out else []
        return sides, len(common), notes
    for one in both:
        _, image = np.unique(one.caption_image, return_inverse=True)
        sides.append(Side(np.asarray(one.values), image, int(image.max()) + 1))
    why = (
        "as requested"
        if pairing == "none"
        else f"{len(common):,} of {ours:,} and {theirs:,} images in common"
    )
    return sides, 0, [f"not paired: {why}"]


# Effect sizes: how far two samples lie apart, in standard deviations and as a share of pairs.
#
# Sources: Cohen, Statistical power analysis for the behavioral sciences, 2nd edition, 1988 (d, and d_z of paired
# values); Cliff, Dominance statistics, Psychological Bulletin 1993 (δ).


def cohens_d(apart: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return ``apart`` / √``variance``; 0 where nothing is apart, NaN where nothing varies."""
    spread = np.sqrt(np.maximum(variance, 0))
    found = np.divide(apart, spread, out=np.full(np.shape(apart), np.nan), where=spread > 0)
    return np.where(apart == 0, 0.0, found)


def effects_of(sides: Sequence[Side], is_paired: bool, how: Bootstrap) -> list[dict[str, Effect | None]]:
    """Return differences and effect sizes, by their names in a feature's difference; one row per feature."""
    first, second = sides
    # Which of two captions is the greater: each one's place among the other collection's captions.
    up, down = first.placed(second).sums, second.placed(first).sums
    tables = [*first.sums, up, *second.sums, down]
    if is_paired:
        apart = divided(second.sums.sums, second.sums.counts) - divided(first.sums.sums, first.sums.counts)
        known = ~np.isnan(apart)
        apart = np.where(known, apart, 0.0)
        tables += [known.astype(np.float64), apart, apart**2, np.sign(apart)]
        drawn = np.split(resampled_sums(np.concatenate(tables, axis=1), how), len(tables), axis=1)
    else:
        # The two are drawn apart from each other.
        halves = (np.concatenate(half, axis=1) for half in (tables[:4], tables[4:]))
        sums = [resampled_sums(half, how, fold) for fold, half in enumerate(halves)]
        drawn = [part for half in sums for part in np.split(half, 4, axis=1)]
    delta = divided(up.sum(axis=0), first.sums.counts.sum(axis=0))
    point = _statistics([one.sum(axis=0) for one in tables], delta)
    ends = {
        name: [interval(one, how.confidence) for one in values.T]
        for name, values in _statistics(drawn, delta).items()
    }

    def effect(name: str, column: int) -> Effect | None:
        if name not in point:
            return None
        value = point[name][column]
        return (
            Effect(None) if np.isnan(value) else Effect(float(value), *(ends[name][column] or (None, None)))
        )

    return [{name: effect(name, column) for name in _EFFECTS} for column in range(len(delta))]


_EFFECTS = ("difference", "relative", "d", "delta", "paired_d", "paired_delta")


def _statistics(tables: Sequence[np.ndarray], delta: np.ndarray) -> dict[str, np.ndarray]:
    """Return statistics of sums; ``delta``, of all captions, moves with both placements (Hájek's projection)."""
    means, placed, within, freedom = [], [], [], []
    for counts, sums, squares, places in (tables[:4], tables[4:8]):
        means.append(divided(sums, counts))
        placed.append(divided(places, counts))
        freedom.append(np.maximum(counts - 1, 0))
        within.append(np.nan_to_num(variances(counts, sums, squares)) * freedom[-1])
    apart = means[1] - means[0]
    found = {
        "difference": apart,
        "relative": divided(apart, means[0]),
        "d": cohens_d(apart, divided(within[0] + within[1], freedom[0] + freedom[1])),
        # A placement of the second's is how much more often the first's is the greater.
        "delta": np.clip(placed[0] - placed[1] - delta, -1, 1),
    }
    if len(tables) > 8:
        counts, sums, squares, signs = tables[8:]
        found["paired_d"] = cohens_d(divided(sums, counts), variances(counts, sums, squares))
        found["paired_delta"] = divided(signs, counts)
    return found


def paired_p(sides: Sequence[Side], seed: int) -> list[float | None]:
    """Return p-values of sign flips of images, whose values count from the mean of both collections."""
    totals = [side.sums.counts.sum(axis=0) for side in sides]
    mean = divided(sum(side.sums.sums.sum(axis=0) for side in sides), totals[0] + totals[1])
    before, after = (
        divided(side.sums.sums - mean * side.sums.counts, total)
        for side, total in zip(sides, totals, strict=True)
    )
    p = sign_flip_tests(np.nan_to_num(after - before), _FLIPS, seed)
    return [float(one) if min(there) > 0 else None for one, *there in zip(p, *totals, strict=True)]


def unpaired_p(sides: Sequence[Side]) -> list[float | None]:
    """Return p-values of Welch's t-test over images; None of fewer than two images, or where nothing varies."""
    from scipy.special import stdtr

    found: list[float | None] = []
    for column in range(sides[0].values.shape[1]):
        known = [~np.isnan(side.values[:, column]) for side in sides]
        parts = [
            shares_of(side.values[there, column], side.image[there], side.images)
            for side, there in zip(sides, known, strict=True)
            if there.any()
        ]
        if len(parts) < 2 or min(part.freedom for part in parts) < 1:
            found.append(None)
            continue
        apart, error = parts[1].difference - parts[0].difference, sum(part.variance for part in parts)
        if error <= 0:
            found.append(None if apart else 1.0)
            continue
        degrees = error**2 / sum(part.variance**2 / part.freedom for part in parts)
        found.append(float(2 * stdtr(degrees, -abs(apart) / math.sqrt(error))))
    return found


def compare_granularity(
    first: Granularity,
    second: Granularity,
    *,
    pairing: str = "auto",
    bootstrap: Bootstrap | None = None,
) -> GranularityComparison:
    how = bootstrap or Bootstrap()
    alike = [
        {
            "features": [own.name for own in one.features],
            "definitions": [own.definition for own in one.features],
            "languages": one.about["language"],
        }
        for one in (first, second)
    ]
    for what, one in alike[0].items():
        if one != (other := alike[1][what]):
            raise MismatchError(
                f"{first.name} and {second.name} were measured with other {what}: {one} and {other}",
                "measure both alike: diptych analyse granularity FIRST SECOND",
            )
    sides, paired, notes = sides_of(first, second, pairing)
    p = paired_p(sides, how.seed) if paired else unpaired_p(sides)
    means = [side.sums.means for side in sides]
    effects = effects_of(sides, bool(paired), how)
    together = corrected(p, _CORRECTION)
    test = f"sign flips of {paired:,} images" if paired else "Welch's t-test over images"
    tested = correction_text(_CORRECTION, sum(one is not None for one in p))
    notes.append(f"p: {test}, {tested}")
    about = f"{100 * how.confidence:g} % intervals of {how.samples:,} resamples of images"
    notes.append(about if how.samples else "no intervals")
    differences = tuple(
        FeatureDifference(
            name=feature.name,
            first=means[0][place],
            second=means[1][place],
            **effects[place],  # type: ignore[arg-type]
            p=p[place],
            corrected=together[place],
            decimals=feature.decimals,
        )
        for place, feature in enumerate(first.features)
    )
    return GranularityComparison(first.name, second.name, paired, differences, tuple(notes))


def measure_and_compare(
    parts: Sequence[tuple[Collection, str]],
    language: Language,
    options: GranularityOptions,
    folder: Path | None = None,
) -> tuple[list[Granularity], GranularityComparison | None]:
    """Measure collections, each with its split's name, and compare two; kept in ``folder``, if there is one."""
    places = [None if folder is None else folder / safe_name(part.name) for part, _ in parts]
    for place in places:
        if place is not None:
            check_replaceable(place, Granularity.marker())  # all of them before the work
    how = Bootstrap(options.samples, seed=options.seed)
    given = {"language": language, "features": options.feature or None, "compat": options.compat}
    measured = [
        granularity(part, split=split, bootstrap=how, folder=place, **given)  # type: ignore[arg-type]
        for (part, split), place in zip(parts, places, strict=True)
    ]
    if len(measured) < 2:
        return measured, None
    compared = compare_granularity(*measured, pairing=options.pairing, bootstrap=how)
    if folder is not None:
        compared.save(folder / "comparison.json")
    return measured, compared
