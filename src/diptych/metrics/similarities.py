"""Similarities by name: how an image's row and a text's row make a score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from diptych.core.errors import UnknownNameError
from diptych.metrics.ground_truth import Direction
from diptych.metrics.sources import CosineRows, OrderScores, RowProducts, ScoreSource
from diptych.metrics.topk import best_of


@dataclass(frozen=True)
class Similarity:
    """How an image's row and a text's row make a score.

    Attributes:
        name: as it is asked for and printed.
        description: one line of what it is.
        of: from image rows, text rows and the ids of both to a score source.
    """

    name: str
    description: str
    of: Callable[[np.ndarray, np.ndarray, Sequence[str] | None, Sequence[str] | None], ScoreSource]

    def source(
        self,
        images: np.ndarray,
        texts: np.ndarray,
        image_ids: Sequence[str] | None = None,
        text_ids: Sequence[str] | None = None,
    ) -> ScoreSource:
        """Return the scores of (n, d) and (m, d) float32 rows; ids are for messages."""
        return self.of(images, texts, image_ids, text_ids)

    def best(
        self, images: np.ndarray, texts: np.ndarray, direction: Direction, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of the k best of each query, best first, ties to the lower, and their scores."""
        return best_of(self.source(images, texts), direction, k)

    def score(self, image: np.ndarray, text: np.ndarray) -> float:
        """Return the exact score of one image's row and one text's row, float32 of the same width."""
        first = np.zeros(1, dtype=np.int64)
        return float(self.source(image[None], text[None]).pairs(first, first)[0])


SIMILARITIES = {
    one.name: one
    for one in (
        Similarity("cosine", "cosine of the rows: inner product of the rows at unit length", CosineRows),
        Similarity("dot", "inner product of the rows as they are", RowProducts),
        Similarity(
            "order",
            "minus the squared length of what the text's row exceeds the image's by (order embeddings)",
            OrderScores,
        ),
    )
}
"""The similarities by name."""


def similarity(name: str) -> Similarity:
    """Return the similarity called ``name``."""
    if name not in SIMILARITIES:
        raise UnknownNameError("similarity", name, SIMILARITIES)
    return SIMILARITIES[name]
