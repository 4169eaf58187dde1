"""All categories of a product: those of its paths, from the roots on."""

from __future__ import annotations

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.core.distinct import distinct


def nodes_on_paths(catalogue: Catalogue) -> tuple[np.ndarray, np.ndarray]:
    """(n + 1,) starts and nodes: product i is on or below ``nodes[start[i]:start[i + 1]]``, ascending, each once.

    Ascending is from the root on where a product has one path, since parents have smaller numbers.
    """
    tree, n = catalogue.tree, len(catalogue)
    places = np.diff(catalogue.place_start)
    if not len(catalogue.places):
        return np.zeros(n + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    depth = tree.depth[catalogue.places]
    nodes = tree.lineage[catalogue.places]
    nodes = nodes[nodes >= 0]
    product = np.repeat(np.repeat(np.arange(n), places), depth)
    if (places > 1).any():  # two paths share what they have in common
        product, nodes = np.divmod(distinct(product * len(tree) + nodes), len(tree))
    start = np.concatenate([[0], np.cumsum(np.bincount(product, minlength=n))]).astype(np.int64)
    return start, nodes
