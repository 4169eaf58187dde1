"""Error analysis (thesis section 7.6): how far off in the tree, seen and unseen, which siblings are confused."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal, get_args

import numpy as np

from diptych.commerce.taxonomy import CategoryTree

Kinship = Literal["same", "ancestor", "descendant", "sibling", "same tree", "other tree"]
KINSHIPS: tuple[Kinship, ...] = get_args(Kinship)
"""Relations of the category that was found to the query; ``same tree`` is any further kin. Roots are no siblings."""


def kinship(tree: CategoryTree, queries: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return (n,) int64 numbers of :data:`KINSHIPS`: the relation of ``found`` to ``queries``, both (n,) nodes."""
    shared = tree.common(queries, found)
    conditions = {
        "same": queries == found,
        "other tree": shared == 0,
        "ancestor": shared == tree.depth[found],
        "descendant": shared == tree.depth[queries],
        "sibling": (tree.parent[queries] == tree.parent[found]) & (tree.parent[queries] >= 0),
    }
    numbers = [KINSHIPS.index(name) for name in conditions]
    return np.select([*conditions.values()], numbers, KINSHIPS.index("same tree")).astype(np.int64)


def count_errors(
    tree: CategoryTree, queries: np.ndarray, found: np.ndarray, right: np.ndarray | None = None
) -> dict[str, Any]:
    """Count how the first products of query categories go wrong (thesis Table 7.2, Figure 7.2).

    ``found`` is the node c_p of each query's first product, -1 for none. Without ``right`` a product is right where c_p
    is the query c, as in the thesis; by paths it may be although its own category is another. ``kinds`` counts by
    kinship, ``depths``, in the same tree, by depth(c_p) - depth(c), ``distances`` by edges, roots joined.
    """
    is_right = queries == found if right is None else right
    wrong = ~is_right & (found >= 0)
    c, c_p = queries[wrong], found[wrong]
    same = tree.root[c] == tree.root[c_p]
    depths, distances, kinds = (
        Counter(values.tolist())
        for values in ((tree.depth[c_p] - tree.depth[c])[same], tree.distance(c, c_p), kinship(tree, c, c_p))
    )
    return {
        "asked": len(queries),
        "right": int(is_right.sum()),
        "nothing": int((found < 0).sum()),
        "wrong": len(c),
        "same_tree": int(same.sum()),
        "other_tree": int((~same).sum()),
        "same_tree_share": float(same.mean()) if len(c) else None,
        "depths": dict(sorted(depths.items())),
        "distances": dict(sorted(distances.items())),
        "kinds": {KINSHIPS[kind]: count for kind, count in sorted(kinds.items())},
    }


def choose_examples(
    tree: CategoryTree,
    queries: np.ndarray,
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
    groups = kinship(tree, queries[rows], found[rows]) if wrong else tree.root[queries[rows]]
    turns = np.array([int((groups[:place] == group).sum()) for place, group in enumerate(groups)])
    is_last = wrong & (groups == KINSHIPS.index("other tree"))
    return rows[np.lexsort((is_last, turns))[:number]]


def confused_siblings(
    tree: CategoryTree, truth: np.ndarray, guess: np.ndarray, most: int | None = None
) -> list[dict[str, Any]]:
    """Return pairs of siblings that products are taken for each other's, those most confused first.

    ``truth`` are the (n,) nodes of products, ``guess`` those that they were taken for, -1 for none.
    """
    size = np.bincount(truth, minlength=len(tree))
    a, b = truth[guess >= 0], guess[guess >= 0]
    kin = (a != b) & (tree.parent[a] == tree.parent[b]) & (tree.parent[a] >= 0)
    counts = Counter(zip(a[kin].tolist(), b[kin].tolist(), strict=True))
    found = []
    for left, right in {(min(pair), max(pair)) for pair in counts}:
        there, back = counts[left, right], counts[right, left]
        one = {"left": left, "right": right, "left_as_right": there, "right_as_left": back}
        found.append(one | {"products": int(size[left] + size[right]), "confused": there + back})
    return sorted(found, key=lambda one: (-one["confused"], one["products"], one["left"], one["right"]))[
        :most
    ]
