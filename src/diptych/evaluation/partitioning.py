"""Partition: how a protocol cuts a test set into galleries.

Recall falls as the gallery grows, so a number means little without it. Each protocol is declared in
its own file in :mod:`diptych.evaluation.protocols`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from diptych.core.errors import UsageError
from diptych.core.registry import Registry
from diptych.metrics.ground_truth import GroundTruth

_FOLDS = re.compile(r"folds\((?P<count>[0-9]+)\)")
_FAMILY = "folds(n)"


@dataclass(frozen=True, eq=False)
class Fold:
    """One gallery: the rows of its images and texts, and who describes whom among them."""

    images: slice | np.ndarray
    texts: slice | np.ndarray
    ground_truth: GroundTruth


def _accept(ground_truth: GroundTruth) -> None:
    """Any test set will do."""


@dataclass(frozen=True)
class Partition:
    """A declared protocol.

    Attributes:
        name: as it is asked for and printed.
        description: one line of what it is.
        citation: where it comes from.
        count: into how many galleries of equal size the images are cut, in their order; values are
            averaged over them.
        check: refuses a test set that is not the protocol's.
    """

    name: str
    description: str
    citation: str
    count: int = 1
    check: Callable[[GroundTruth], None] = field(default=_accept, repr=False)

    def folds(self, ground_truth: GroundTruth) -> Iterator[Fold]:
        """The galleries, each with its ground truth."""
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
            yield Fold(_as_slice(images), _as_slice(texts), ground_truth.subset(images, texts))


def _as_slice(rows: np.ndarray) -> slice | np.ndarray:
    """Neighbouring rows as a slice, which copies nothing."""
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


PARTITIONS: Registry[Partition] = Registry("protocol", "diptych.evaluation.protocols")


def partition(name: str) -> Partition:
    """The protocol called ``name``: ``"full"``, ``"coco-1k"``, ``"coco-5k"``, ``"folds(10)"``, ..."""
    found = _FOLDS.fullmatch(name)
    if found is None:
        if name == _FAMILY:
            raise UsageError(f"protocol {name!r} needs a number", "for example folds(5)")
        return PARTITIONS.get(name)
    if int(found["count"]) < 1:
        raise UsageError(f"protocol {name!r}: at least one fold is needed")
    return replace(PARTITIONS.get(_FAMILY), name=name, count=int(found["count"]))
