"""Which category of its paths a product is paired with, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.catalogue.lineages import nodes_on_paths
from diptych.core.draws import draw_uniform, keys_of
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


SETTINGS: Registry[Setting] = Registry("setting", "diptych.commerce.catalogue.settings")
"""All settings; each is declared in a file of its own."""


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
