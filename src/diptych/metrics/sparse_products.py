"""Scores of sparse rows: inner products of bags of weighted terms, exact, a tile at a time.

A score is the sum over common terms of the products of two float32 weights, multiplied and added in float64 in
the order of the columns. SciPy's sparse product adds along the row of its left side, so a tile, a single pair and
the transposed tile have the same bits: equal rows tie exactly. A tile takes as long as its rows have terms in
common (FLOPs of thesis Eq. 3.1): there is no faster way that would have to be checked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array, issparse

from diptych.core.errors import DataError, NumericalError
from diptych.metrics.products import check_ids
from diptych.metrics.runs import blocks, starts
from diptych.metrics.sources import NearThreshold, Rows, ScoreSource
from diptych.metrics.topk import BLOCK, best_of

_PAIRS = 1 << 14  # pairs scored at once, where single pairs are requested


def check_sparse_rows(rows: csr_array, side: str, ids: Sequence[str] | None = None) -> csr_array:
    """Return sparse float32 rows with each column once and ascending; copied only where they were not."""
    if not issparse(rows) or rows.ndim != 2 or rows.dtype != np.float32:
        kind, shape = getattr(rows, "dtype", type(rows).__name__), getattr(rows, "shape", "no shape")
        raise DataError(
            f"{side} rows must be a sparse float32 matrix, got {kind} with shape {shape}",
            "give a scipy.sparse.csr_array of float32",
        )
    matrix = csr_array(rows)
    check_ids(side, ids, matrix.shape[0])
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


class SparseProducts(ScoreSource):
    """Inner products of sparse image rows (n, |V|) and sparse text rows (m, |V|), possibly memory-mapped."""

    similarity = "dot"
    one_core = True

    def __init__(
        self,
        images: csr_array,
        texts: csr_array,
        image_ids: Sequence[str] | None = None,
        text_ids: Sequence[str] | None = None,
        sides: tuple[str, str] = ("image", "text"),
    ) -> None:
        self.images: csr_array = check_sparse_rows(images, sides[0], image_ids)
        self.texts: csr_array = check_sparse_rows(texts, sides[1], text_ids)
        self.shape: tuple[int, int] = self.images.shape[0], self.texts.shape[0]
        if self.images.shape[1] != self.texts.shape[1]:
            raise DataError(
                f"{sides[0]} rows have {self.images.shape[1]} terms, {sides[1]} rows {self.texts.shape[1]}",
                "score rows that the same head made",
            )

    @property
    def empty(self) -> tuple[int, int]:
        sides = (self.images, self.texts)
        images, texts = (int(np.sum(np.diff(starts(one.data != 0)[one.indptr]) == 0)) for one in sides)
        return images, texts

    def part(self, images: Rows, texts: Rows) -> SparseProducts:
        return SparseProducts(self.images[images], self.texts[texts])

    def pairs(self, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        scores = np.empty(len(images), dtype=np.float64)
        ones = np.ones(self.images.shape[1])
        for here in blocks(len(images), _PAIRS):
            left = self.images[images[here]].astype(np.float64)
            right = self.texts[texts[here]].astype(np.float64)
            scores[here] = left.multiply(right).tocsr() @ ones  # adds in the order of the columns
        return scores

    def careful(self, images: slice, texts: slice, near: NearThreshold) -> np.ndarray:
        right = self.texts[texts].astype(np.float64).T
        return np.asarray((self.images[images].astype(np.float64) @ right).toarray())


def sparse_top_k(
    queries: csr_array, gallery: csr_array, k: int, *, block: int = BLOCK
) -> tuple[np.ndarray, np.ndarray]:
    """Find the best ``min(k, m)`` of (m, |V|) gallery rows for each of (n, |V|) queries, by scores above 0.

    The (n, min(k, m)) int64 gallery rows, best first, ties to the lower, are -1 where a query finds fewer;
    and their exact scores, float64, 0 there.
    """
    source = SparseProducts(queries, gallery, sides=("query", "gallery"))
    rows, scores = best_of(source, "i2t", k, block=block)
    nothing = scores <= 0
    rows[nothing], scores[nothing] = -1, 0.0
    return rows, scores
