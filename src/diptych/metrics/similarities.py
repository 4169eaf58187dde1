"""By what rows are compared: the inner product (of unit rows: the cosine), or the order penalty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from diptych.core.context import track
from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.metrics.positives import Direction
from diptych.metrics.products import check_rows
from diptych.metrics.sources import NearThreshold, RowProducts, ScoreSource
from diptych.metrics.topk import top_k

# The score of order embeddings: how little a text's row exceeds its image's.
#
# An image is thought to lie below the texts that describe it in a partial order; the penalty of a pair
# is ``‖max(0, text − image)‖²`` and its score is minus that: 0 at best, where no coordinate of the text
# exceeds the image's. The score is not symmetric, and no matrix product gives it.
#
# By definition here it is computed in float64, coordinate by coordinate, and added in one fixed order
# (NumPy's pairwise sum along the row). Equal rows therefore tie exactly, and no score depends on block
# size, thread count or position. There is no fast way that would have to be checked: single precision
# saves only a third of the time, about one nanosecond per coordinate and pair.
#
# Source: Vendrov, Kiros, Fidler and Urtasun, Order-Embeddings of Images and Language, ICLR 2016, Eq. 2;
# Faghri et al., VSE++, BMVC 2018 (Order0, Order++).

_CHUNK_NUMBERS = 1 << 15  # float64 numbers compared at once: 256 KB, which stays in cache
_QUERIES = 100


def _minus_penalty(image: np.ndarray, text: np.ndarray, out: np.ndarray) -> None:
    """Scores of float64 rows, which broadcast, into ``out``; rows along the last axis but one."""
    excess = text - image
    np.maximum(excess, 0.0, out=excess)
    excess *= excess
    np.add.reduce(excess, axis=-1, out=out)
    np.subtract(0.0, out, out=out)  # not negated: zero stays +0


class OrderScores:
    """Order-embedding scores of image rows and text rows.

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
        check_rows(self.images, "image", image_ids)
        check_rows(self.texts, "text", text_ids)
        if self.images.shape[1] != self.texts.shape[1]:
            raise DataError(
                f"image rows have width {self.images.shape[1]}, text rows {self.texts.shape[1]}",
                "evaluate images and texts that the same model encoded",
            )
        self._step = max(1, _CHUNK_NUMBERS // max(1, self.images.shape[1]))

    def positives(self, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """Scores of the given pairs."""
        scores = np.empty(len(images), dtype=np.float64)
        for begin in range(0, len(images), self._step):
            here = slice(begin, begin + self._step)
            _minus_penalty(
                self.images[images[here]].astype(np.float64),
                self.texts[texts[here]].astype(np.float64),
                scores[here],
            )
        return scores

    def band(self, direction: Direction) -> np.ndarray | None:
        """There is no fast way, so nothing to round."""
        return None

    def fast(self, images: slice, texts: slice, out: np.ndarray) -> None:
        """Never asked for, as there is no band."""
        raise NotImplementedError

    def careful(self, images: slice, texts: slice, near: NearThreshold) -> np.ndarray:
        """The scores of the tile, all of them exact."""
        return self.tile(images, texts)

    def tile(self, images: slice, texts: slice) -> np.ndarray:
        """(images, texts) float64; memory above the result is bounded by one chunk of texts."""
        rows = self.images[images].astype(np.float64)
        some = self.texts[texts]
        scores = np.empty((len(rows), len(some)), dtype=np.float64)
        for begin in range(0, len(some), self._step):
            here = slice(begin, begin + self._step)
            chunk = some[here].astype(np.float64)
            for row, image in enumerate(rows):
                _minus_penalty(image, chunk, scores[row, here])
        return scores


def order_top_k(
    images: np.ndarray, texts: np.ndarray, direction: Direction, k: int, *, block: int = 2_500_000
) -> tuple[np.ndarray, np.ndarray]:
    """The best ``min(k, m)`` of the gallery for every query, best first, ties to the lower row.

    Args:
        images: (n, d) float32 rows.
        texts: (m, d) float32 rows.

    Returns:
        Gallery rows, int64, and their scores, float64, one row per query.
    """
    for what, value in (("k", k), ("block", block)):
        if value < 1:
            raise UsageError(f"{what} is {value}, it must be at least 1")
    source = OrderScores(images, texts)
    n_queries, gallery = (len(images), len(texts)) if direction == "i2t" else (len(texts), len(images))
    if not gallery:
        raise DataError("order embeddings: the gallery is empty")
    k = min(k, gallery)
    rows = np.empty((n_queries, k), dtype=np.int64)
    scores = np.empty((n_queries, k), dtype=np.float64)
    step = max(1, min(_QUERIES, block // gallery))
    for begin in track(range(0, n_queries, step), "top k", unit="blocks"):
        here, everything = slice(begin, min(begin + step, n_queries)), slice(0, gallery)
        tile = source.tile(here, everything) if direction == "i2t" else source.tile(everything, here).T
        rows[here] = np.argsort(-tile, axis=1, kind="stable")[:, :k]
        scores[here] = np.take_along_axis(tile, rows[here], axis=1)
    return rows, scores


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
    """The similarity called ``name``."""
    if name not in SIMILARITIES:
        raise UnknownNameError("similarity", name, SIMILARITIES)
    return SIMILARITIES[name]
