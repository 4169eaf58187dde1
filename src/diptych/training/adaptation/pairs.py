"""Which pairs of a collection are learned from: a function of the seed and the number of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from diptych.core.draws import draw_below, draw_uniform
from diptych.core.errors import UsageError
from diptych.data.collection import Collection

Captions = Literal["one", "all"]
"""Of each picture one caption, drawn too, or all it has."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pictures with their captions, as rows of a collection.

    Attributes:
        images: (n,) int64 rows of pictures, each once.
        captions: (m,) int64 rows of captions.
        caption_image: (m,) int64 place in ``images`` of each caption's picture.
    """

    images: np.ndarray
    captions: np.ndarray
    caption_image: np.ndarray

    @property
    def positives(self) -> np.ndarray:
        """(n, m) boolean: who describes whom."""
        positives: np.ndarray = np.arange(len(self.images))[:, None] == self.caption_image[None]
        return positives


def draw_pairs(collection: Collection, pairs: int, seed: int = 0, captions: Captions = "one") -> Pairs:
    """Draw pictures that have captions; those of fewer pairs of the same seed are among those of more."""
    if captions not in ("one", "all"):
        raise UsageError(f"captions {captions!r}", "'one' or 'all' of each picture's")
    able = np.flatnonzero(collection.captions_per_image > 0)
    if not 0 <= pairs <= len(able):
        raise UsageError(
            f"{pairs:,} pairs of {collection.name}, which has {len(able):,} pictures with captions to draw from",
            f"ask for 0 to {len(able):,} pairs",
        )
    order = np.argsort(draw_uniform(seed, 0, able), kind="stable")
    images = able[order][:pairs].astype(np.int64)
    starts, counts = collection.caption_start[images], collection.captions_per_image[images]
    if captions == "one":
        return Pairs(images, starts + draw_below(counts, seed, 1, images), np.arange(pairs))
    places = np.repeat(np.arange(pairs), counts)
    within = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
    return Pairs(images, starts[places] + within, places)
