"""Judging: which products of a catalogue are relevant to which categories, under a setting."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.catalogue.lineages import nodes_on_paths
from diptych.commerce.catalogue.settings import asking_nodes, targets_of
from diptych.core.errors import DataError, UsageError
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


def judge(
    catalogue: Catalogue,
    setting: str,
    relevance: Relevance = "label",
    seed: int = 0,
    *,
    query_nodes: np.ndarray | None = None,
) -> Judged:
    """The categories that ask under ``setting`` and the products relevant to each.

    Products without a category are no candidates: nobody knows what they are relevant to; ``without_category``
    counts them. A product that is relevant to no category that asks stays a candidate and asks for none itself.
    """
    if relevance not in ("label", "path"):
        raise UsageError(f"relevance {relevance!r} is none", "one of label, path")
    labels = targets_of(catalogue, setting, seed)
    products = np.flatnonzero(labels >= 0)
    asks = np.zeros(len(catalogue.tree), dtype=bool)
    if relevance == "label":
        pairs, nodes = np.arange(len(products)), labels[products]
        asks[nodes] = True
    else:
        start, nodes = nodes_on_paths(catalogue)
        pairs = np.repeat(np.cumsum(labels >= 0) - 1, np.diff(start))
        asks[asking_nodes(catalogue, setting)] = True
    if query_nodes is not None:
        asks &= _mask(query_nodes, len(asks))
    asking = np.flatnonzero(asks)
    if not len(asking):
        of = "" if query_nodes is None else f" of the {len(query_nodes):,} asked for"
        raise DataError(
            f"{catalogue.name}: no category{of} has a product, out of {len(catalogue):,} products, "
            f"{len(products):,} of them with a category",
            "give products with categories, or other categories",
        )
    text = np.cumsum(asks) - 1
    keep = asks[nodes]
    truth = GroundTruth.from_pairs(
        pairs[keep], text[nodes[keep]], len(products), len(asking), np.full(len(asking), -1)
    )
    answered = truth.i2t.counts > 0
    if not answered.all():
        answered.flags.writeable = False
        truth = replace(truth, asked={"i2t": answered})
    return Judged(
        nodes=asking,
        products=products,
        truth=truth,
        labels=labels[products],
        setting=setting,
        relevance=relevance,
        seed=seed,
        without_category=len(catalogue) - len(products),
    )


def _mask(nodes: np.ndarray, size: int) -> np.ndarray:
    wanted = np.asarray(nodes)
    if wanted.dtype == bool and wanted.shape == (size,):
        return wanted
    if len(wanted) and (wanted.dtype.kind not in "iu" or wanted.min() < 0 or wanted.max() >= size):
        raise UsageError(
            f"query nodes are not all nodes of a tree of {size:,} categories", "give node numbers"
        )
    mask = np.zeros(size, dtype=bool)
    mask[wanted.astype(np.int64)] = True
    return mask


def products_per_category(catalogue: Catalogue) -> tuple[np.ndarray, np.ndarray]:
    """(nodes,) int64: products sorted into each category itself, and those in it or below it, each product once."""
    nodes = len(catalogue.tree)
    itself = np.bincount(catalogue.places, minlength=nodes)
    return itself, np.bincount(nodes_on_paths(catalogue)[1], minlength=nodes)
