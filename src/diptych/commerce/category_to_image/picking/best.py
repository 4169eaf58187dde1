"""The best products of each category by their rows: among all that may be shown, or among its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from diptych.core.errors import MismatchError
from diptych.evaluation.products import check_rows, pair_scores
from diptych.evaluation.sparse_products import SparseProducts, sparse_top_k
from diptych.evaluation.topk import top_k

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Gallery"]


class Gallery:
    """Products that may be shown, and how they score.

    Scores are exact, equal ones in the order of the products: see :mod:`diptych.evaluation.products`, of sparse rows
    :mod:`diptych.evaluation.sparse_products`.

    Args:
        categories: (q, d) float32 rows, dense or sparse.
        products: (n, d) float32 rows of the same kind, memory-mapped where there are many.
        allowed: (n,) booleans: which products may be shown.
        unranked: whether a score of exactly 0 says nothing; see the attribute ``unmatched`` of rankers.

    Raises:
        MismatchError: one side is sparse and the other is not, or they are of different widths.
        DataError, NumericalError: rows that are not float32, or not finite.
    """

    def __init__(
        self,
        categories: np.ndarray | csr_array,
        products: np.ndarray | csr_array,
        allowed: np.ndarray,
        unranked: bool = False,
    ) -> None:
        self.dense = isinstance(products, np.ndarray)
        if isinstance(categories, np.ndarray) != self.dense or categories.shape[1] != products.shape[1]:
            raise MismatchError(
                f"rows of categories {_kind(categories)} and of products {_kind(products)} cannot be compared",
                "make both with one ranker",
            )
        self.categories, self.products, self.allowed = categories, products, allowed
        self.rows, self.unranked = np.flatnonzero(allowed), unranked
        if self.dense:
            check_rows(np.asarray(categories), "category")
        else:
            self._shown = products[self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def best(self, some: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """The best ``min(depth, len(self))`` products of the categories ``some``.

        Returns:
            (len(some), …) int64 products, best first, -1 where sparse rows have no word in common with more, -2 for one
            that is not retrieved; their scores, float64.
        """
        if self.dense:
            found, scores = top_k(self.categories[some], self.products, depth, allowed=self.allowed)
            return np.where(scores == 0, -2, found) if self.unranked else found, scores
        found, scores = sparse_top_k(self.categories[some], self._shown, depth)
        return np.where(found < 0, -1, self.rows[found]), scores

    def among(self, category: int, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All of ``members``, best first, with their scores; sparse rows without a common word score 0."""
        which = np.full(len(members), category)
        if self.dense:
            scores = pair_scores(self.categories, self.products, which, members)
        else:
            scores = SparseProducts(self.categories, self.products[members]).positives(
                which, np.arange(len(members))
            )
        order = np.argsort(-scores, kind="stable")  # members ascend, so the lower row comes first
        return members[order], scores[order]


def _kind(rows: np.ndarray | csr_array) -> str:
    return f"({'dense' if isinstance(rows, np.ndarray) else 'sparse'}, width {rows.shape[1]:,})"
