"""Pairs: which category each product is trained with, and which categories ask with the same words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.catalogue.lineages import nodes_on_paths
from diptych.commerce.catalogue.settings import targets_of
from diptych.commerce.category_to_image.loss.tree_distance import greatest_distance, tree_margins
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.core.errors import DataError


class Pairs:
    """Category–product pairs of one training.

    Attributes:
        products: (n,) int64 rows of the catalogue: the products with a category.
        left_out: how many have none.
    """

    def __init__(self, catalogue: Catalogue, texts: Sequence[str], options: TrainOptions) -> None:
        self._catalogue = catalogue
        self._options = options
        labels = targets_of(catalogue, options.setting, options.seed)
        self.products = np.flatnonzero(labels >= 0)
        self.left_out = len(catalogue) - len(self.products)
        if len(self.products) < 2:
            raise DataError(
                f"{len(self.products)} of {len(catalogue):,} products have a category",
                "give at least two that have one",
            )
        # Categories of the same words have the same row: to the model they are one, and so they are here.
        known: dict[str, int] = {}
        self._asks = np.array(
            [known.setdefault(text, node) for node, text in enumerate(texts)], dtype=np.int64
        )
        self._labels = labels
        if not options.resample and len(np.unique(self._asks[labels[self.products]])) < 2:
            raise DataError(
                f"all {len(self.products):,} products ask with the words {texts[labels[self.products[0]]]!r}",
                "a contrastive loss needs two categories: choose another setting, or query=path",
            )
        drawn = nodes_on_paths(catalogue)[1] if options.resample else labels[self.products]
        self._greatest = greatest_distance(catalogue.tree, drawn)

    def labels(self, epoch: int) -> np.ndarray:
        """(len(products),) int64: the node of each pair in this epoch."""
        if self._options.resample:
            return targets_of(self._catalogue, self._options.setting, self._options.seed, epoch)[
                self.products
            ]
        return self._labels[self.products]

    def asking(self, nodes: np.ndarray) -> np.ndarray:
        """The first node that has the same words, for each of ``nodes``."""
        asks: np.ndarray = self._asks[nodes]
        return asks

    def margins(self, nodes: np.ndarray) -> np.ndarray | None:
        """(β, β) margins of the tree-aware loss, None where it is the plain one."""
        strength = self._options.tree_distance
        return tree_margins(self._catalogue.tree, nodes, strength, self._greatest) if strength else None
