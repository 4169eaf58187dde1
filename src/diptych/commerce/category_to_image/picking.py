"""The best pictures for every category of a tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue, nodes_on_paths
from diptych.commerce.category_to_image.features import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.rankers import Ranker, product_rows
from diptych.commerce.taxonomy import SEPARATOR
from diptych.core.context import task
from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.core.files import write_json
from diptych.metrics.products import check_rows, pair_scores
from diptych.metrics.sparse_products import SparseProducts, sparse_top_k
from diptych.metrics.topk import top_k

if TYPE_CHECKING:
    from scipy.sparse import csr_array


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


PICKS = "picks.json"


@dataclass(frozen=True, eq=False)
class Picks:
    """Products that stand for categories, best first."""

    catalogue: Catalogue  # the products and the tree
    nodes: np.ndarray  # (q,) int64 categories
    texts: Sequence[str]  # what each was asked with
    start: np.ndarray  # (q + 1,) int64: category i's products are products[start[i]:start[i + 1]]
    products: np.ndarray  # (m,) int64 rows of the catalogue
    scores: np.ndarray  # (m,) float64
    k: int  # how many were wanted
    among: str  # whose pictures a category may have, see :data:`.pick.Among`
    distinct: tuple[str, ...]  # by what products were told apart besides their picture
    about: dict[str, Any]  # the ranker and whatever else belongs beside the result

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


class Gallery:
    """Products that may be shown, and how they score.

    Scores are exact, equal ones in the order of the products: see :mod:`diptych.metrics.products`, of sparse rows
    :mod:`diptych.metrics.sources`.

    Args:
        categories: (q, d) float32 rows, dense or sparse.
        products: (n, d) float32 rows of the same kind, memory-mapped where there are many.
        allowed: (n,) booleans: which products may be shown.
    """

    def __init__(
        self,
        categories: np.ndarray | csr_array,
        products: np.ndarray | csr_array,
        allowed: np.ndarray,
        unranked: bool = False,
    ) -> None:
        self.dense = isinstance(products, np.ndarray)
        if isinstance(categories, np.ndarray) != self.dense or categories.shape[1] != products.shape[1]:
            raise MismatchError(
                f"rows of categories {_kind(categories)} and of products {_kind(products)} cannot be compared",
                "make both with one ranker",
            )
        self.categories, self.products, self.allowed = categories, products, allowed
        self.rows, self.unranked = np.flatnonzero(allowed), unranked
        if self.dense:
            check_rows(np.asarray(categories), "category")
        else:
            self._shown = products[self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def best(self, some: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """The best ``min(depth, len(self))`` products of the categories ``some``.

        Returns:
            (len(some), …) int64 products, best first, -1 where sparse rows have no word in common with more, -2 for one
            that is not retrieved; their scores, float64.
        """
        if self.dense:
            found, scores = top_k(self.categories[some], self.products, depth, allowed=self.allowed)
            return np.where(scores == 0, -2, found) if self.unranked else found, scores
        found, scores = sparse_top_k(self.categories[some], self._shown, depth)
        return np.where(found < 0, -1, self.rows[found]), scores

    def among(self, category: int, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All of ``members``, best first, with their scores; sparse rows without a common word score 0."""
        which = np.full(len(members), category)
        if self.dense:
            scores = pair_scores(self.categories, self.products, which, members)
        else:
            scores = SparseProducts(self.categories, self.products[members]).pairs(
                which, np.arange(len(members))
            )
        order = np.argsort(-scores, kind="stable")  # members ascend, so the lower row comes first
        return members[order], scores[order]


def _kind(rows: np.ndarray | csr_array) -> str:
    return f"({'dense' if isinstance(rows, np.ndarray) else 'sparse'}, width {rows.shape[1]:,})"


Among = Literal["all", "members"]
"""Whose pictures a category may get: any product's, or those of the products sorted into it or below it."""

_FOUND = 1 << 21  # products held while duplicates are looked for
_DEEP = 1 << 12  # who needs more than so many for its k needs most of them, or all


def pick(
    ranker: Ranker,
    features: ProductFeatures,
    catalogue: Catalogue,
    category_features: CategoryFeatures,
    k: int = 8,
    *,
    nodes: np.ndarray | None = None,
    among: Among = "all",
    distinct: Sequence[Distinct] = (),
    about: dict[str, Any] | None = None,
) -> Picks:
    """The best ``k`` pictured products of each category by a ranker.

    Args:
        nodes: (q,) categories to pick for; None: all of the tree.
    """
    if list(features.ids) != list(catalogue.ids):
        raise MismatchError(
            f"features of {len(features):,} products, a catalogue of {len(catalogue):,}: not the same products",
            "make the features of this catalogue",
        )
    products = product_rows(ranker, features)
    return pick_rows(
        ranker.category_rows(category_features),
        products,
        catalogue,
        k,
        texts=category_features.texts,
        nodes=nodes,
        among=among,
        distinct=distinct,
        unmatched=ranker.unmatched,
        about={"ranker": ranker.describe(), "fingerprint": ranker.fingerprint, **(about or {})},
    )


def pick_rows(
    category_rows: np.ndarray | csr_array,
    products: np.ndarray | csr_array,
    catalogue: Catalogue,
    k: int = 8,
    *,
    texts: Sequence[str],
    nodes: np.ndarray | None = None,
    among: Among = "all",
    distinct: Sequence[Distinct] = (),
    unmatched: Literal["ranked", "unranked"] = "ranked",
    about: dict[str, Any] | None = None,
) -> Picks:
    """As :func:`pick`, from rows of categories and of products, which may be memory-mapped.

    ``unmatched`` is the ranker's; of its own products a category also shows those that have nothing in common with it.

    Memory beside rows and result: a block of scores, and some bytes per product.
    """
    if k < 1:
        raise UsageError(f"k is {k}, it must be at least 1")
    if among not in ("all", "members"):
        raise UsageError(f"among {among!r} is none", "all or members")
    chosen = np.arange(len(catalogue.tree)) if nodes is None else np.asarray(nodes, dtype=np.int64)
    if len(chosen) and (chosen.min() < 0 or chosen.max() >= len(catalogue.tree)):
        raise UsageError(f"node {int(chosen.max())} is none of a tree of {len(catalogue.tree):,} categories")
    for what, have, want in (
        ("rows of categories", category_rows.shape[0], len(chosen)),
        ("texts of categories", len(texts), len(chosen)),
        ("rows of products", products.shape[0], len(catalogue)),
    ):
        if have != want:
            raise MismatchError(f"{want:,} {what} expected, got {have:,}", "make them of this catalogue")
    if not catalogue.pictured.any():
        raise DataError(
            f"{catalogue.name}: none of {len(catalogue):,} products has a picture, so there is nothing to pick",
            "fetch the pictures, or name their folder",
        )
    gallery = Gallery(category_rows, products, catalogue.pictured, unmatched == "unranked")
    tell = Distinguisher(catalogue, distinct)
    if among == "all":
        found = _among_all(gallery, tell, len(chosen), k)
    else:
        found = _among_members(gallery, tell, catalogue, chosen, k)
    counts = np.array([len(one) for one, _ in found], dtype=np.int64)
    return Picks(
        catalogue=catalogue,
        nodes=chosen,
        texts=list(texts),
        start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        products=np.concatenate([np.empty(0, np.int64), *(one for one, _ in found)]),
        scores=np.concatenate([np.empty(0), *(scores for _, scores in found)]),
        k=k,
        among=among,
        distinct=tuple(distinct),
        about=about or {},
    )


Found = list[tuple[np.ndarray, np.ndarray]]
"""Per category, its products and their scores."""


def _among_all(gallery: Gallery, tell: Distinguisher, count: int, k: int) -> Found:
    """Four times as deep for those that show too many twice, at last as deep as it goes, until they have k."""
    nothing = (np.empty(0, np.int64), np.empty(0))
    found: Found = [nothing] * count
    left, depth = np.arange(count), min(k, len(gallery))
    while len(left):
        unsatisfied = []
        step = max(1, _FOUND // depth)
        for begin in range(0, len(left), step):
            some = left[begin : begin + step]
            products, scores = gallery.best(some, depth)
            for one, mine, values in zip(some.tolist(), products, scores, strict=True):
                kept = np.array(tell.first(mine, k), dtype=np.int64)
                found[one] = (mine[kept], values[kept])
                if len(kept) < k and mine[-1] != -1 and depth < len(gallery):
                    unsatisfied.append(one)
        depth = len(gallery) if depth >= _DEEP else min(4 * depth, len(gallery))
        left = np.array(unsatisfied, dtype=np.int64)
    return found


def _among_members(
    gallery: Gallery, tell: Distinguisher, catalogue: Catalogue, chosen: np.ndarray, k: int
) -> Found:
    start, nodes = nodes_on_paths(catalogue)
    pictured = np.repeat(catalogue.pictured, np.diff(start))
    product = np.repeat(np.arange(len(catalogue)), np.diff(start))[pictured]
    nodes = nodes[pictured]
    product = product[np.argsort(nodes, kind="stable")]
    begins = np.concatenate([[0], np.cumsum(np.bincount(nodes, minlength=len(catalogue.tree)))])
    found: Found = []
    with task("categories", len(chosen)) as bar:
        for place, node in enumerate(chosen.tolist()):
            mine, scores = gallery.among(place, product[begins[node] : begins[node + 1]])
            kept = np.array(tell.first(mine, k), dtype=np.int64)
            found.append((mine[kept], scores[kept]))
            bar.advance()
    return found
