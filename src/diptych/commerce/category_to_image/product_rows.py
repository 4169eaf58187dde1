"""Rows of a shop's products by a ranker, a block at a time, on disk where there are too many to hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.category_to_image.features.rows import ProductFeatures
from diptych.commerce.category_to_image.ranker import Ranker
from diptych.core.context import track
from diptych.core.errors import UsageError
from diptych.encoders.embeddings import Embeddings

if TYPE_CHECKING:
    from scipy.sparse import csr_array

KIND = "product"
"""What embeddings of products call themselves."""

_BLOCK = 16_384


def features_part(features: ProductFeatures, begin: int, end: int) -> ProductFeatures:
    """The features of the products ``begin`` to ``end``; nothing is copied but starts of attributes."""
    here = slice(begin, end)
    start = features.attribute_start[begin : end + 1]
    return replace(
        features,
        ids=features.ids[here],
        titles=features.titles[here],
        image=None if features.image is None else features.image[here],
        title=features.title[here],
        attribute_start=start - start[0],
        attribute_items=features.attribute_items[start[0] : start[-1]],
        pictured=features.pictured[here],
        titled=features.titled[here],
    )


def product_rows(ranker: Ranker, features: ProductFeatures, block: int = _BLOCK) -> np.ndarray | csr_array:
    """(n, d) float32 rows of all products in memory, dense ones made ``block`` at a time."""
    if len(features) <= block:
        return ranker.product_rows(features)
    parts = list(_blocks(ranker, features, block))
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack(parts, format="csr"))


def product_embeddings(
    ranker: Ranker, features: ProductFeatures, folder: Path | str, *, data: str, about: dict[str, Any]
) -> Embeddings:
    """The same written to ``folder`` as they come, and opened; one block is in memory."""
    blocks = _blocks(ranker, features, _BLOCK)
    first = next(blocks, None)
    if not isinstance(first, np.ndarray):
        raise UsageError(
            f"{ranker.name} has no dense rows of {len(features):,} products",
            "take a ranker that embeds, such as clip",
        )

    def rows() -> Iterator[np.ndarray]:
        yield first
        for part in blocks:
            yield np.asarray(part)

    return Embeddings.stream(
        folder,
        features.ids,
        first.shape[1],
        rows(),
        encoder=ranker.fingerprint,
        data=data,
        kind=KIND,
        about={"ranker": ranker.describe(), **about},
    )


def _blocks(ranker: Ranker, features: ProductFeatures, block: int) -> Iterator[np.ndarray | csr_array]:
    for begin in track(range(0, len(features), block), "products", unit="blocks"):
        yield ranker.product_rows(features_part(features, begin, min(begin + block, len(features))))
