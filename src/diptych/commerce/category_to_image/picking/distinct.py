"""Whether two products show the same: one picture, one picture's bytes, or one title."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Literal

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.core.errors import UsageError

__all__ = ["DISTINCT", "Distinct", "Distinguisher"]

Distinct = Literal["content", "title"]
DISTINCT: tuple[Distinct, ...] = ("content", "title")
"""By what products are told apart besides their picture: the bytes of its file, their titles in lower case."""


class Distinguisher:
    """Drops, of products in an order, those that show what an earlier one shows.

    Args:
        catalogue: the products.
        by: some of :data:`DISTINCT`, besides the picture itself.

    Raises:
        UsageError: something else in ``by``.
    """

    def __init__(self, catalogue: Catalogue, by: Sequence[Distinct] = ()) -> None:
        unknown = [one for one in by if one not in DISTINCT]
        if unknown:
            raise UsageError(f"distinct by {unknown[0]!r}", f"some of {', '.join(DISTINCT)}")
        self.catalogue, self.by = catalogue, tuple(by)
        collection, rows = catalogue.collection, catalogue.picture_rows
        self.pictures = np.where(rows < 0, -1, np.asarray(collection.source_rows)[rows])
        self._contents: dict[int, str] = {}

    def first(self, products: Iterable[int], k: int) -> list[int]:
        """Places in ``products`` of the first ``k`` that show something else each; fewer where there are no more.

        A product of -1 is the end, of -2 is passed over.
        """
        seen: set[tuple[str, Hashable]] = set()
        kept: list[int] = []
        for place, product in enumerate(products):
            if product == -1:
                break
            if product < 0:
                continue
            keys = self._keys(product)
            if seen.isdisjoint(keys):
                seen.update(keys)
                kept.append(place)
                if len(kept) == k:
                    break
        return kept

    def _keys(self, product: int) -> list[tuple[str, Hashable]]:
        picture = int(self.pictures[product])
        keys: list[tuple[str, Hashable]] = [("picture", picture)]
        if "content" in self.by:
            if picture not in self._contents:
                self._contents[picture] = self.catalogue.collection.source.content(picture)
            keys.append(("content", self._contents[picture]))
        title = self.catalogue.titles[product].casefold() if "title" in self.by else ""
        if title:
            keys.append(("title", title))
        return keys
