"""How well the best possible observer does: of which category it takes a product to be, and which products it ranks
first for a category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from diptych.data.scenes.products.effects import MODALITIES, Effects
from diptych.data.scenes.products.ideal import SUBSETS, log_likelihood, model_name, posterior
from diptych.data.scenes.products.tree import ShopTree

__all__ = ["CUT_OFFS", "MOST_GENERAL", "MOST_SPECIFIC", "Observer", "shared_precision"]

MOST_GENERAL, MOST_SPECIFIC, ALL = "most-general", "most-specific", "all"

CUT_OFFS = (1, 5, 10)

_PRODUCTS = 4000
"""Of more products the first so many are averaged over, and of more test products the first so many are ranked."""


class Observer:
    """How well it does with every set of modalities.

    Args:
        tree: where products are.
        effects: what is planted.
    """

    def __init__(self, tree: ShopTree, effects: Effects) -> None:
        self._tree, self._effects = tree, effects
        self._some: list[Mapping[str, Any]] = []
        self._test: list[Mapping[str, Any]] = []

    def add(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Take products, as ``products.jsonl`` has them; further ones than are averaged over are let go."""
        self._some += lines[: max(0, _PRODUCTS - len(self._some))]
        test = [line for line in lines if line["split"] == "test" and line["category_paths"]]
        self._test += test[: max(0, _PRODUCTS - len(self._test))]

    def to_dict(self) -> dict[str, Any]:
        """All of it.

        Returns:
            ``accuracy``: of each set and level, the probability that the observer's best guess is right, of the
            products whose paths reach that level, which it is told; of ``most-specific``, of all products.
            ``precision``: P@1, P@5 and P@10 over the test products that have a category, for every category that has
            one of them: relevant are products of that root, of that leaf, or (``all``) of that node or below it.
            ``p@1 by name`` is what is left where categories are asked for by name, and several have the same.
            Products that tie share their places. A product in two places counts for the first.
        """
        return {
            "accuracy": _accuracies(self._tree, self._effects, self._some),
            "precision": _precisions(self._tree, self._effects, self._test),
        }


def _nodes(tree: ShopTree) -> np.ndarray:
    """(leaves, nodes) float64: 1 where a leaf is a node or below it; nodes are in the order of ``tree.paths``."""
    number = {path: place for place, path in enumerate(tree.paths)}
    below = np.zeros((len(tree.leaves), len(number)))
    for place, leaf in enumerate(tree.leaves):
        for level in range(1, len(leaf.path) + 1):
            below[place, number[leaf.path[:level]]] = 1
    return below


def _leaf_numbers(tree: ShopTree, lines: Sequence[Mapping[str, Any]]) -> np.ndarray:
    number = {leaf.path: place for place, leaf in enumerate(tree.leaves)}
    return np.array([number[tuple(line["belongs"])] for line in lines], dtype=np.int64)


def _accuracies(tree: ShopTree, effects: Effects, lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    likelihoods = {modality: log_likelihood(tree, effects, modality, lines) for modality in MODALITIES}
    below = _nodes(tree)
    depth = np.array([len(path) for path in tree.paths])
    leaf_depth = np.array([len(leaf.path) for leaf in tree.leaves])
    reached = leaf_depth[_leaf_numbers(tree, lines)]
    rows = []
    for some in SUBSETS:
        shares = posterior(tree, likelihoods, some)
        nodes = shares @ below
        best: dict[str | int, np.ndarray] = {MOST_SPECIFIC: shares.max(axis=1)}
        for level in range(1, int(leaf_depth.max()) + 1):
            of_level = nodes[:, depth == level][reached >= level]
            if len(of_level):
                best[level] = of_level.max(axis=1) / of_level.sum(axis=1)
        for reach, right in best.items():
            rows.append(
                {
                    "model": model_name(some),
                    "modalities": list(some),
                    "level": reach,
                    "products": len(right),
                    "share": float(right.mean()),
                    "error": float(right.std() / np.sqrt(len(right))),
                }
            )
    return rows


def _precisions(tree: ShopTree, effects: Effects, test: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    if not test:
        return []
    likelihoods = {modality: log_likelihood(tree, effects, modality, test) for modality in MODALITIES}
    own = _leaf_numbers(tree, test)
    below = _nodes(tree)
    paths = tree.paths
    leaves = {leaf.path for leaf in tree.leaves}
    nodes = {
        MOST_GENERAL: [place for place, path in enumerate(paths) if len(path) == 1],
        MOST_SPECIFIC: [place for place, path in enumerate(paths) if path in leaves],
        ALL: list(range(len(paths))),
    }
    rows = []
    for some in SUBSETS:
        shares = posterior(tree, likelihoods, some) @ below
        for setting, asked in nodes.items():
            relevant = below[own][:, asked] > 0
            kept = np.flatnonzero(relevant.any(axis=0))
            names = [paths[asked[place]][-1] for place in range(len(asked))]
            scores = shares[:, asked]
            at = {k: shared_precision(scores[:, kept], relevant[:, kept], k) for k in CUT_OFFS}
            by_name = _merged(scores, names)[:, kept]
            rows.append(
                {
                    "model": model_name(some),
                    "modalities": list(some),
                    "setting": setting,
                    "categories": len(kept),
                    "products": len(test),
                    **{f"p@{k}": float(shared.mean()) for k, shared in at.items()},
                    "error of p@1": float(at[1].std() / np.sqrt(len(kept))),
                    "p@1 by name": float(shared_precision(by_name, relevant[:, kept], 1).mean()),
                }
            )
    return rows


def _merged(scores: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Scores of columns of one name added up, in each of their columns."""
    _, number = np.unique(np.array(names, dtype=object).astype(str), return_inverse=True)
    together = np.zeros((len(scores), int(number.max()) + 1))
    np.add.at(together.T, number, scores.T)
    merged: np.ndarray = together[:, number]
    return merged


def shared_precision(scores: np.ndarray, relevant: np.ndarray, k: int) -> np.ndarray:
    """(queries,) float64: P@k of every column, where items of equal scores share their places.

    Args:
        scores: (items, queries).
        relevant: (items, queries) booleans.
        k: places; of fewer items, all count and the rest are not relevant.
    """
    n = len(scores)
    if n <= k:
        everything: np.ndarray = relevant.sum(axis=0) / k
        return everything
    scores = np.round(scores, 12)
    edge = np.partition(scores, n - k, axis=0)[n - k]
    above, tied = scores > edge, scores == edge
    places = (k - above.sum(axis=0)) / tied.sum(axis=0)
    shared: np.ndarray = ((relevant & above).sum(axis=0) + places * (relevant & tied).sum(axis=0)) / k
    return shared
