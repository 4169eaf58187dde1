"""Where scores come from: two sets of rows, or a matrix that somebody already has.

A source gives a tile of scores either fast, within a known distance of the exact ones, or carefully,
with every score exact that lies near a threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from diptych.core.errors import DataError, NumericalError
from diptych.metrics.ground_truth import GroundTruth
from diptych.metrics.positives import Direction
from diptych.metrics.products import check_rows, distinct, pair_scores, rounding_band

# Marks which entries of a tile lie within the given bands (per image, per text) of a threshold.
NearThreshold = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


class ScoreSource(Protocol):
    """Scores of all images against all texts, a tile at a time."""

    def positives(self, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """Exact scores of the given pairs, float64."""

    def band(self, direction: Direction) -> np.ndarray | None:
        """Per query, how far a fast score may be from the exact one; None if there is no fast way."""

    def fast(self, images: slice, texts: slice, out: np.ndarray) -> None:
        """Write the tile's scores into the float32 matrix ``out``, each within the band."""

    def careful(self, images: slice, texts: slice, near: NearThreshold) -> np.ndarray:
        """The tile's scores in float64; every comparison with a threshold comes out exact."""


class RowProducts:
    """Inner products of image rows and text rows.

    Args:
        images: (n, d) float32, possibly memory-mapped.
        texts: (m, d) float32.
    """

    def __init__(
        self,
        images: np.ndarray,
        texts: np.ndarray,
        image_ids: Sequence[str] | None = None,
        text_ids: Sequence[str] | None = None,
    ) -> None:
        self.images, self.texts = np.asarray(images), np.asarray(texts)
        self._norms = {
            "i2t": check_rows(self.images, "image", image_ids),
            "t2i": check_rows(self.texts, "text", text_ids),
        }
        if self.images.shape[1] != self.texts.shape[1]:
            raise DataError(
                f"image rows have width {self.images.shape[1]}, text rows {self.texts.shape[1]}",
                "evaluate images and texts that the same model encoded",
            )

    def positives(self, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """Exact scores of the given pairs."""
        return pair_scores(self.images, self.texts, images, texts)

    def _band(self, direction: Direction, kind: type[np.floating]) -> np.ndarray:
        other = self._norms["t2i" if direction == "i2t" else "i2t"]
        return rounding_band(
            self.images.shape[1], np.dtype(kind), self._norms[direction], float(other.max(initial=0.0))
        )

    def band(self, direction: Direction) -> np.ndarray | None:
        """The bound of a float32 product; None where such a product could overflow."""
        band = self._band(direction, np.float32)
        return band if np.all(np.isfinite(band)) else None

    def fast(self, images: slice, texts: slice, out: np.ndarray) -> None:
        """One float32 matrix product."""
        np.matmul(self.images[images], self.texts[texts].T, out=out)

    def careful(self, images: slice, texts: slice, near: NearThreshold) -> np.ndarray:
        """A float64 product, and exact scores where even that is too near a threshold to decide.

        A model that has collapsed has rows that are equal, or equal but for their last digits. Equal
        rows are scored once; for the others the float64 band is 2**29 times narrower than float32's.
        What is left are exact ties of different rows, scored pair by pair in chunks: memory stays
        bounded, time grows with the number of such ties (about 0.25 microseconds each at d = 256).
        """
        left, right = self.images[images], self.texts[texts]
        tile: np.ndarray = left.astype(np.float64) @ right.astype(np.float64).T
        mask = near(tile, self._band("i2t", np.float64)[images], self._band("t2i", np.float64)[texts])
        rows, columns = np.nonzero(mask)
        if len(rows) > max(len(left), len(right)):
            left_first, left_of = distinct(left)
            right_first, right_of = distinct(right)
            if 2 * len(left_first) * len(right_first) <= len(rows):
                grid = np.indices((len(left_first), len(right_first))).reshape(2, -1)
                table = pair_scores(left, right, left_first[grid[0]], right_first[grid[1]])
                table = table.reshape(len(left_first), len(right_first))
                tile[rows, columns] = table[left_of[rows], right_of[columns]]
                return tile
        tile[rows, columns] = pair_scores(left, right, rows, columns)
        return tile


class GivenScores:
    """A full score matrix, taken as it is.

    Args:
        scores: (n_images, n_texts) numbers.
    """

    def __init__(self, scores: np.ndarray, ground_truth: GroundTruth) -> None:
        self.scores = np.asarray(scores)
        shape = (ground_truth.n_images, ground_truth.n_texts)
        if self.scores.shape != shape or self.scores.dtype.kind not in "fiu":
            raise DataError(
                f"scores must be a matrix of numbers of shape {shape} (images, texts), "
                f"got {self.scores.dtype} with shape {self.scores.shape}"
            )
        for row, values in enumerate(self.scores):
            bad = np.flatnonzero(~np.isfinite(values))
            if len(bad):
                raise NumericalError(
                    f"score of image row {row} and text row {int(bad[0])} is {values[bad[0]]}",
                    "give pairs that were not scored a low finite number",
                )

    def positives(self, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """The given scores of the given pairs."""
        scores: np.ndarray = self.scores[images, texts].astype(np.float64)
        return scores

    def band(self, direction: Direction) -> np.ndarray | None:
        """There is nothing to round."""
        return None

    def fast(self, images: slice, texts: slice, out: np.ndarray) -> None:
        """Never asked for, as there is no band."""
        raise NotImplementedError

    def careful(self, images: slice, texts: slice, near: NearThreshold) -> np.ndarray:
        """The given scores of the tile."""
        tile: np.ndarray = self.scores[images, texts].astype(np.float64)
        return tile
