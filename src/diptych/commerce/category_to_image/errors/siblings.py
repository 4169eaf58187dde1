"""Siblings that are taken for each other: where products of one category are put into the one beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.data.taxonomy import CategoryTree


@dataclass(frozen=True)
class SiblingPair:
    """Two categories of one parent.

    Attributes:
        left: node, the smaller number.
        right: node.
        left_as_right: products of ``left`` for which ``right`` was guessed.
        right_as_left: the other way.
        products: products of both.
    """

    left: int
    right: int
    left_as_right: int
    right_as_left: int
    products: int

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
