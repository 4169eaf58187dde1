"""Which categories a product can be filled into, and what every node of the tree gets of their probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.core.errors import DataError, UsageError
from diptych.data.taxonomy import CategoryTree

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Candidates = Literal["specific", "all"]
"""``specific``: categories that a product can be sorted into as its most specific one: those without children, and
those that products of the shop are sorted into; ``all``: every node of the tree."""


def candidate_nodes(catalogue: Catalogue, kind: Candidates = "specific") -> np.ndarray:
    """(c,) int64 nodes, ascending."""
    if kind not in ("specific", "all"):
        raise UsageError(f"candidates {kind!r} are none", "specific or all")
    tree = catalogue.tree
    if not len(tree):
        raise DataError(f"{catalogue.name}: the tree has no categories", "give a taxonomy")
    can = tree.is_leaf.copy() if kind == "specific" else np.ones(len(tree), dtype=bool)
    can[catalogue.places] = True
    return np.flatnonzero(can)


def masses_of(tree: CategoryTree, candidates: np.ndarray) -> csr_array:
    """(c, len(tree)) float64: 1 where a candidate is a node or below it; probabilities times it are those of nodes."""
    from scipy.sparse import csr_array

    lineage = tree.lineage[candidates]
    row, level = np.nonzero(lineage >= 0)
    columns = lineage[row, level]
    return csr_array((np.ones(len(row)), (row, columns)), shape=(len(candidates), len(tree)))


def descend(tree: CategoryTree, masses: np.ndarray, own: np.ndarray) -> np.ndarray:
    """The way down from the roots, at each node to the child that holds most; it ends where the node itself holds more.

    Args:
        masses: (n, len(tree)) probabilities of each node and all below it.
        own: (n, len(tree)) probabilities of each node itself, 0 where it is no candidate.

    Returns:
        (n, deepest) int64 nodes, -1 behind the end. Of equal children the first in the tree.
    """
    n, deepest = len(masses), int(tree.depth.max(initial=1))
    path = np.full((n, deepest), -1, dtype=np.int64)
    current = np.full(n, -1, dtype=np.int64)
    going = np.ones(n, dtype=bool)
    for level in range(1, deepest + 1):
        here = np.flatnonzero(tree.depth == level)
        children = tree.parent[here][None, :] == current[going][:, None]
        held = np.where(children, masses[np.ix_(going, here)], -1.0)
        best = held.argmax(axis=1)
        most = held[np.arange(len(best)), best]
        stays = np.zeros(len(best)) - 1.0
        below = current[going] >= 0
        stays[below] = own[np.flatnonzero(going)[below], current[going][below]]
        goes = (most > stays) & (most >= 0)
        rows = np.flatnonzero(going)
        path[rows[goes], level - 1] = here[best[goes]]
        current[rows[goes]] = here[best[goes]]
        going[rows[~goes]] = False
        if not going.any():
            break
    return path
