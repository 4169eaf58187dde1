"""Pictures and categories through the two sides of one dual encoder: CLIP, zero-shot.

Source: Radford et al., Learning Transferable Visual Models From Natural Language Supervision, ICML 2021.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.rankers.declaration import RANKERS, RankerKind
from diptych.commerce.category_to_image.rankers.zero_shot import ZeroShot
from diptych.core.errors import UsageError

__all__ = ["ClipRanker"]

_FIX = "make the features with a dual encoder as image encoder (CLIP, or one that was trained), or leave clip out"


class ClipRanker(ZeroShot):
    """The cosine of a picture's row and of a category's, by the same dual encoder."""

    name = "clip"
    side: ClassVar[str] = "image"

    def product_rows(self, products: ProductFeatures) -> np.ndarray:
        """(n, d) float32 rows of pictures.

        Raises:
            MismatchError: of another encoder.
            UsageError: there are none.
        """
        self._check(products.about, "products")
        if products.image is None:
            raise UsageError("clip needs rows of pictures, and the products have none", _FIX)
        return products.image

    def category_rows(self, categories: CategoryFeatures) -> np.ndarray:
        """(q, d) float32 rows of the categories' texts by the encoder's own text side.

        Raises:
            MismatchError: of another encoder.
            UsageError: there are none.
        """
        self._check(categories.about, "categories")
        if categories.dual is None:
            raise UsageError("clip needs the text side of the image encoder, which has none", _FIX)
        return categories.dual


def _make(products: ProductFeatures) -> ClipRanker:
    encoder = products.about.get("image")
    if encoder is None:
        raise UsageError("clip needs rows of pictures, and the products have none", _FIX)
    if encoder.get("kind") != "dual":
        raise UsageError(
            f"clip needs a dual encoder, and pictures were encoded by {encoder.get('source')}", _FIX
        )
    return ClipRanker(encoder)


RANKERS.add(
    RankerKind(
        "clip",
        "a dual encoder, zero-shot: pictures whose rows are near those of the category's text",
        "Radford et al. 2021",
        ("image",),
        _make,
    )
)
