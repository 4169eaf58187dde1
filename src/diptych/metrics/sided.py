"""A score source seen from one direction: queries and a gallery instead of images and texts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from diptych.metrics.positives import Direction
from diptych.metrics.sources import ScoreSource

NearQuery = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From a tile (queries, gallery) and the band of each query to which of its scores have to be exact."""


class SidedScores:
    """Scores of queries against a gallery."""

    def __init__(self, source: ScoreSource, direction: Direction, n_queries: int, gallery: int) -> None:
        self.source, self.direction = source, direction
        self.n_queries, self.gallery = n_queries, gallery

    @property
    def band(self) -> np.ndarray | None:
        """(n_queries,) how far a fast score may be from the exact one; None if there is no fast way."""
        return self.source.band(self.direction)

    def exact(self, queries: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Exact scores of the given pairs, float64."""
        if self.direction == "i2t":
            return self.source.positives(queries, rows)
        return self.source.positives(rows, queries)

    def fast(self, queries: slice, rows: slice, out: np.ndarray) -> None:
        """Write the tile's scores into the float32 matrix ``out`` (queries, gallery), within the band."""
        if self.direction == "i2t":
            self.source.fast(queries, rows, out)
        else:
            self.source.fast(rows, queries, out.T)

    def careful(self, queries: slice, rows: slice, near: NearQuery) -> np.ndarray:
        """(queries, gallery) float64; what ``near`` marks is exact. A source without bands never asks it."""
        if self.direction == "i2t":
            return self.source.careful(queries, rows, lambda tile, image, text: near(tile, image))
        tile = self.source.careful(rows, queries, lambda tile, image, text: near(tile.T, text).T)
        return np.ascontiguousarray(tile.T)
