"""galleries: whether the test set is one gallery or several, over which values are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from diptych.evaluation.variants.axis import AXES, Axis, Choice, Inputs
from diptych.evaluation.variants.settings import Settings

_THOUSAND = 1_000
_FOLDS = 5
_LEAST = 50  # images of a fold, below which nobody would cut


def _folded(settings: Settings, count: int) -> Settings:
    return replace(settings, partition=f"folds({count})")


def _choices(inputs: Inputs) -> Sequence[Choice]:
    counts = set()
    for source in inputs.sources.values():
        n = source.truth.n_images
        if n > _THOUSAND and n % _THOUSAND == 0:
            counts.add(n // _THOUSAND)
        if n % _FOLDS == 0 and n // _FOLDS >= _LEAST:
            counts.add(_FOLDS)
    found = [
        Choice(
            "full", "the whole test set is one gallery", lambda settings: replace(settings, partition="full")
        )
    ]
    for count in sorted(counts):
        sizes = {
            source.truth.n_images // count
            for source in inputs.sources.values()
            if source.truth.n_images % count == 0
        }
        each = " or ".join(f"{size:,}" for size in sorted(sizes))
        words = f"{count} galleries of {each} images in their order, averaged"
        found.append(Choice(f"folds({count})", words, partial(_folded, count=count)))
    return found


GALLERIES = AXES.add(
    Axis(
        name="galleries",
        description="one gallery, or folds of it whose values are averaged (COCO 1K)",
        choices=_choices,
    )
)
