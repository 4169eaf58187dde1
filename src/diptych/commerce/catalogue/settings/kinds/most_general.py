"""The most general category: the root (thesis section 7.4.2, ii)."""

from __future__ import annotations

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.catalogue.settings.declaration import SETTINGS, Setting

__all__ = ["MOST_GENERAL"]


def _targets(catalogue: Catalogue, draws: np.ndarray) -> np.ndarray:
    found = np.full(len(catalogue), -1, dtype=np.int64)
    some = catalogue.place >= 0
    found[some] = catalogue.tree.root[catalogue.place[some]]
    return found


def _asking(catalogue: Catalogue) -> np.ndarray:
    mask = np.zeros(len(catalogue.tree), dtype=bool)
    mask[catalogue.tree.root[catalogue.places]] = True
    return mask


MOST_GENERAL = SETTINGS.add(
    Setting(
        name="most-general",
        description="the root of a product's path; of its first path where it has several",
        targets=_targets,
        asking=_asking,
    )
)
