"""Which products are relevant to which category, and which categories ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from diptych.metrics.ground_truth import GroundTruth

Relevance = Literal["label", "path"]
"""``label``: a product is relevant to the one category that its setting gave it, as published; ``path``: to every
category on its paths that the setting asks for, ancestors included."""


@dataclass(frozen=True, eq=False)
class Judged:
    """Categories that ask, and the products that are relevant to them.

    Attributes:
        nodes: (q,) int64 nodes of the tree, ascending, each with at least one relevant product.
        products: (n,) int64 rows of the catalogue that are candidates: those with a category.
        truth: products as images (rows of ``products``), categories as texts (rows of ``nodes``); a category belongs
            to no product, so each is a query of its own when queries are resampled.
        labels: (n,) int64 the category that the setting gave each candidate.
        setting: its name.
        relevance: the rule.
        seed: of the setting's draws.
        without_category: how many products are no candidates, since nobody knows what they are relevant to.
    """

    nodes: np.ndarray
    products: np.ndarray
    truth: GroundTruth
    labels: np.ndarray
    setting: str
    relevance: Relevance
    seed: int
    without_category: int = 0
