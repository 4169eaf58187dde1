"""The two sides of a comparison: whose images are those of whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from diptych.analysis.granularity.per_image import PerImage, gathered
from diptych.analysis.granularity.result import Granularity
from diptych.core.errors import MismatchError, UnknownNameError

__all__ = ["Pairing", "Side", "sides_of"]

Pairing = Literal["auto", "images", "none"]


@dataclass(frozen=True, eq=False)
class Side:
    """One collection.

    Attributes:
        values: (captions, features); NaN where there is none.
        image: (captions,) the number of each caption's image.
        images: how many there are.
    """

    values: np.ndarray
    image: np.ndarray
    images: int

    def gathered(self) -> PerImage:
        """Sums per image."""
        return gathered(self.values, self.image, self.images)


def sides_of(first: Granularity, second: Granularity, pairing: str) -> tuple[list[Side], int, list[str]]:
    """Both collections with images numbered from 0, how many are paired (0 for not), and what to say of it.

    Args:
        first, second: whose images are compared by id; texts without images have none in common.
        pairing: ``images`` pairs those in common and leaves others out; ``auto`` does where every image of one
            collection is in the other; ``none`` does not.

    Raises:
        UnknownNameError: no such pairing.
        MismatchError: no image in common to pair by.
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
