"""Picks: which products' pictures stand for which category, and how they are written down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.catalogue.lineages import nodes_on_paths
from diptych.core.files import write_json
from diptych.data.taxonomy import SEPARATOR

PICKS = "picks.json"
_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Picks:
    """Products that stand for categories, best first.

    Attributes:
        catalogue: the products and the tree.
        nodes: (q,) int64 categories.
        texts: what each was asked with.
        start: (q + 1,) int64: category i's products are ``products[start[i]:start[i + 1]]``.
        products: (m,) int64 rows of the catalogue.
        scores: (m,) float64.
        k: how many were wanted.
        among: whose pictures a category may have, see :data:`.pick.Among`.
        distinct: by what products were told apart besides their picture.
        about: the ranker and whatever else belongs beside the result.
    """

    catalogue: Catalogue
    nodes: np.ndarray
    texts: Sequence[str]
    start: np.ndarray
    products: np.ndarray
    scores: np.ndarray
    k: int
    among: str
    distinct: tuple[str, ...]
    about: dict[str, Any]

    def __len__(self) -> int:
        return len(self.nodes)

    @cached_property
    def right(self) -> np.ndarray:
        """(m,) int8: 1 where the product is sorted into the category or below it, 0 where it is not, -1 for a
        product without a category."""
        start, nodes = nodes_on_paths(self.catalogue)
        width = max(1, len(self.catalogue.tree))
        product = np.repeat(np.arange(len(self.catalogue)), np.diff(start))
        known = product * width + nodes  # ascending, as products and each one's nodes are
        asked = self.products * width + np.repeat(self.nodes, np.diff(self.start))
        place = np.searchsorted(known, asked)
        there = np.zeros(len(asked), dtype=bool)
        within = place < len(known)
        there[within] = known[place[within]] == asked[within]
        return np.where(self.catalogue.place[self.products] < 0, -1, there).astype(np.int8)

    @cached_property
    def there(self) -> np.ndarray:
        """(q,) int64: how many products with a picture are sorted into each category or below it."""
        start, nodes = nodes_on_paths(self.catalogue)
        pictured = np.repeat(self.catalogue.pictured, np.diff(start))
        below: np.ndarray = np.bincount(nodes[pictured], minlength=len(self.catalogue.tree))[self.nodes]
        return below

    def counts(self) -> dict[str, int]:
        """How many categories and pictures there are, and how many of them are what."""
        per_category = np.diff(self.start)
        return {
            "categories": len(self),
            "pictures": len(self.products),
            "distinct products": len(np.unique(self.products)),
            "categories with fewer pictures than asked for": int((per_category < self.k).sum()),
            "categories without a picture": int((per_category == 0).sum()),
            "of the category": int((self.right == 1).sum()),
            "of another category": int((self.right == 0).sum()),
            "of a product without a category": int((self.right == -1).sum()),
            "products without a picture": int((~self.catalogue.pictured).sum()),
        }

    def entries(self) -> Iterator[dict[str, Any]]:
        """One JSON-able object per category, in the order of the nodes."""
        tree, catalogue = self.catalogue.tree, self.catalogue
        file_of = getattr(catalogue.collection.source, "path", None)
        for place, node in enumerate(self.nodes.tolist()):
            path = tree.paths[node]
            found = []
            for at in range(self.start[place], self.start[place + 1]):
                product = int(self.products[at])
                row = int(catalogue.picture_rows[product])
                source_row = int(catalogue.collection.source_rows[row])
                found.append(
                    {
                        "id": catalogue.ids[product],
                        "score": float(self.scores[at]),
                        "title": catalogue.titles[product],
                        "item": catalogue.collection.image_ids[row],
                        "file": None if file_of is None else str(file_of(source_row)),
                        "categories": [
                            list(tree.paths[one]) for one in catalogue.places_of(product).tolist()
                        ],
                        "of_the_category": {1: True, 0: False, -1: None}[int(self.right[at])],
                    }
                )
            yield {
                "path": list(path),
                "category": SEPARATOR.join(path),
                "code": tree.codes.get(path),
                "asked": self.texts[place],
                "pictured_products": int(self.there[place]),
                "products": found,
            }

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-able."""
        return {
            "format": _FORMAT,
            "catalogue": {
                "name": self.catalogue.name,
                "fingerprint": self.catalogue.fingerprint,
                "products": len(self.catalogue),
            },
            "k": self.k,
            "among": self.among,
            "distinct": ["picture", *self.distinct],
            "about": self.about,
            "counts": self.counts(),
            "categories": list(self.entries()),
        }

    def save(self, folder: Path | str) -> Path:
        """Write ``picks.json`` into ``folder``, whole or not at all; gives the file."""
        file = Path(folder) / PICKS
        write_json(file, self.to_dict())
        return file
