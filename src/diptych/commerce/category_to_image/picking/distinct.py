"""Whether two products show the same: one picture, one picture's bytes, or one title."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.core.errors import UsageError

Distinct = Literal["content", "title"]
DISTINCT: tuple[Distinct, ...] = ("content", "title")
"""By what products are told apart besides their picture: the bytes of its file, their titles in lower case."""


class Distinguisher:
    """Drops, of products in an order, those that show what an earlier one shows."""

    def __init__(self, catalogue: Catalogue, by: Sequence[Distinct] = ()) -> None:
        unknown = [one for one in by if one not in DISTINCT]
        if unknown:
            raise UsageError(f"distinct by {unknown[0]!r}", f"some of {', '.join(DISTINCT)}")
        self.catalogue, self.by = catalogue, tuple(by)
        collection, rows = catalogue.collection, catalogue.picture_rows
        self.pictures = np.where(rows < 0, -1, np.asarray(collection.source_rows)[rows])
        self._contents: dict[int, int] = {}
        self._codes: dict[str, int] = {}

    def first(self, products: np.ndarray, k: int) -> list[int]:
        """Places in ``products`` of the first ``k`` that show something else each; fewer where there are no more.

        Time goes with k times what is looked through, however much of it shows the same.

        Args:
            products: (m,) rows of the catalogue; -1 is the end, -2 is passed over.
        """
        ends = np.flatnonzero(products == -1)
        products = products[: ends[0]] if len(ends) else products
        kept: list[int] = []
        seen: list[list[int]] = [[] for _ in range(1 + len(self.by))]
        begin, size = 0, k  # no more files are read than may be needed
        while begin < len(products) and len(kept) < k:
            some = products[begin : begin + size]
            keys = self._keys(some)
            left = some >= 0
            for mine, there in zip(keys, seen, strict=True):
                left &= ~np.isin(mine, there)
            while len(kept) < k and left.any():
                place = int(left.argmax())
                kept.append(begin + place)
                left[place] = False
                for mine, there in zip(keys, seen, strict=True):
                    there.append(int(mine[place]))
                    left &= mine != mine[place]
            begin, size = begin + size, 4 * size
        return kept

    def _keys(self, products: np.ndarray) -> list[np.ndarray]:
        """Numbers that are equal where products show the same, in each respect; all others are different."""
        pictures = np.where(products < 0, -1, self.pictures[np.maximum(products, 0)])
        keys = [pictures]
        if "content" in self.by:
            keys.append(np.array([self._content(one) for one in pictures.tolist()], dtype=np.int64))
        if "title" in self.by:
            keys.append(np.array([self._title(one) for one in products.tolist()], dtype=np.int64))
        return keys

    def _content(self, picture: int) -> int:
        if picture < 0:
            return -1
        if picture not in self._contents:
            text = self.catalogue.collection.source.content(picture)
            self._contents[picture] = self._codes.setdefault(text, len(self._codes))
        return self._contents[picture]

    def _title(self, product: int) -> int:
        title = self.catalogue.titles[product].casefold() if product >= 0 else ""
        return self._codes.setdefault(title, len(self._codes)) if title else -2 - product
