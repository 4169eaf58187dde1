"""What frozen encoders made of products and categories: rows, which is all that models see of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from diptych.core.errors import DataError

Modality = Literal["image", "title", "attributes"]
MODALITIES: tuple[Modality, ...] = ("image", "title", "attributes")
"""In the order in which they are concatenated (thesis Eq. 7.6)."""


@dataclass(frozen=True, eq=False)
class ProductFeatures:
    """Rows of products, memory-mapped where there are many; nothing is held that is not asked for.

    Attributes:
        ids: one per product.
        titles: for rankers that read words.
        image: (n, d_image) float32 rows of the image encoder, zeros where there is no picture; None without an
            image encoder.
        title: (n, d_text) float32 unit rows of the text encoder, zeros where there is no title.
        attribute_rows: (u, d_text) float32 unit rows, one per distinct attribute text.
        attribute_start: (n + 1,) int64: product i's attributes are
            ``attribute_items[attribute_start[i]:attribute_start[i + 1]]``.
        attribute_items: (m,) int64 rows of ``attribute_rows``.
        pictured: (n,) booleans: which products have a picture.
        titled: (n,) booleans: which have a title.
        about: encoders (``image``, ``text``: what they describe of themselves), fingerprints, counts; JSON-able.
    """

    ids: Sequence[str]
    titles: Sequence[str]
    image: np.ndarray | None
    title: np.ndarray
    attribute_rows: np.ndarray
    attribute_start: np.ndarray
    attribute_items: np.ndarray
    pictured: np.ndarray
    titled: np.ndarray
    about: Mapping[str, Any]

    def __post_init__(self) -> None:
        n = len(self.ids)
        for what, have in (
            ("titles", len(self.titles)),
            ("image rows", n if self.image is None else len(self.image)),
            ("title rows", len(self.title)),
            ("starts of attributes", len(self.attribute_start) - 1),
            ("pictured", len(self.pictured)),
            ("titled", len(self.titled)),
        ):
            if have != n:
                raise DataError(f"{n} {what} expected, got {have}")

    def __len__(self) -> int:
        return len(self.ids)

    def width(self, modality: Modality) -> int:
        """Length of a row of one modality; 0 for pictures without an image encoder."""
        if modality == "image":
            return 0 if self.image is None else int(self.image.shape[1])
        return int(self.title.shape[1])

    def present(self, modality: Modality) -> np.ndarray:
        """(n,) booleans: which products have this modality."""
        if modality == "image":
            return self.pictured if self.image is not None else np.zeros(len(self), dtype=bool)
        if modality == "title":
            return self.titled
        has: np.ndarray = np.diff(self.attribute_start) > 0
        return has


@dataclass(frozen=True, eq=False)
class CategoryFeatures:
    """Rows of category texts.

    Attributes:
        texts: what stands for each category: its name, or its path.
        text: (q, d_text) float32 unit rows of the text encoder.
        dual: (q, d_image) float32 unit rows of the text side of the encoder that made the products' image rows;
            None where that is not a dual encoder.
        about: as of :class:`ProductFeatures`.
    """

    texts: Sequence[str]
    text: np.ndarray
    dual: np.ndarray | None
    about: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.texts)
