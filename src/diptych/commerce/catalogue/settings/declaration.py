"""A setting: which category stands for a product, and which categories ask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.core.registry import Registry


@dataclass(frozen=True)
class Setting:
    """One way to pair products with categories (thesis section 7.4.2).

    Attributes:
        name: ``all``, ``most-general`` or ``most-specific``.
        description: one line.
        targets: from a catalogue and (n,) draws in [0, 1), one per product: (n,) int64 nodes, -1 for a product
            without a category.
        asking: from a catalogue: (nodes of the tree,) booleans, the categories that ask where a product is relevant
            to all on its paths.
        draws: whether chance has a part in it.
    """

    name: str
    description: str
    targets: Callable[[Catalogue, np.ndarray], np.ndarray]
    asking: Callable[[Catalogue], np.ndarray]
    draws: bool = False


SETTINGS: Registry[Setting] = Registry("setting", "diptych.commerce.catalogue.settings.kinds")
"""All settings; each is declared in a file of its own."""
