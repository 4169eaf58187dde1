"""Judging: which products of a catalogue are relevant to which categories, under a setting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.catalogue.lineages import nodes_on_paths
from diptych.commerce.catalogue.relevance import Judged, Relevance
from diptych.commerce.catalogue.settings import asking_nodes, targets_of
from diptych.core.errors import DataError, UsageError
from diptych.metrics.ground_truth import GroundTruth


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
