"""Pick: the best k pictured products for every category, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.catalogue.lineages import nodes_on_paths
from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.picking.distinct import Distinct, Distinguisher
from diptych.commerce.category_to_image.picking.picks import Picks
from diptych.commerce.category_to_image.product_rows import product_rows
from diptych.commerce.category_to_image.ranker import Ranker
from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.core.progress import task
from diptych.metrics.products import check_rows, pair_scores
from diptych.metrics.sparse_products import SparseProducts, sparse_top_k
from diptych.metrics.topk import top_k

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Gallery:
    """Products that may be shown, and how they score.

    Scores are exact, equal ones in the order of the products: see :mod:`diptych.metrics.products`, of sparse rows
    :mod:`diptych.metrics.sparse_products`.

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
