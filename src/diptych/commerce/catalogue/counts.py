"""How many products each category has."""

from __future__ import annotations

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.catalogue.lineages import nodes_on_paths


def products_per_category(catalogue: Catalogue) -> tuple[np.ndarray, np.ndarray]:
    """(nodes,) int64: products sorted into each category itself, and those in it or below it, each product once."""
    nodes = len(catalogue.tree)
    itself = np.bincount(catalogue.places, minlength=nodes)
    return itself, np.bincount(nodes_on_paths(catalogue)[1], minlength=nodes)
