"""Rankers with rows written by hand."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from diptych.commerce.catalogue.catalogue import Judged
from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.rankers import Ranker
from diptych.metrics import GroundTruth


class Given(Ranker):
    """Gives the rows that it was made with."""

    name = "given"

    def __init__(
        self,
        products: np.ndarray | csr_array,
        categories: np.ndarray | csr_array,
        unmatched: Literal["ranked", "unranked"] = "ranked",
    ) -> None:
        self.products, self.categories, self.unmatched = products, categories, unmatched

    @property
    def fingerprint(self) -> str:
        return "by hand"

    def describe(self) -> dict[str, Any]:
        return {"name": self.name}

    def product_rows(self, products: ProductFeatures) -> np.ndarray | csr_array:
        return self.products

    def category_rows(self, categories: CategoryFeatures) -> np.ndarray | csr_array:
        return self.categories


def features(n: int) -> ProductFeatures:
    nothing = np.zeros((n, 1), dtype=np.float32)
    none = np.zeros(n, dtype=bool)
    start = np.zeros(n + 1, dtype=np.int64)
    ids = [f"p{row}" for row in range(n)]
    return ProductFeatures(ids, ids, None, nothing, nothing[:0], start, start[:0], none, none, {})


def categories(q: int) -> CategoryFeatures:
    return CategoryFeatures([f"c{row}" for row in range(q)], np.zeros((q, 1), dtype=np.float32), None, {})


def judged(relevant: np.ndarray, products: np.ndarray | None = None) -> Judged:
    """Of a matrix (categories, products) of booleans."""
    category, product = np.nonzero(relevant)
    q, n = relevant.shape
    truth = GroundTruth.from_pairs(product, category, n, q, np.full(q, -1))
    rows = np.arange(n) if products is None else products
    labels = np.argmax(relevant, axis=0)
    return Judged(np.arange(q), rows, truth, labels, "most-specific", "label", 0)
