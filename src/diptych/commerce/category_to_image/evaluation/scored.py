"""Rows of candidates and of the categories that ask, and what comes first by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from diptych.commerce.catalogue.relevance import Judged
from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.ranker import Ranker
from diptych.core.errors import DataError
from diptych.metrics.ground_truth import Direction
from diptych.metrics.topk import top_k

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Rows: TypeAlias = np.ndarray | csr_array


@dataclass(frozen=True, eq=False)
class Scored:
    """What is compared.

    Attributes:
        products: (n, d) rows of ``judged.products``.
        categories: (q, d) rows of ``judged.nodes``.
        product_ids: for messages.
        texts: for messages.
        unranked: a score of exactly 0 says that a product is not retrieved.
    """

    products: Rows
    categories: Rows
    product_ids: Sequence[str]
    texts: Sequence[str]
    unranked: bool

    @property
    def sparse(self) -> bool:
        """Whether rows are sparse."""
        return not isinstance(self.products, np.ndarray)

    @property
    def dense(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows of products and of categories, where they are dense."""
        assert isinstance(self.products, np.ndarray)
        assert isinstance(self.categories, np.ndarray)
        return self.products, self.categories


def score_rows(
    ranker: Ranker, products: ProductFeatures, categories: CategoryFeatures, judged: Judged
) -> Scored:
    """The ranker's rows of candidates and of asking categories."""
    if len(categories) != len(judged.nodes):
        raise DataError(
            f"{len(categories)} category rows for {len(judged.nodes)} categories that ask",
            "give the rows of judged.nodes, in that order",
        )
    if len(judged.products) and int(judged.products.max()) >= len(products):
        raise DataError(
            f"product {int(judged.products.max())} was judged, {len(products)} products have features",
            "give the features of the whole catalogue that was judged",
        )
    rows = ranker.product_rows(products)
    return Scored(
        rows if len(judged.products) == len(products) else rows[judged.products],
        ranker.category_rows(categories),
        [products.ids[row] for row in judged.products.tolist()],
        categories.texts,
        ranker.unmatched == "unranked",
    )


def first_of(scored: Scored, k: int, *, side: Direction = "t2i") -> tuple[np.ndarray, np.ndarray]:
    """The first k of every query, ties to the lower row.

    Returns:
        (queries, min(k, gallery)) int64 rows of the gallery, -1 where less is retrieved, and float64 scores.
    """
    turned = side == "i2t"
    if scored.sparse:
        from diptych.metrics.sparse_products import sparse_top_k

        pair = (scored.categories, scored.products)
        return sparse_top_k(*(pair[::-1] if turned else pair), k)
    products, categories = scored.dense
    queries, gallery = (products, categories) if turned else (categories, products)
    if not scored.unranked:
        return top_k(queries, gallery, k)
    k = min(k, len(gallery))
    rows, scores = np.full((len(queries), k), -1), np.zeros((len(queries), k))
    asks, there = (np.flatnonzero(np.any(side, axis=1)) for side in (queries, gallery))
    if len(asks) and len(there):
        best, values = top_k(np.ascontiguousarray(queries[asks]), np.ascontiguousarray(gallery[there]), k)
        found = values != 0
        rows[asks, : best.shape[1]] = np.where(found, there[best], -1)
        scores[asks, : best.shape[1]] = values
    return rows, scores
