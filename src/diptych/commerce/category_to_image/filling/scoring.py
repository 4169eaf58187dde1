"""Scores of products against the categories that they can be filled into, and what they are worth as probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from diptych.core.errors import MismatchError, NumericalError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_SCORES = 1 << 21
"""Scores held at once."""


def score_blocks(
    products: np.ndarray | csr_array, categories: np.ndarray | csr_array, rows: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(rows of products, (b, c) float64 scores) one after another: bounded whatever the number of products.

    Args:
        products: (n, d) float32 rows, dense or sparse, possibly memory-mapped.
        categories: (c, d) float32 rows of the same kind.
    """
    if isinstance(products, np.ndarray) != isinstance(categories, np.ndarray) or (
        products.shape[1] != categories.shape[1]
    ):
        raise MismatchError(
            f"rows of products of width {products.shape[1]:,} and of categories of {categories.shape[1]:,} "
            "cannot be compared",
            "make both with one ranker",
        )
    step = max(1, _SCORES // max(1, categories.shape[0]))
    across = categories.T if isinstance(categories, np.ndarray) else categories.T.tocsr()
    for begin in range(0, len(rows), step):
        some = rows[begin : begin + step]
        product = products[some] @ across
        scores = np.asarray(
            product if isinstance(product, np.ndarray) else product.toarray(), dtype=np.float64
        )
        bad = np.flatnonzero(~np.isfinite(scores).all(axis=1))
        if len(bad):
            raise NumericalError(
                f"the scores of product row {int(some[bad[0]])} are not finite", "make the rows again"
            )
        yield some, scores


def probabilities(scores: np.ndarray, temperature: float) -> np.ndarray:
    """(n, c) float64 soft-max of ``scores / temperature`` along each row."""
    scaled = scores / temperature
    scaled -= scaled.max(axis=1, keepdims=True)
    np.exp(scaled, out=scaled)
    scaled /= scaled.sum(axis=1, keepdims=True)
    return scaled
