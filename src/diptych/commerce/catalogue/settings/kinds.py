"""One file per setting."""

from __future__ import annotations

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.catalogue.lineages import nodes_on_paths
from diptych.commerce.catalogue.settings.declaration import SETTINGS, Setting


def _targets(catalogue: Catalogue, draws: np.ndarray) -> np.ndarray:
    """Each category on the product's paths is as likely, however many paths share it."""
    start, nodes = nodes_on_paths(catalogue)
    counts = np.diff(start)
    found = np.full(len(catalogue), -1, dtype=np.int64)
    some = counts > 0
    found[some] = nodes[start[:-1][some] + (draws[some] * counts[some]).astype(np.int64)]
    return found


def _asking(catalogue: Catalogue) -> np.ndarray:
    """Every category with a product on or below it."""
    mask = np.zeros(len(catalogue.tree), dtype=bool)
    mask[catalogue.places] = True
    on_the_way = catalogue.tree.lineage[mask]
    mask[on_the_way[on_the_way >= 0]] = True
    return mask


ALL = SETTINGS.add(
    Setting(
        name="all",
        description="one category of a product's paths, drawn, each as likely",
        targets=_targets,
        asking=_asking,
        draws=True,
    )
)


def _most_general_targets(catalogue: Catalogue, draws: np.ndarray) -> np.ndarray:
    found = np.full(len(catalogue), -1, dtype=np.int64)
    some = catalogue.place >= 0
    found[some] = catalogue.tree.root[catalogue.place[some]]
    return found


def _most_general_asking(catalogue: Catalogue) -> np.ndarray:
    mask = np.zeros(len(catalogue.tree), dtype=bool)
    mask[catalogue.tree.root[catalogue.places]] = True
    return mask


MOST_GENERAL = SETTINGS.add(
    Setting(
        name="most-general",
        description="the root of a product's path; of its first path where it has several",
        targets=_most_general_targets,
        asking=_most_general_asking,
    )
)


def _most_specific_targets(catalogue: Catalogue, draws: np.ndarray) -> np.ndarray:
    return catalogue.place.copy()


def _most_specific_asking(catalogue: Catalogue) -> np.ndarray:
    mask = np.zeros(len(catalogue.tree), dtype=bool)
    mask[catalogue.places] = True
    return mask


MOST_SPECIFIC = SETTINGS.add(
    Setting(
        name="most-specific",
        description="the last category of a product's path; of its first path where it has several",
        targets=_most_specific_targets,
        asking=_most_specific_asking,
    )
)
