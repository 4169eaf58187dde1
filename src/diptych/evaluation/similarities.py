"""By what rows are compared: the inner product (of unit rows: the cosine), or the order penalty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from diptych.core.errors import UnknownNameError
from diptych.evaluation.ground_truth import Direction
from diptych.evaluation.order import OrderScores, order_top_k
from diptych.evaluation.sources import RowProducts, ScoreSource
from diptych.evaluation.topk import top_k

__all__ = ["SIMILARITIES", "Similarity", "similarity"]


class _Best(Protocol):
    def __call__(
        self, images: np.ndarray, texts: np.ndarray, direction: Direction, k: int
    ) -> tuple[np.ndarray, np.ndarray]: ...


def _best_products(
    images: np.ndarray, texts: np.ndarray, direction: Direction, k: int
) -> tuple[np.ndarray, np.ndarray]:
    return top_k(images, texts, k) if direction == "i2t" else top_k(texts, images, k)


@dataclass(frozen=True)
class Similarity:
    """How an image's row and a text's row make a score.

    Attributes:
        name: as it is asked for and printed.
        description: one line of what it is.
        source: from image rows, text rows and the ids of both to where scores come from.
        best: from image rows, text rows, direction and k to the k best of each query and their scores.
    """

    name: str
    description: str
    source: Callable[[np.ndarray, np.ndarray, Sequence[str] | None, Sequence[str] | None], ScoreSource]
    best: _Best

    def score(self, image: np.ndarray, text: np.ndarray) -> float:
        """The exact score of one image's row and one text's row, float32 of the same width."""
        first = np.zeros(1, dtype=np.int64)
        return float(self.source(image[None], text[None], None, None).positives(first, first)[0])


SIMILARITIES = {
    one.name: one
    for one in (
        Similarity(
            "cosine",
            "inner product of the rows, which is the cosine of unit rows",
            RowProducts,
            _best_products,
        ),
        Similarity(
            "order",
            "minus the squared length of what the text's row exceeds the image's by (order embeddings)",
            OrderScores,
            order_top_k,
        ),
    )
}
"""The similarities by name."""


def similarity(name: str) -> Similarity:
    """The similarity called ``name``.

    Raises:
        UnknownNameError: no such similarity; the message lists those there are.
    """
    if name not in SIMILARITIES:
        raise UnknownNameError("similarity", name, SIMILARITIES)
    return SIMILARITIES[name]
