"""Titles and categories through one text encoder: the thesis's MPNet, zero-shot, or whichever made the features.

Source: Song et al., MPNet: Masked and Permuted Pre-training for Language Understanding, NeurIPS 2020; Reimers and
Gurevych, Sentence-BERT, EMNLP 2019.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.rankers.declaration import RANKERS, RankerKind
from diptych.commerce.category_to_image.rankers.zero_shot import ZeroShot

__all__ = ["SentenceRanker"]


class SentenceRanker(ZeroShot):
    """The cosine of a title's row and a category's."""

    name = "sentence"
    side: ClassVar[str] = "text"

    def product_rows(self, products: ProductFeatures) -> np.ndarray:
        """(n, d) float32 rows of titles."""
        self._check(products.about, "products")
        return products.title

    def category_rows(self, categories: CategoryFeatures) -> np.ndarray:
        """(q, d) float32 rows of the categories' texts."""
        self._check(categories.about, "categories")
        return categories.text


def _make(products: ProductFeatures) -> SentenceRanker:
    return SentenceRanker(products.about["text"])


RANKERS.add(
    RankerKind(
        "sentence",
        "a text encoder, zero-shot: titles whose rows are near the category's",
        "Song et al. 2020",
        ("title",),
        _make,
    )
)
