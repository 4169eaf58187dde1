"""The most specific category: where the path ends (thesis section 7.4.2, iii)."""

from __future__ import annotations

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.catalogue.settings.declaration import SETTINGS, Setting

__all__ = ["MOST_SPECIFIC"]


def _targets(catalogue: Catalogue, draws: np.ndarray) -> np.ndarray:
    return catalogue.place.copy()


def _asking(catalogue: Catalogue) -> np.ndarray:
    mask = np.zeros(len(catalogue.tree), dtype=bool)
    mask[catalogue.places] = True
    return mask


MOST_SPECIFIC = SETTINGS.add(
    Setting(
        name="most-specific",
        description="the last category of a product's path; of its first path where it has several",
        targets=_targets,
        asking=_asking,
    )
)
