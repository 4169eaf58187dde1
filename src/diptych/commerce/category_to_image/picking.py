"""The best images for every category of a tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue, nodes_on_paths
from diptych.commerce.category_to_image.features import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.rankers import Ranker, product_rows
from diptych.commerce.taxonomy import SEPARATOR
from diptych.core.context import track
from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.core.files import write_json
from diptych.metrics.products import check_rows, pair_scores
from diptych.metrics.runs import starts
from diptych.metrics.sparse_products import SparseProducts, sparse_top_k
from diptych.metrics.topk import top_k

if TYPE_CHECKING:
    from scipy.sparse import csr_array

PICKS = "picks.json"

Among = Literal["all", "members"]
"""Whose images a category may get: any product's, or those of the products sorted into it or below it."""

Distinct = Literal["content", "title"]
"""By what products are told apart besides their image: the bytes of its file, their titles in lower case."""


@dataclass(frozen=True, eq=False)
class Picks:
    """Products that stand for categories, best first."""

    catalogue: Catalogue  # the products and the tree
    nodes: np.ndarray  # (q,) int64 categories
    texts: Sequence[str]  # the query of each
    start: np.ndarray  # (q + 1,) int64: category i's products are products[start[i]:start[i + 1]]
    products: np.ndarray  # (m,) int64 rows of the catalogue
    scores: np.ndarray  # (m,) float64
    k: int  # how many were wanted
    among: Among = "all"
    distinct: tuple[str, ...] = ()
    about: dict[str, Any] = field(default_factory=dict)  # the ranker, and what else belongs beside the result

    def __len__(self) -> int:
        return len(self.nodes)

    @cached_property
    def right(self) -> np.ndarray:
        """(m,) int8: 1 for a product of the category or below, 0 for another, -1 for one without a category."""
        start, members = _members(self.catalogue)
        width = max(1, len(self.catalogue))
        known = np.repeat(np.arange(len(start) - 1), np.diff(start)) * width + members
        found = np.isin(np.repeat(self.nodes, np.diff(self.start)) * width + self.products, known)
        return np.where(self.catalogue.place[self.products] < 0, -1, found).astype(np.int8)

    @cached_property
    def there(self) -> np.ndarray:
        """(q,) int64: how many products with an image are sorted into each category or below it."""
        below: np.ndarray = np.diff(_members(self.catalogue)[0])[self.nodes]
        return below

    def counts(self) -> dict[str, int]:
        """Count categories and images, and how many of them are what."""
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
        """Yield one JSON-able object per category, in the order of the nodes."""
        tree = self.catalogue.tree
        for place, node in enumerate(self.nodes.tolist()):
            path = tree.paths[node]
            yield {
                "path": list(path),
                "category": SEPARATOR.join(path),
                "code": tree.codes.get(path),
                "asked": self.texts[place],
                "pictured_products": int(self.there[place]),
                "products": [self._entry(at) for at in range(self.start[place], self.start[place + 1])],
            }

    def _entry(self, at: int) -> dict[str, Any]:
        catalogue, product = self.catalogue, int(self.products[at])
        row, file_of = (
            int(catalogue.picture_rows[product]),
            getattr(catalogue.collection.source, "path", None),
        )
        source_row = int(catalogue.collection.source_rows[row])
        return {
            "id": catalogue.ids[product],
            "score": float(self.scores[at]),
            "title": catalogue.titles[product],
            "item": catalogue.collection.image_ids[row],
            "file": None if file_of is None else str(file_of(source_row)),
            "categories": [list(catalogue.tree.paths[one]) for one in catalogue.places_of(product).tolist()],
            "of_the_category": {1: True, 0: False, -1: None}[int(self.right[at])],
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        catalogue = self.catalogue
        of = {"name": catalogue.name, "fingerprint": catalogue.fingerprint, "products": len(catalogue)}
        return {
            "catalogue": of,
            "k": self.k,
            "among": self.among,
            "distinct": ["picture", *self.distinct],
            "about": self.about,
            "counts": self.counts(),
            "categories": list(self.entries()),
        }

    def save(self, folder: Path | str) -> Path:
        """Write ``picks.json`` into ``folder``, whole or not at all; return the file."""
        file = Path(folder) / PICKS
        write_json(file, self.to_dict())
        return file


def _members(catalogue: Catalogue) -> tuple[np.ndarray, np.ndarray]:
    """(nodes + 1,) starts and products with an image, ascending, sorted into each node or below it."""
    start, nodes = nodes_on_paths(catalogue)
    product = np.repeat(np.arange(len(catalogue)), np.diff(start))
    pictured = catalogue.pictured[product]
    nodes, product = nodes[pictured], product[pictured]
    return starts(np.bincount(nodes, minlength=len(catalogue.tree))), product[
        np.argsort(nodes, kind="stable")
    ]


def pick(
    ranker: Ranker,
    features: ProductFeatures,
    catalogue: Catalogue,
    category_features: CategoryFeatures,
    k: int = 8,
    *,
    about: dict[str, Any] | None = None,
    **options: Any,
) -> Picks:
    """Pick the best ``k`` pictured products of each category; ``options`` are those of :func:`pick_rows`."""
    if list(features.ids) != list(catalogue.ids):
        raise MismatchError(
            f"features of {len(features):,} products, a catalogue of {len(catalogue):,}: not the same products",
            "make the features of this catalogue",
        )
    options |= {"texts": category_features.texts, "unmatched": ranker.unmatched}
    options["about"] = {"ranker": ranker.describe(), "fingerprint": ranker.fingerprint, **(about or {})}
    categories = ranker.category_rows(category_features)
    return pick_rows(categories, product_rows(ranker, features), catalogue, k, **options)


_FOUND = 1 << 21  # products held while duplicates are looked for
_DEEP = 1 << 12  # who needs more than so many for its k needs most of them, or all


def pick_rows(
    category_rows: np.ndarray | csr_array,
    products: np.ndarray | csr_array,
    catalogue: Catalogue,
    k: int = 8,
    *,
    texts: Sequence[str],
    nodes: np.ndarray | None = None,
    among: Among = "all",
    beyond: bool = False,
    distinct: Sequence[Distinct] = (),
    unmatched: Literal["ranked", "unranked"] = "ranked",
    about: dict[str, Any] | None = None,
) -> Picks:
    """Pick the best ``k`` pictured products of each category, and no more than it has itself.

    Scores are exact, of equal ones the earlier product is first. Memory beside rows and result: a block of scores.

    Args:
        category_rows: (q, d) float32 rows, dense or sparse.
        products: (n, d) float32 rows of the same kind, which may be memory-mapped.
        nodes: (q,) categories to pick for; None: all of the tree.
        beyond: fill up to ``k`` with other categories' products; implied where no product has a category.
        unmatched: the ranker's; of its own products a category also shows those that have nothing in common with it.
    """
    size, names = len(catalogue.tree), get_args(Distinct)
    chosen = np.arange(size) if nodes is None else np.asarray(nodes, dtype=np.int64)
    if k < 1:
        raise UsageError(f"k is {k}, it must be at least 1")
    if among not in get_args(Among):
        raise UsageError(f"among {among!r} is none", "all or members")
    if unknown := [one for one in distinct if one not in names]:
        raise UsageError(f"distinct by {unknown[0]!r}", f"some of {', '.join(names)}")
    if len(chosen) and (chosen.min() < 0 or chosen.max() >= size):
        raise UsageError(f"node {int(chosen.max())} is none of a tree of {size:,} categories")
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
    gallery = _Gallery(category_rows, products, catalogue.pictured, unmatched == "unranked")
    start, members = _members(catalogue)
    is_capped = not beyond and len(members) > 0
    most = np.minimum(k, np.diff(start)[chosen]) if is_capped else np.full(len(chosen), k)
    first = _FirstDistinct(catalogue, distinct)
    found: list[tuple[np.ndarray, np.ndarray]] = [(np.empty(0, np.int64), np.empty(0))] * len(chosen)
    if among == "members":
        for place, node in enumerate(track(chosen.tolist(), "categories", unit="categories")):
            found[place] = first(*gallery.among(place, members[start[node] : start[node + 1]]), k)
    left, depth = (
        np.flatnonzero(most > 0) if among == "all" else np.empty(0, np.int64),
        min(k, len(gallery.rows)),
    )
    while len(left):  # four times as deep for those that show too much twice, at last as deep as it goes
        unsatisfied = []
        for begin in range(0, len(left), max(1, _FOUND // depth)):
            some = left[begin : begin + max(1, _FOUND // depth)]
            for one, mine, scores in zip(some.tolist(), *gallery.best(some, depth), strict=True):
                found[one] = first(mine, scores, int(most[one]))
                if len(found[one][0]) < most[one] and mine[-1] != -1 and depth < len(gallery.rows):
                    unsatisfied.append(one)
        depth = len(gallery.rows) if depth >= _DEEP else min(4 * depth, len(gallery.rows))
        left = np.array(unsatisfied, dtype=np.int64)
    return Picks(
        catalogue=catalogue,
        nodes=chosen,
        texts=list(texts),
        start=starts(np.array([len(one) for one, _ in found], dtype=np.int64)),
        products=np.concatenate([np.empty(0, np.int64), *(one for one, _ in found)]),
        scores=np.concatenate([np.empty(0), *(scores for _, scores in found)]),
        k=k,
        among=among,
        distinct=tuple(distinct),
        about=about or {},
    )


class _FirstDistinct:
    """Keeps, of ranked products, the first that show something else each."""

    def __init__(self, catalogue: Catalogue, by: Sequence[Distinct]) -> None:
        self.catalogue, self.by = catalogue, by
        self._contents: dict[int, str] = {}

    def __call__(self, products: np.ndarray, scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the first ``k`` and their scores; a product of -1 is the end, one of -2 is passed over."""
        kept: list[int] = []
        seen: set[object] = set()
        for place, product in enumerate(products.tolist()):
            if product == -1 or len(kept) == k:
                break
            keys = () if product < 0 else self._keys(product)
            if keys and seen.isdisjoint(keys):
                seen.update(keys)
                kept.append(place)
        return products[kept], scores[kept]

    def _keys(self, product: int) -> list[object]:
        collection, title = self.catalogue.collection, self.catalogue.titles[product]
        image = int(collection.source_rows[self.catalogue.picture_rows[product]])
        keys: list[object] = [image]
        if "title" in self.by and title:
            keys.append(("title", title.casefold()))
        if "content" in self.by:
            if image not in self._contents:
                self._contents[image] = collection.source.content(image)
            keys.append(("content", self._contents[image]))
        return keys


class _Gallery:
    """Products that may be shown, and how they score."""

    def __init__(
        self,
        categories: np.ndarray | csr_array,
        products: np.ndarray | csr_array,
        allowed: np.ndarray,
        unranked: bool,
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

    def best(self, some: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the best ``depth`` products of the categories ``some``, -1 where there are no more that match, -2 for
        one that is not retrieved; and their scores, float64."""
        if self.dense:
            found, scores = top_k(self.categories[some], self.products, depth, allowed=self.allowed)
            return np.where(scores == 0, -2, found) if self.unranked else found, scores
        found, scores = sparse_top_k(self.categories[some], self._shown, depth)
        return np.where(found < 0, -1, self.rows[found]), scores

    def among(self, category: int, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return all of ``members``, best first, with their scores; sparse rows without a common word score 0."""
        which = np.full(len(members), category)
        if self.dense:
            scores = pair_scores(self.categories, self.products, which, members)
        else:
            of_members = SparseProducts(self.categories, self.products[members])
            scores = of_members.pairs(which, np.arange(len(members)))
        order = np.argsort(-scores, kind="stable")  # members ascend, so the earlier product comes first
        return members[order], scores[order]


def _kind(rows: np.ndarray | csr_array) -> str:
    return f"({'dense' if isinstance(rows, np.ndarray) else 'sparse'}, width {rows.shape[1]:,})"
