"""Score sources: two sets of rows and how they are compared, or a matrix of given scores.

A source gives a tile of scores either fast, within a known distance of the exact ones, or carefully,
with every score exact that lies near a threshold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych.core.errors import DataError, NumericalError, UnknownNameError
from diptych.metrics.ground_truth import Direction
from diptych.metrics.products import check_rows, cosine_rows, pair_scores, rounding_band
from diptych.metrics.runs import blocks

Rows = slice | np.ndarray  # some rows of one side: a slice where they are neighbours, which copies nothing

# Marks which entries of a tile lie within the given bands (per image, per text) of a threshold.
NearThreshold = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


class ScoreSource(ABC):
    """Scores of all images against all texts, a tile at a time."""

    shape: tuple[int, int]  # how many images and how many texts
    similarity: str  # what the scores are, for the protocol
    one_core = False  # a tile is computed by one core, so that as many workers as cores are of use

    @abstractmethod
    def pairs(self, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """Return exact scores of the given pairs, (p,) float64."""

    @abstractmethod
    def careful(self, images: slice, texts: slice, near: NearThreshold) -> np.ndarray:
        """Return the tile's scores in float64; every comparison with a threshold comes out exact."""

    @abstractmethod
    def part(self, images: Rows, texts: Rows) -> ScoreSource:
        """Return the scores among some images and some texts."""

    def band(self, direction: Direction) -> np.ndarray | None:
        """Return per query how far a fast score may be from the exact one; None if there is no fast way."""
        return None

    def fast(self, images: slice, texts: slice, out: np.ndarray) -> None:
        """Write the tile's scores into the float32 matrix ``out``, each within the band."""
        raise NotImplementedError

    def cosines(self) -> ScoreSource | None:
        """Return how similar images and texts are, in [-1, 1]; None where the scores do not say."""
        return None


class DenseRows(ScoreSource):
    """Two matrices of float32 rows, (n, d) and (m, d), possibly memory-mapped; checked once."""

    unit = False  # rows are divided by their length first

    def __init__(
        self,
        images: np.ndarray,
        texts: np.ndarray,
        image_ids: Sequence[str] | None = None,
        text_ids: Sequence[str] | None = None,
        sides: tuple[str, str] = ("image", "text"),
    ) -> None:
        images, texts = np.asarray(images), np.asarray(texts)
        norms = check_rows(images, sides[0], image_ids), check_rows(texts, sides[1], text_ids)
        if images.shape[1] != texts.shape[1]:
            text = f"{sides[0]} rows have width {images.shape[1]}, {sides[1]} rows {texts.shape[1]}"
            raise DataError(text, "give rows that the same model encoded")
        self.images, self.texts = (cosine_rows(rows) if self.unit else rows for rows in (images, texts))
        if self.images is not images or self.texts is not texts:
            norms = check_rows(self.images, "image"), check_rows(self.texts, "text")
        self.shape: tuple[int, int] = len(images), len(texts)
        self._norms = {"i2t": norms[0], "t2i": norms[1]}

    def part(self, images: Rows, texts: Rows) -> DenseRows:
        found = copy(self)
        found.images, found.texts = self.images[images], self.texts[texts]
        found.shape = len(found.images), len(found.texts)
        found._norms = {"i2t": self._norms["i2t"][images], "t2i": self._norms["t2i"][texts]}
        return found


class RowProducts(DenseRows):
    similarity = "dot"

    def pairs(self, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        return pair_scores(self.images, self.texts, images, texts)

    def cosines(self) -> ScoreSource | None:
        return CosineRows(self.images, self.texts)

    def _band(self, direction: Direction, kind: type[np.floating]) -> np.ndarray:
        other = self._norms["t2i" if direction == "i2t" else "i2t"]
        return rounding_band(
            self.images.shape[1], np.dtype(kind), self._norms[direction], float(other.max(initial=0.0))
        )

    def band(self, direction: Direction) -> np.ndarray | None:
        band = self._band(direction, np.float32)
        return band if np.all(np.isfinite(band)) else None

    def fast(self, images: slice, texts: slice, out: np.ndarray) -> None:
        np.matmul(self.images[images], self.texts[texts].T, out=out)

    def careful(self, images: slice, texts: slice, near: NearThreshold) -> np.ndarray:
        """Compute a float64 product, and exact scores where even that is too near a threshold to decide.

        A collapsed model has rows that are equal or nearly so. Equal rows are scored once; for the others the
        float64 band is 2**29 times narrower than float32's. Exact ties of different rows are scored pair by pair:
        memory stays bounded, time grows with their number (about 0.25 microseconds each at d = 256).
        """
        left, right = self.images[images], self.texts[texts]
        tile: np.ndarray = left.astype(np.float64) @ right.astype(np.float64).T
        mask = near(tile, self._band("i2t", np.float64)[images], self._band("t2i", np.float64)[texts])
        rows, columns = np.nonzero(mask)
        if len(rows) > max(len(left), len(right)):
            once: dict[str, Any] = {"axis": 0, "return_index": True, "return_inverse": True}
            (_, left_first, left_of), (_, right_first, right_of) = (
                np.unique(one, **once) for one in (left, right)
            )
            if 2 * len(left_first) * len(right_first) <= len(rows):
                grid = np.indices((len(left_first), len(right_first))).reshape(2, -1)
                table = pair_scores(left, right, left_first[grid[0]], right_first[grid[1]])
                table = table.reshape(len(left_first), len(right_first))
                tile[rows, columns] = table[left_of[rows], right_of[columns]]
                return tile
        tile[rows, columns] = pair_scores(left, right, rows, columns)
        return tile


class CosineRows(RowProducts):
    """Cosines: inner products of the rows divided by their length; unit rows are used as they are."""

    similarity = "cosine"
    unit = True

    def cosines(self) -> ScoreSource | None:
        return self


_CHUNK_NUMBERS = 1 << 15  # float64 numbers compared at once: 256 KB, which stays in cache


class OrderScores(DenseRows):
    """Order-embedding scores: minus ``‖max(0, text − image)‖²``, how little a text's row exceeds its image's.

    Computed in float64 and added in one fixed order (NumPy's pairwise sum along the row), so that equal rows tie
    exactly. There is no fast way: single precision saves only a third of the time.

    Source: Vendrov, Kiros, Fidler and Urtasun, Order-Embeddings of Images and Language, ICLR 2016, Eq. 2; Faghri
    et al., VSE++, BMVC 2018 (Order0, Order++).
    """

    similarity = "order"

    def _chunks(self, size: int) -> Iterator[slice]:
        return blocks(size, _CHUNK_NUMBERS // max(1, int(self.images.shape[1])))

    def pairs(self, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        scores = np.empty(len(images), dtype=np.float64)
        for here in self._chunks(len(images)):
            scores[here] = _order_scores(self.images[images[here]], self.texts[texts[here]])
        return scores

    def careful(self, images: slice, texts: slice, near: NearThreshold) -> np.ndarray:
        rows, some = self.images[images], self.texts[texts]
        scores = np.empty((len(rows), len(some)), dtype=np.float64)
        for here in self._chunks(len(some)):
            for row, image in enumerate(rows):
                scores[row, here] = _order_scores(image, some[here])
        return scores


def _order_scores(images: np.ndarray, texts: np.ndarray) -> np.ndarray:
    excess = texts.astype(np.float64)
    excess -= images
    np.maximum(excess, 0.0, out=excess)
    excess *= excess
    return np.asarray(0.0 - np.add.reduce(excess, axis=-1))  # not negated: zero stays +0


_COSINE = 1 + 1e-3  # the greatest a cosine of rounded rows may be


class GivenScores(ScoreSource):
    """A full score matrix (n_images, n_texts), taken as it is."""

    similarity = "given scores"

    def __init__(self, scores: np.ndarray) -> None:
        self.scores: np.ndarray = np.asarray(scores)
        if self.scores.ndim != 2 or self.scores.dtype.kind not in "fiu":
            text = f"{self.scores.dtype} with shape {self.scores.shape}"
            raise DataError(f"scores must be a matrix of numbers (images, texts), got {text}")
        self.shape: tuple[int, int] = self.scores.shape
        for row, values in enumerate(self.scores):
            bad = np.flatnonzero(~np.isfinite(values))
            if len(bad):
                raise NumericalError(
                    f"score of image row {row} and text row {int(bad[0])} is {values[bad[0]]}",
                    "give pairs that were not scored a low finite number",
                )

    def cosines(self) -> ScoreSource | None:
        low, high = self.scores.min(initial=0), self.scores.max(initial=0)
        return self if low >= -_COSINE and high <= _COSINE else None

    def part(self, images: Rows, texts: Rows) -> GivenScores:
        found = copy(self)
        found.scores = self.scores[images][:, texts]
        found.shape = found.scores.shape
        return found

    def pairs(self, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        return np.asarray(self.scores[images, texts].astype(np.float64))

    def careful(self, images: slice, texts: slice, near: NearThreshold) -> np.ndarray:
        return np.asarray(self.scores[images, texts].astype(np.float64))


# from a tile (queries, gallery) and the band of each query to which of its scores have to be exact
NearQuery = Callable[[np.ndarray, np.ndarray], np.ndarray]


class DirectedScores:
    def __init__(self, source: ScoreSource, direction: Direction) -> None:
        self.source, self.direction = source, direction
        self.n_queries, self.gallery = source.shape if direction == "i2t" else source.shape[::-1]

    @property
    def band(self) -> np.ndarray | None:
        return self.source.band(self.direction)

    def exact(self, queries: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return self.source.pairs(*((queries, rows) if self.direction == "i2t" else (rows, queries)))

    def fast(self, queries: slice, rows: slice, out: np.ndarray) -> None:
        if self.direction == "i2t":
            self.source.fast(queries, rows, out)
        else:
            self.source.fast(rows, queries, out.T)

    def careful(self, queries: slice, rows: slice, near: NearQuery) -> np.ndarray:
        """Return (queries, gallery) float64; what ``near`` marks is exact."""
        if self.direction == "i2t":
            return self.source.careful(queries, rows, lambda tile, image, text: near(tile, image))
        tile = self.source.careful(rows, queries, lambda tile, image, text: near(tile.T, text).T)
        return np.ascontiguousarray(tile.T)


@dataclass(frozen=True)
class Similarity:
    name: str  # as it is requested and printed
    description: str  # one line of what it is
    # from (n, d) image rows, (m, d) text rows, float32, and the ids of both, for messages, to their scores
    source: Callable[..., ScoreSource]

    def best(
        self, images: np.ndarray, texts: np.ndarray, direction: Direction, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the gallery rows of the k best of each query, best first, ties to the lower, and their scores."""
        from diptych.metrics.topk import best_of

        return best_of(self.source(images, texts), direction, k)


def _products(images: Any, texts: Any, *ids: Any) -> ScoreSource:
    from scipy.sparse import issparse

    from diptych.metrics.sparse_products import SparseProducts

    kind = SparseProducts if issparse(images) or issparse(texts) else RowProducts
    return kind(images, texts, *ids)


SIMILARITIES = {
    one.name: one
    for one in (
        Similarity("cosine", "cosine of the rows: inner product of the rows at unit length", CosineRows),
        Similarity("dot", "inner product of the rows as they are", _products),
        Similarity(
            "order",
            "minus the squared length of what the text's row exceeds the image's by (order embeddings)",
            OrderScores,
        ),
    )
}  # the similarities by name


def similarity(name: str) -> Similarity:
    if name not in SIMILARITIES:
        raise UnknownNameError("similarity", name, SIMILARITIES)
    return SIMILARITIES[name]
