"""Error analysis (thesis section 7.6): how far off in the tree, seen and unseen, which siblings are confused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from diptych.commerce.taxonomy import CategoryTree
from diptych.core.errors import DataError

Kinship = Literal["same", "ancestor", "descendant", "sibling", "same tree", "other tree"]
KINSHIPS: tuple[Kinship, ...] = get_args(Kinship)
"""What the category that was found is to the one that asked; ``same tree`` is any further kin. Roots are of different
trees and no siblings."""


def kinship(tree: CategoryTree, asked: np.ndarray, found: np.ndarray) -> np.ndarray:
    """(n,) int64 numbers of :data:`KINSHIPS`: what ``found`` is to ``asked``, both (n,) nodes."""
    asked, found = np.asarray(asked, dtype=np.int64), np.asarray(found, dtype=np.int64)
    shared = tree.common(asked, found)
    conditions = [
        asked == found,
        shared == 0,
        shared == tree.depth[found],
        shared == tree.depth[asked],
        (tree.parent[asked] == tree.parent[found]) & (tree.parent[asked] >= 0),
    ]
    names: list[Kinship] = ["same", "other tree", "ancestor", "descendant", "sibling"]
    kinds = np.select(conditions, [KINSHIPS.index(name) for name in names], KINSHIPS.index("same tree"))
    return kinds.astype(np.int64)


@dataclass(frozen=True)
class ErrorCounts:
    """How the first products of some categories went wrong.

    Attributes:
        depths: of errors in the same tree, how many have which d(c, c_p) = depth(c_p) - depth(c): above 0, a more
            specific category was found.
        distances: of all errors, how many have which distance in edges; different trees are joined above their roots.
    """

    asked: int  # how many categories asked
    right: int  # of how many the first product is relevant
    nothing: int  # how many found no product at all
    same_tree: int  # errors whose category c_p has the most general category of c, the one that asked
    other_tree: int  # errors whose category has another
    depths: Mapping[int, int]
    distances: Mapping[int, int]
    kinds: Mapping[str, int]  # of all errors, what c_p is to c, one of KINSHIPS

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
    """Count.

    Args:
        asked: (q,) nodes c that asked.
        found: (q,) node c_p of each one's first product, -1 where no product was found.
        right: (q,) booleans; without it the first product is right where c_p is c, as in the thesis. By paths it may
            be right although its own category is another.
    """
    asked, found = np.asarray(asked, dtype=np.int64), np.asarray(found, dtype=np.int64)
    is_right = asked == found if right is None else np.asarray(right, dtype=bool)
    if not len(asked) == len(found) == len(is_right):
        raise DataError(
            f"{len(asked)} categories asked, {len(found)} found, {len(is_right)} judged: not as many"
        )
    nothing = found < 0
    if np.any(nothing & is_right):
        raise DataError(f"{int(np.sum(nothing & is_right))} categories are right and found no product")
    wrong = ~is_right & ~nothing
    c, c_p = asked[wrong], found[wrong]
    same = tree.root[c] == tree.root[c_p]
    kinds = np.bincount(kinship(tree, c, c_p), minlength=len(KINSHIPS))
    return ErrorCounts(
        asked=len(asked),
        right=int(is_right.sum()),
        nothing=int(nothing.sum()),
        same_tree=int(same.sum()),
        other_tree=int((~same).sum()),
        depths=_histogram((tree.depth[c_p] - tree.depth[c])[same]),
        distances=_histogram(tree.distance(c, c_p)),
        kinds={name: int(count) for name, count in zip(KINSHIPS, kinds, strict=True) if count},
    )


def pooled(counts: Sequence[ErrorCounts]) -> ErrorCounts:
    """The sum over runs, of several seeds say: a category counts once per run."""

    def added(parts: Sequence[Mapping[int, int]]) -> dict[int, int]:
        return {
            key: sum(part.get(key, 0) for part in parts)
            for key in sorted({k for part in parts for k in part})
        }

    return ErrorCounts(
        asked=sum(one.asked for one in counts),
        right=sum(one.right for one in counts),
        nothing=sum(one.nothing for one in counts),
        same_tree=sum(one.same_tree for one in counts),
        other_tree=sum(one.other_tree for one in counts),
        depths=added([one.depths for one in counts]),
        distances=added([one.distances for one in counts]),
        kinds={
            name: sum(one.kinds.get(name, 0) for one in counts)
            for name in KINSHIPS
            if any(name in one.kinds for one in counts)
        },
    )


def _histogram(values: np.ndarray) -> dict[int, int]:
    kinds, counts = np.unique(values, return_counts=True)
    return {int(kind): int(count) for kind, count in zip(kinds, counts, strict=True)}


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
    """Rows of right or of wrong categories; deterministic, no random ones.

    The surest come first: right ones by their score, one per tree in turn; wrong ones one per kind of error in turn,
    so that a rare kind is not hidden by a frequent one.

    Args:
        asked: (q,) nodes.
        found: (q,) node of each one's first product, -1 where there is none, which is never shown.
        right: (q,) booleans.
        score: (q,) of the first product.
    """
    rows = np.flatnonzero((found >= 0) & (right != wrong))
    rows = rows[np.argsort(-score[rows], kind="stable")]
    groups = kinship(tree, asked[rows], found[rows]) if wrong else tree.root[asked[rows]]
    turn = np.zeros(len(rows), dtype=np.int64)
    for group in np.unique(groups):
        mine = groups == group
        turn[mine] = np.arange(int(mine.sum()))
    last = (
        np.where(groups == KINSHIPS.index("other tree"), 1, 0)
        if wrong
        else np.zeros(len(rows), dtype=np.int64)
    )
    chosen: np.ndarray = rows[np.lexsort((np.arange(len(rows)), last, turn))[:number]]
    return chosen


@dataclass(frozen=True)
class SiblingPair:
    """Two categories of one parent."""

    left: int  # node, the smaller number
    right: int  # node
    left_as_right: int  # products of left for which right was guessed
    right_as_left: int  # the other way
    products: int  # products of both

    @property
    def confused(self) -> int:
        """Both ways."""
        return self.left_as_right + self.right_as_left

    @property
    def share(self) -> float:
        """Of the products of both."""
        return self.confused / self.products


def confused_siblings(
    tree: CategoryTree, truth: np.ndarray, guess: np.ndarray, most: int | None = None
) -> list[SiblingPair]:
    """Pairs of siblings by how many products are put into the wrong one of the two, most first.

    Args:
        truth: (n,) node of each product.
        guess: (n,) node that it was taken for, -1 for none.
    """
    truth, guess = np.asarray(truth, dtype=np.int64), np.asarray(guess, dtype=np.int64)
    size = np.bincount(truth, minlength=len(tree))
    known = guess >= 0
    a, b = truth[known], guess[known]
    kin = (a != b) & (tree.parent[a] == tree.parent[b]) & (tree.parent[a] >= 0)
    ways, counts = np.unique(np.stack([a[kin], b[kin]], axis=1), axis=0, return_counts=True)
    both: dict[tuple[int, int], list[int]] = {}
    for (one, other), count in zip(ways.tolist(), counts.tolist(), strict=True):
        both.setdefault((min(one, other), max(one, other)), [0, 0])[one > other] = count
    pairs = [
        SiblingPair(left, right, found[0], found[1], int(size[left] + size[right]))
        for (left, right), found in both.items()
    ]
    return sorted(pairs, key=lambda pair: (-pair.confused, -pair.share, pair.left, pair.right))[:most]
