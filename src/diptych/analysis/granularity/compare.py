"""Compare the granularity of two collections: differences, effect sizes, intervals, corrected p-values.

Collections of the same images (COCO and COCO-FG) are paired: an image is drawn with its captions of both, and
its two values are swapped for the p-value. Others are drawn apart from each other, and the p-value is that of
Welch's t-test with one residual per image.
"""

from __future__ import annotations

import math

from diptych.analysis.granularity.comparison import FeatureDifference, GranularityComparison
from diptych.analysis.granularity.effects import effects_of
from diptych.analysis.granularity.result import Granularity
from diptych.analysis.granularity.sides import sides_of
from diptych.analysis.granularity.testing import paired_p, unpaired_p
from diptych.core.errors import MismatchError, UsageError
from diptych.evaluation.bootstrap import Bootstrap
from diptych.evaluation.corrections import corrected, correction_named, correction_text

__all__ = ["compare_granularity"]


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
        first: the one that relative differences are shares of.
        second: the other.
        pairing: ``images`` pairs by image id and leaves other images out; ``none`` does not; ``auto`` pairs where
            every image of one collection is in the other.
        bootstrap: how intervals are made.
        flips: random swaps for the p-values of pairs.
        correction: over features: ``holm``, ``bonferroni`` or ``none``.

    Raises:
        MismatchError: other features, definitions or languages; no image in common to pair by.
        UnknownNameError: no such pairing or correction.
        UsageError: no flips.
    """
    if flips < 1:
        raise UsageError(f"flips are {flips}, at least 1 is needed")
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
                "measure both alike: diptych granularity FIRST SECOND",
            )
