"""Scores of sparse rows: inner products of bags of weighted terms, exact, a tile at a time.

The score of an image and a text is, by definition here, the sum over their common terms of the products
of their two float32 weights, multiplied and added in float64 in the order of the columns. Every product
of two float32 is exact in float64, and SciPy's sparse product adds along the row of its left side, so a
tile, a single pair and the transposed tile have the same bits: equal rows tie exactly, and no score depends
on block size, thread count or position. A row without terms scores 0 with everything.

A tile takes as long as its rows have terms in common (FLOPs of thesis Eq. 3.1): there is no faster way
that would have to be checked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array, issparse

from diptych.core.context import track
from diptych.core.errors import DataError, NumericalError, UsageError
from diptych.metrics.positives import Direction
from diptych.metrics.sources import NearThreshold

_PAIRS = 1 << 14  # pairs scored at once, where single pairs are asked for


def check_sparse_rows(rows: csr_array, side: str, ids: Sequence[str] | None = None) -> csr_array:
    """Sparse float32 rows with each column once and ascending, all weights finite.

    Args:
        rows: (n, |V|), sparse, float32; copied only where columns are out of order or come twice.
    """
    if not issparse(rows) or rows.ndim != 2 or rows.dtype != np.float32:
        kind, shape = getattr(rows, "dtype", type(rows).__name__), getattr(rows, "shape", "no shape")
        raise DataError(
            f"{side} rows must be a sparse float32 matrix, got {kind} with shape {shape}",
            "give a scipy.sparse.csr_array of float32",
        )
    matrix = csr_array(rows)
    if ids is not None and len(ids) != matrix.shape[0]:
        raise DataError(f"{len(ids)} {side} ids for {matrix.shape[0]} {side} rows")
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if len(bad):
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        name = "" if ids is None else f" {ids[row]!r}"
        raise NumericalError(
            f"{side}{name} (row {row}) is not finite: a weight is {matrix.data[bad[0]]}",
            "the head diverged or its input was broken: make the rows again",
        )
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


class SparseProducts:
    """Inner products of sparse image rows and sparse text rows; a :class:`.sources.ScoreSource`.

    Args:
        images: (n, |V|) sparse float32, possibly memory-mapped.
        texts: (m, |V|) sparse float32 over the same terms.
    """

    def __init__(
        self,
        images: csr_array,
        texts: csr_array,
        image_ids: Sequence[str] | None = None,
        text_ids: Sequence[str] | None = None,
    ) -> None:
        self.images = check_sparse_rows(images, "image", image_ids)
        self.texts = check_sparse_rows(texts, "text", text_ids)
        _check_widths(self.images, self.texts, "image", "text")

    @property
    def empty(self) -> tuple[int, int]:
        """How many images and how many texts have no term."""
        return _empty(self.images), _empty(self.texts)

    def part(self, images: slice | np.ndarray, texts: slice | np.ndarray) -> SparseProducts:
        """The scores among some image rows and some text rows."""
        return SparseProducts(self.images[images], self.texts[texts])

    def positives(self, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """Scores of the given pairs."""
        scores = np.empty(len(images), dtype=np.float64)
        ones = np.ones(self.images.shape[1])
        for begin in range(0, len(images), _PAIRS):
            here = slice(begin, begin + _PAIRS)
            left = self.images[images[here]].astype(np.float64)
            right = self.texts[texts[here]].astype(np.float64)
            scores[here] = left.multiply(right).tocsr() @ ones  # adds in the order of the columns
        return scores

    def band(self, direction: Direction) -> np.ndarray | None:
        """There is no fast way, so nothing to round."""
        return None

    def fast(self, images: slice, texts: slice, out: np.ndarray) -> None:
        """Never asked for, as there is no band."""
        raise NotImplementedError

    def careful(self, images: slice, texts: slice, near: NearThreshold) -> np.ndarray:
        """The scores of the tile, all of them exact."""
        return _tile(self.images[images], self.texts[texts].astype(np.float64).T)


def sparse_top_k(
    queries: csr_array,
    gallery: csr_array,
    k: int,
    *,
    block: int = 2_500_000,
    query_ids: Sequence[str] | None = None,
    gallery_ids: Sequence[str] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The best ``min(k, m)`` gallery rows of every query, best first, ties to the lower row.

    Only rows that score more than 0 are found, as by an inverted index.

    Args:
        queries: (n, |V|) sparse float32 rows.
        gallery: (m, |V|) sparse float32 rows over the same terms; held once more in float64.

    Returns:
        (n, min(k, m)) int64 gallery rows, -1 where a query finds fewer, and their exact scores, float64, 0 there.
    """
    for what, value in (("k", k), ("block", block)):
        if value < 1:
            raise UsageError(f"{what} is {value}, it must be at least 1")
    queries = check_sparse_rows(queries, "query", query_ids)
    gallery = check_sparse_rows(gallery, "gallery", gallery_ids)
    _check_widths(queries, gallery, "query", "gallery")
    n, m = queries.shape[0], gallery.shape[0]
    if not m:
        raise DataError(f"{n} queries cannot search a gallery of 0 rows")
    k = min(k, m)
    across = gallery.astype(np.float64).T.tocsr()
    rows = np.empty((n, k), dtype=np.int64)
    scores = np.empty((n, k), dtype=np.float64)
    step = max(1, block // m)
    for begin in track(range(0, n, step), "top k", unit="blocks"):
        here = slice(begin, begin + step)
        rows[here], scores[here] = _best(_tile(queries[here], across), k)
    nothing = scores <= 0
    rows[nothing], scores[nothing] = -1, 0.0
    return rows, scores


def _best(tile: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k best columns of each row of a tile, ties to the lower column."""
    least = np.partition(tile, tile.shape[1] - k, axis=1)[:, tile.shape[1] - k, None]
    above, tied = tile > least, tile == least
    room = k - np.count_nonzero(above, axis=1)[:, None]
    chosen = above | (tied & (np.cumsum(tied, axis=1) <= room))
    columns = np.nonzero(chosen)[1].reshape(len(tile), k)
    scores = np.take_along_axis(tile, columns, axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")  # columns ascend, so the lower comes first
    return np.take_along_axis(columns, order, axis=1), np.take_along_axis(scores, order, axis=1)


def _tile(left: csr_array, right: csr_array) -> np.ndarray:
    """(left rows, right columns) float64; the sparse product adds along each row of ``left``."""
    tile: np.ndarray = (left.astype(np.float64) @ right).toarray()
    return tile


def _empty(rows: csr_array) -> int:
    """Rows whose weights are all 0."""
    has = np.concatenate([[0], np.cumsum(rows.data != 0)])[rows.indptr]
    return int(np.sum(np.diff(has) == 0))


def _check_widths(left: csr_array, right: csr_array, one: str, other: str) -> None:
    if left.shape[1] != right.shape[1]:
        raise DataError(
            f"{one} rows have {left.shape[1]} terms, {other} rows {right.shape[1]}",
            "score rows that the same head made",
        )
