"""Which categories of a tree stand on which page: whole branches together, as long as a page stays small."""

from __future__ import annotations

import numpy as np

from diptych.data.taxonomy import CategoryTree

__all__ = ["pages_of"]


def pages_of(tree: CategoryTree, nodes: np.ndarray, pictures: np.ndarray, limit: int) -> list[np.ndarray]:
    """Places in ``nodes`` of what each page shows, in the order of the tree.

    A branch that is too large for a page is broken below its root; neighbours share a page while they fit.

    Args:
        tree: the categories.
        nodes: (q,) int64 nodes, ascending, each once.
        pictures: (q,) how many pictures each has.
        limit: of pictures on a page; one category's are never broken up.
    """
    before = np.concatenate([[0], np.cumsum(pictures)])
    end = _ends(tree, nodes)
    pages: list[np.ndarray] = []
    begin = place = 0
    while place < len(nodes):
        fits = before[end[place]] - before[place] <= limit
        after = int(end[place]) if fits else place + 1
        starts_anew = not fits and tree.depth[nodes[place]] == 1  # a large tree begins its own page
        if place > begin and (starts_anew or before[after] - before[begin] > limit):
            pages.append(np.arange(begin, place))
            begin = place
        place = after
    if begin < len(nodes):
        pages.append(np.arange(begin, len(nodes)))
    return pages


def _ends(tree: CategoryTree, nodes: np.ndarray) -> np.ndarray:
    """(q,) int64: the place behind the last of each node's branch; nodes of a branch stand next to each other."""
    end = np.arange(1, len(nodes) + 1)
    open_places: list[int] = []
    for place, node in enumerate(nodes.tolist()):
        while open_places and nodes[open_places[-1]] not in tree.ancestors(node):
            end[open_places.pop()] = place
        open_places.append(place)
    end[open_places] = len(nodes)
    return end
