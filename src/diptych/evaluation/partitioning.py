"""Partition: how a protocol cuts a test set into galleries. Recall falls as the gallery grows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.metrics.ground_truth import GroundTruth
from diptych.metrics.sources import Rows

_FOLDS = re.compile(r"folds\((?P<count>[0-9]+)\)")
_FAMILY = "folds(n)"


@dataclass(frozen=True, eq=False)
class Fold:
    """One gallery: the rows of its images and texts, and which belong together."""

    images: Rows
    texts: Rows
    ground_truth: GroundTruth


def _accept(ground_truth: GroundTruth) -> None:
    """Take any test set."""


@dataclass(frozen=True)
class Partition:
    """A declared protocol."""

    name: str  # as it is asked for and printed
    description: str  # one line of what it is
    citation: str  # where it comes from
    # into how many galleries of equal size the images are cut, in their order; values are averaged over them
    count: int = 1
    # refuses a test set that is not the protocol's
    check: Callable[[GroundTruth], None] = field(default=_accept, repr=False)

    def folds(self, ground_truth: GroundTruth) -> Iterator[Fold]:
        """Yield the galleries, each with its ground truth."""
        self.check(ground_truth)
        if self.count == 1:
            yield Fold(slice(0, ground_truth.n_images), slice(0, ground_truth.n_texts), ground_truth)
            return
        size, rest = divmod(ground_truth.n_images, self.count)
        if rest or not size:
            raise UsageError(
                f"{ground_truth.n_images:,} images cannot be cut into {self.count} equal folds",
                "choose a number of folds that divides the number of images",
            )
        homeless = int(np.sum(ground_truth.text_image < 0))
        if homeless:
            raise UsageError(
                f"{homeless:,} texts belong to no image, so to no fold", "use the protocol 'full'"
            )
        fold_of_text = ground_truth.text_image // size
        for fold in range(self.count):
            images = np.arange(fold * size, (fold + 1) * size)
            texts = np.flatnonzero(fold_of_text == fold)
            yield Fold(neighbours(images), neighbours(texts), ground_truth.subset(images, texts))


def neighbours(rows: np.ndarray) -> Rows:
    """Return neighbouring rows as a slice, which copies nothing."""
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def _check_coco(ground_truth: GroundTruth) -> None:
    # 25,010 captions in all; 25,000 with the first five of each image.
    if ground_truth.n_images != 5_000 or ground_truth.n_texts < 25_000:
        raise DataError(
            "the COCO test split has 5,000 images and at least 25,000 captions, "
            f"got {ground_truth.n_images:,} images and {ground_truth.n_texts:,} captions",
            "give the whole Karpathy test split, or use the protocol 'full' or 'folds(n)'",
        )


_KARPATHY = "Karpathy and Fei-Fei, CVPR 2015"
_COCO = f"{_KARPATHY}; Faghri et al., VSE++, BMVC 2018"

PARTITIONS = {
    one.name: one
    for one in (
        Partition(
            "coco-1k",
            "the COCO test images in their order, cut into 5 galleries of 1,000; values averaged",
            _COCO,
            5,
            _check_coco,
        ),
        Partition(
            "coco-5k", "all 5,000 COCO test images and their captions are one gallery", _COCO, 1, _check_coco
        ),
        Partition(
            "full",
            "the whole test set is one gallery",
            f"{_KARPATHY} (Flickr8k and Flickr30k: 1,000 images)",
        ),
        Partition(
            _FAMILY,
            "the images in their order, cut into n galleries of equal size; values averaged",
            f"{_KARPATHY} (as for COCO 1K)",
        ),
    )
}
"""The protocols by name."""


def partition(name: str) -> Partition:
    """Return the protocol called ``name``: ``"full"``, ``"coco-1k"``, ``"coco-5k"``, ``"folds(10)"``, ..."""
    found = _FOLDS.fullmatch(name)
    if found is None:
        if name == _FAMILY:
            raise UsageError(f"protocol {name!r} needs a number", "for example folds(5)")
        if name not in PARTITIONS:
            raise UnknownNameError("protocol", name, PARTITIONS)
        return PARTITIONS[name]
    if int(found["count"]) < 1:
        raise UsageError(f"protocol {name!r}: at least one fold is needed")
    return replace(PARTITIONS[_FAMILY], name=name, count=int(found["count"]))


def one_gallery(protocol: str) -> Partition:
    """Return the protocol called ``protocol``, refused where it has several galleries."""
    chosen = partition(protocol)
    if chosen.count > 1:
        raise UsageError(
            f"protocol {protocol!r} has {chosen.count} galleries, and candidates were chosen from one: the "
            "whole test set",
            "use the protocol 'full' or 'coco-5k', or re-rank and evaluate each fold as a collection of its own",
        )
    return chosen
