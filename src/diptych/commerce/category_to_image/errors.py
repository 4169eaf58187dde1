"""Error analysis (thesis section 7.6): how far off in the tree, seen and unseen, which siblings are confused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from diptych.commerce.taxonomy import CategoryTree
from diptych.core.errors import DataError

Kinship = Literal["same", "ancestor", "descendant", "sibling", "same tree", "other tree"]
KINSHIPS: tuple[Kinship, ...] = get_args(Kinship)
"""Relations of the category that was found to the query; ``same tree`` is any further kin. Roots are no siblings."""


def kinship(tree: CategoryTree, asked: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return (n,) int64 numbers of :data:`KINSHIPS`: the relation of ``found`` to ``asked``, both (n,) nodes."""
    shared = tree.common(asked, found)
    conditions = {
        "same": asked == found,
        "other tree": shared == 0,
        "ancestor": shared == tree.depth[found],
        "descendant": shared == tree.depth[asked],
        "sibling": (tree.parent[asked] == tree.parent[found]) & (tree.parent[asked] >= 0),
    }
    numbers = [KINSHIPS.index(name) for name in conditions]  # type: ignore[arg-type]
    return np.select([*conditions.values()], numbers, KINSHIPS.index("same tree")).astype(np.int64)


@dataclass(frozen=True)
class ErrorCounts:
    """Counts of the first products of query categories: right ones, and errors by where they lie in the tree.

    Attributes:
        depths: of errors in the same tree, counts by depth(found) - depth(query): above 0, a more specific category
            was found.
        distances: of all errors, counts by distance in edges; different trees are joined above their roots.
    """

    asked: int  # query categories
    right: int  # those whose first product is relevant
    nothing: int  # those that found no product
    same_tree: int  # errors of the query's most general category
    other_tree: int  # errors of another one
    depths: Mapping[int, int]
    distances: Mapping[int, int]
    kinds: Mapping[str, int]  # of all errors, by kinship

    @property
    def wrong(self) -> int:
        """Errors that found some product."""
        return self.same_tree + self.other_tree

    @property
    def same_tree_share(self) -> float | None:
        """Of the errors, the share within the same tree; None without errors."""
        return self.same_tree / self.wrong if self.wrong else None


def count_errors(
    tree: CategoryTree, asked: np.ndarray, found: np.ndarray, right: np.ndarray | None = None
) -> ErrorCounts:
    """Count errors of first products.

    Args:
        asked: (q,) query nodes c.
        found: (q,) node c_p of each one's first product, -1 where no product was found.
        right: (q,) booleans; without it the first product is right where c_p is c, as in the thesis. By paths it may
            be right although its own category is another.
    """
    is_right = asked == found if right is None else right
    if not len(asked) == len(found) == len(is_right):
        sizes = f"{len(asked)} categories asked, {len(found)} found, {len(is_right)} judged"
        raise DataError(f"{sizes}: not as many")
    nothing = found < 0
    if np.any(nothing & is_right):
        raise DataError(f"{int(np.sum(nothing & is_right))} categories are right and found no product")
    wrong = ~is_right & ~nothing
    c, c_p = asked[wrong], found[wrong]
    same = tree.root[c] == tree.root[c_p]
    kinds = _histogram(kinship(tree, c, c_p))
    return ErrorCounts(
        asked=len(asked),
        right=int(is_right.sum()),
        nothing=int(nothing.sum()),
        same_tree=int(same.sum()),
        other_tree=int((~same).sum()),
        depths=_histogram((tree.depth[c_p] - tree.depth[c])[same]),
        distances=_histogram(tree.distance(c, c_p)),
        kinds={KINSHIPS[kind]: count for kind, count in kinds.items()},
    )


def _histogram(values: np.ndarray) -> dict[int, int]:
    kinds, counts = np.unique(values, return_counts=True)
    return dict(zip(kinds.tolist(), counts.tolist(), strict=True))


def choose_examples(
    tree: CategoryTree,
    asked: np.ndarray,
    found: np.ndarray,
    right: np.ndarray,
    score: np.ndarray,
    number: int,
    *,
    wrong: bool,
) -> np.ndarray:
    """Return queries whose first product is right, or with ``wrong`` is not; the surest first, nothing random.

    Right ones come one per tree in turn, wrong ones one per kind of error, so that no rare kind is hidden; another
    tree is the last kind of a turn.
    """
    rows = np.flatnonzero((found >= 0) & (right != wrong))
    rows = rows[np.argsort(-score[rows], kind="stable")]
    groups = kinship(tree, asked[rows], found[rows]) if wrong else tree.root[asked[rows]]
    turn = np.zeros(len(rows), dtype=np.int64)
    for group in np.unique(groups):
        turn[groups == group] = np.arange(int((groups == group).sum()))
    last = wrong * (groups == KINSHIPS.index("other tree"))
    chosen: np.ndarray = rows[np.lexsort((np.arange(len(rows)), last, turn))[:number]]
    return chosen


@dataclass(frozen=True)
class SiblingPair:
    """Two categories of one parent."""

    left: int  # node, the smaller number
    right: int  # node
    left_as_right: int  # products of left that were taken for right
    right_as_left: int  # products of right that were taken for left
    products: int  # products of both

    @property
    def confused(self) -> int:
        """Products that were taken for the other."""
        return self.left_as_right + self.right_as_left

    @property
    def share(self) -> float:
        """Confused products, of those of both."""
        return self.confused / self.products


def confused_siblings(
    tree: CategoryTree, truth: np.ndarray, guess: np.ndarray, most: int | None = None
) -> list[SiblingPair]:
    """Return pairs of siblings that products are taken for each other's, those most confused first.

    Args:
        truth: (n,) node of each product.
        guess: (n,) node that it was taken for, -1 for none.
    """
    size = np.bincount(truth, minlength=len(tree))
    a, b = truth[guess >= 0], guess[guess >= 0]
    kin = (a != b) & (tree.parent[a] == tree.parent[b]) & (tree.parent[a] >= 0)
    both: dict[tuple[int, int], list[int]] = {}
    for one, other in zip(a[kin].tolist(), b[kin].tolist(), strict=True):
        both.setdefault((min(one, other), max(one, other)), [0, 0])[one > other] += 1
    pairs = [SiblingPair(*pair, *counts, int(size[list(pair)].sum())) for pair, counts in both.items()]
    return sorted(pairs, key=lambda pair: (-pair.confused, -pair.share, pair.left, pair.right))[:most]
