"""Batches: the captions and images that are trained on together.

Three plans, each a pure function of ``(seed, epoch)``, so that a killed run resumes with the same
batches and any number of processes sees the same epoch:

``captions``
    every caption once per epoch; an image can meet itself in a batch, then its captions are several
    positives of one row.
``distinct``
    every caption once per epoch, and no image twice in one batch.
``grouped``
    every image once per epoch, with k of its captions (SmoothAP's batches).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from diptych.core.errors import UsageError

PlanName = Literal["captions", "distinct", "grouped"]


@dataclass(frozen=True)
class Batch:
    """Rows of a collection that are scored against each other.

    Attributes:
        images: (b,) int64 image rows, each once.
        captions: (c,) int64 caption rows, each once.
        caption_image: (c,) int64 place in ``images`` of each caption's image.
    """

    images: np.ndarray
    captions: np.ndarray
    caption_image: np.ndarray

    def shard(self, rank: int, world: int) -> Batch:
        """Return the part of one of ``world`` processes: whole images with their captions, in order."""
        places = np.array_split(np.arange(len(self.images)), world)[rank]
        first, stop = (int(places[0]), int(places[-1]) + 1) if len(places) else (0, 0)
        mine = (self.caption_image >= first) & (self.caption_image < stop)
        return Batch(self.images[first:stop], self.captions[mine], self.caption_image[mine] - first)


class BatchPlan:
    """Batches of a collection, epoch by epoch.

    Args:
        caption_image: (n_captions,) image row of each caption, not decreasing.
    """

    def __init__(
        self,
        caption_image: np.ndarray,
        n_images: int,
        size: int,
        plan: PlanName = "distinct",
        captions_per_image: int = 5,
        seed: int = 0,
    ) -> None:
        self._caption_image = np.asarray(caption_image, dtype=np.int64)
        self._starts = np.searchsorted(self._caption_image, np.arange(n_images + 1))
        self._described = np.flatnonzero(np.diff(self._starts))
        self._plan = plan
        self._k = captions_per_image
        self._seed = seed
        available = {
            "captions": len(self._caption_image),
            "distinct": len(self._described),
            "grouped": len(self._described),
        }[plan]
        if size < 2:
            raise UsageError(f"batch size {size}: a batch needs a negative", "use a batch size of at least 2")
        if size > available:
            what = "captions" if plan == "captions" else "images with captions"
            raise UsageError(
                f"batch size {size} is larger than the {available} {what} there are",
                "use a smaller batch size, or more data",
            )
        total = len(self._caption_image) if plan != "grouped" else len(self._described)
        self._steps = -(-total // size)

    def __len__(self) -> int:
        return self._steps

    def epoch(self, epoch: int) -> list[Batch]:
        """Return all batches of one epoch, the same for the same seed and epoch."""
        random = np.random.default_rng([self._seed, epoch])
        if self._plan == "grouped":
            order = random.permutation(self._described)
            return [self._grouped(images, random) for images in np.array_split(order, self._steps)]
        if self._plan == "captions":
            order = random.permutation(len(self._caption_image))
        else:
            order = self._distinct_order(random)
        return [self._batch(captions) for captions in np.array_split(order, self._steps)]

    def _batch(self, captions: np.ndarray) -> Batch:
        images, place = np.unique(self._caption_image[captions], return_inverse=True)
        by_image = np.argsort(place, kind="stable")
        return Batch(images, captions[by_image], place[by_image].astype(np.int64))

    def _grouped(self, images: np.ndarray, random: np.random.Generator) -> Batch:
        chosen = []
        for image in images:
            own = np.arange(self._starts[image], self._starts[image + 1])
            chosen.append(random.permutation(own)[: self._k] if len(own) > self._k else own)
        place = np.repeat(np.arange(len(images)), [len(own) for own in chosen])
        return Batch(images, np.concatenate(chosen), place)

    def _distinct_order(self, random: np.random.Generator) -> np.ndarray:
        """Rounds in which each image gives one caption; a round begins with images that the batch
        it shares with the round before does not hold yet."""
        n = len(self._caption_image)
        shuffled = random.permutation(n)
        shuffled = shuffled[np.argsort(self._caption_image[shuffled], kind="stable")]
        turn = np.arange(n) - self._starts[self._caption_image[shuffled]]
        bounds = np.cumsum([0] + [len(part) for part in np.array_split(np.arange(n), self._steps)])
        order = np.empty(n, dtype=np.int64)
        done = 0
        for number in range(int(turn.max()) + 1):
            captions = random.permutation(shuffled[turn == number])
            batch_start = bounds[np.searchsorted(bounds, done, side="right") - 1]
            held = self._caption_image[order[batch_start:done]]
            again = np.isin(self._caption_image[captions], held)
            order[done : done + len(captions)] = np.concatenate([captions[~again], captions[again]])
            done += len(captions)
        return order
