"""Seen categories: those that a training had pairs of."""

from __future__ import annotations

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.catalogue.settings import targets_of


def seen_nodes(train: Catalogue, setting: str, seed: int = 0, *, epochs: int = 0) -> np.ndarray:
    """(nodes of the tree,) booleans: the categories that ``setting`` pairs some training product with.

    A category above or below a seen one is not seen by that: its own text was in no pair.
    """
    seen = np.zeros(len(train.tree), dtype=bool)
    for epoch in range(epochs) if epochs else (None,):
        targets = targets_of(train, setting, seed, epoch)
        seen[targets[targets >= 0]] = True
    return seen
