"""The best possible observer of generated products, from what is planted in them.

It knows the tree, how often products are where, and what each modality tells, and reads that without error; what a
model lacks to it is the model's. Modalities tell independently of each other once the category is known, so the
posterior over leaves is their prior times a likelihood for each modality.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from diptych.commerce.scenes.products import DEPARTMENTS, MODALITIES, SHOP, WORDS, Leaf

Line = Mapping[str, Any]
EFFECTS = SHOP["effects"]
MOST_SPECIFIC = "most-specific"

SUBSETS = tuple(some for size in (1, 2, 3) for some in combinations(MODALITIES, size))
"""Every set of modalities: one of each, pairs, all three."""


def posteriors(leaves: Sequence[Leaf], lines: Sequence[Line]) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    """The modalities that are seen, and (products, leaves) how probable each leaf is."""
    likelihoods = {modality: _log_likelihood(modality, leaves, lines) for modality in MODALITIES}
    with np.errstate(divide="ignore"):
        prior = np.log([leaf.prior for leaf in leaves])[None, :]
    for some in SUBSETS:
        score = sum((likelihoods[modality] for modality in some), prior)
        weights = np.exp(
            np.round(score - score.max(axis=1, keepdims=True), 9)
        )  # the order of sums does not tell
        yield some, weights / weights.sum(axis=1, keepdims=True)


def _log_likelihood(modality: str, leaves: Sequence[Leaf], lines: Sequence[Line]) -> np.ndarray:
    """(products, leaves): log probability of what a modality tells, in each leaf; 0 where it is missing."""
    total = np.zeros((len(lines), len(leaves)))
    beside = 1.0 if modality == "picture" else EFFECTS["beside"]
    for facet, how in EFFECTS[modality].items():
        number = {value: place for place, value in enumerate((*WORDS[facet], None))}
        values = [leaf.values | {"noun": DEPARTMENTS[leaf.path[0]]["noun"]} for leaf in leaves]
        own = np.array([number[of.get(facet)] for of in values])
        told = np.array([number[line["told"].get(modality, {}).get(facet)] for line in lines])
        total += _log_table(how, len(number) - 1, beside)[own[None, :], told[:, None]]
    total[[modality not in line["told"] for line in lines]] = 0.0
    return total


def _log_table(how: Mapping[str, float], n: int, beside: float) -> np.ndarray:
    """(n + 1, n + 1): log probability that each value, or nothing, is told, of each own value, or of a free facet."""
    told, right = how["told"], how["right"]
    table = np.empty((n + 1, n + 1))
    table[:n, :n] = told * (1 - right) / max(1, n - 1)
    np.fill_diagonal(table[:n, :n], told * right)
    table[:n, n] = 1 - told
    table[n, :n] = told * beside / n
    table[n, n] = 1 - told * beside
    with np.errstate(divide="ignore"):
        logarithm: np.ndarray = np.log(table)
    return logarithm


def accuracies(
    leaves: Sequence[Leaf], lines: Sequence[Line]
) -> dict[tuple[tuple[str, ...], str | int], float]:
    """How often the most probable node is right, by modalities, and by level or among all leaves."""
    paths = sorted({leaf.path[:level] for leaf in leaves for level in range(1, len(leaf.path) + 1)})
    below = np.array([[float(leaf.path[: len(path)] == path) for path in paths] for leaf in leaves])
    depth = np.array([len(path) for path in paths])
    reached = np.array([len(line["belongs"]) for line in lines])
    found: dict[tuple[tuple[str, ...], str | int], float] = {}
    for some, shares in posteriors(leaves, lines):
        found[some, MOST_SPECIFIC] = float(shares.max(axis=1).mean())
        nodes = shares @ below
        for level in range(1, int(depth.max()) + 1):
            of_level = nodes[:, depth == level][reached >= level]
            if len(of_level):
                found[some, level] = float((of_level.max(axis=1) / of_level.sum(axis=1)).mean())
    return found
