"""The category that a setting gives each product."""

from __future__ import annotations

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.catalogue.settings.declaration import SETTINGS
from diptych.core.draws import draw_uniform, keys_of

_PURPOSE = "category of a product"


def targets_of(catalogue: Catalogue, setting: str, seed: int = 0, epoch: int | None = None) -> np.ndarray:
    """(n,) int64: the node that ``setting`` pairs each product with, -1 for one without a category.

    A draw belongs to the seed, the epoch and the product's id: it is the same in a split and in any order.
    """
    declared = SETTINGS.get(setting)
    if declared.draws:
        when = -1 if epoch is None else epoch
        draws = draw_uniform(seed, int(keys_of([_PURPOSE])[0]), when, keys_of(catalogue.ids))
    else:
        draws = np.zeros(len(catalogue))
    return declared.targets(catalogue, draws)


def asking_nodes(catalogue: Catalogue, setting: str) -> np.ndarray:
    """The nodes, ascending, that ask under ``setting`` where a product is relevant to all on its paths."""
    return np.flatnonzero(SETTINGS.get(setting).asking(catalogue))
