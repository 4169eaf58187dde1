"""What two nodes of a tree are to each other."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from diptych.data.taxonomy import CategoryTree

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
