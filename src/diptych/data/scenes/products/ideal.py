"""The best possible observer: what can be known of a product's category from what some modalities tell.

It knows the tree, how often products are where, and what is planted, and reads what is told without error. What it
cannot know nobody can, but by chance; what a model lacks to it is the model's. Modalities tell independently of each
other once the category is known, so its posterior over the leaves is their prior times a likelihood for each
modality, and all of it is exact. Which products are averaged over is chance: shares come with their standard error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from diptych.data.scenes.products.effects import MODALITIES, Effects, Telling
from diptych.data.scenes.products.facets import SAID
from diptych.data.scenes.products.tree import ShopTree

__all__ = ["SUBSETS", "log_likelihood", "model_name", "posterior"]

SUBSETS: tuple[tuple[str, ...], ...] = tuple(
    some for size in range(1, len(MODALITIES) + 1) for some in combinations(MODALITIES, size)
)
"""Every set of modalities: one of each, pairs, all three."""

_DIGITS = 9
"""Of log posteriors: what differs by less was added up in another order."""


def model_name(modalities: Sequence[str]) -> str:
    """What the model that sees these is called: ``clip-ita`` for all three."""
    return "clip-" + "".join(modality[0] for modality in modalities).replace("p", "i")


def log_likelihood(
    tree: ShopTree, effects: Effects, modality: str, lines: Sequence[Mapping[str, Any]]
) -> np.ndarray:
    """(products, leaves) float64: logarithm of the probability of what a modality tells of each product, were it in
    each leaf; 0 where a product lacks the modality.

    Args:
        tree: its leaves.
        effects: what is planted.
        modality: one of :data:`~diptych.data.scenes.products.effects.MODALITIES`.
        lines: of ``products.jsonl``, or records: ``told`` is read.
    """
    total = np.zeros((len(lines), len(tree.leaves)))
    given = np.array([modality in line["told"] for line in lines], dtype=bool)
    for facet, how in effects.of(modality).items():
        values = list(SAID[facet])
        told = [line["told"].get(modality, {}).get(facet) for line in lines]
        said = np.array([len(values) if one is None else values.index(one) for one in told], dtype=np.int64)
        beside = 1.0 if modality == "picture" else effects.beside
        # a free facet has the number -1: the last row of the table
        table = _table(how, len(values), beside)
        total += table[tree.values_of(facet)[None, :], said[:, None]]
    total[~given] = 0.0
    return total


def _table(how: Telling, n: int, beside: float) -> np.ndarray:
    """(n + 1, n + 1): log probability that each value, or nothing, is told, of each own value, or of a free facet."""
    table = np.empty((n + 1, n + 1))
    table[:n, :n] = how.told * (1 - how.right) / max(1, n - 1)
    np.fill_diagonal(table[:n, :n], how.told * how.right)
    table[:n, n] = 1 - how.told
    table[n, :n] = how.told * beside / n
    table[n, n] = 1 - how.told * beside
    with np.errstate(divide="ignore"):
        logarithm: np.ndarray = np.log(table)
    return logarithm


def posterior(tree: ShopTree, likelihoods: Mapping[str, np.ndarray], modalities: Sequence[str]) -> np.ndarray:
    """(products, leaves) float64: how probable each leaf is, by what some modalities tell.

    Args:
        tree: its leaves' priors.
        likelihoods: modality → what :func:`log_likelihood` gives.
        modalities: those that are seen.
    """
    with np.errstate(divide="ignore"):
        score = np.log([leaf.prior for leaf in tree.leaves])[None, :]
    for modality in modalities:
        score = score + likelihoods[modality]
    score = np.round(score - score.max(axis=1, keepdims=True), _DIGITS)
    weights = np.exp(score)
    shares: np.ndarray = weights / weights.sum(axis=1, keepdims=True)
    return shares
