"""Ranker: whatever orders products for a category, as rows whose inner products are the scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Ranker(ABC):
    """A ready model, trained or not.

    Attributes:
        name: ``bm25``, ``sentence``, ``clip``, ``clip-ita``, …
        unmatched: what a score of exactly 0 says. ``unranked``: product and category have nothing in common (no
            word, or one of them has no row at all), so the product is not retrieved, and a category that has
            nothing in common with any product has no ranking; ``ranked``: it is a score like others.
    """

    name: str
    unmatched: Literal["ranked", "unranked"] = "ranked"

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Of everything that a score depends on besides the features."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What has to be printed beside its numbers, JSON-able."""

    @abstractmethod
    def product_rows(self, products: ProductFeatures) -> np.ndarray | csr_array:
        """(n, d) float32 rows of products: dense unit rows, or sparse ones."""

    @abstractmethod
    def category_rows(self, categories: CategoryFeatures) -> np.ndarray | csr_array:
        """(q, d) float32 rows of categories, of the same kind."""
