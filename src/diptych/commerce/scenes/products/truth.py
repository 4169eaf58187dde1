"""What is true of a shop of product scenes: what is planted, what its products have of it, and what can be known.

The best possible observer knows the tree, how often products are where, and what is planted, and reads what is told
without error; what a model lacks to it is the model's. Modalities tell independently of each other once the category
is known, so its posterior over the leaves is their prior times a likelihood for each modality, and all of it is exact.
Which products are averaged over is chance: shares come with their standard error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

import numpy as np

from diptych.commerce.scenes.products.facets import MODALITIES, SAID, Effects, Telling
from diptych.commerce.scenes.products.tree import ShopTree
from diptych.core.table import Table

SUBSETS: tuple[tuple[str, ...], ...] = tuple(
    some for size in range(1, len(MODALITIES) + 1) for some in combinations(MODALITIES, size)
)
"""Every set of modalities: one of each, pairs, all three."""

_DIGITS = 9
"""Of log posteriors: what differs by less was added up in another order."""


def model_name(modalities: Sequence[str]) -> str:
    """Return what the model that sees these is called: ``clip-ita`` for all three."""
    return "clip-" + "".join(modality[0] for modality in modalities).replace("p", "i")


def log_likelihood(
    tree: ShopTree, effects: Effects, modality: str, lines: Sequence[Mapping[str, Any]]
) -> np.ndarray:
    """(products, leaves) float64: logarithm of the probability of what a modality tells of each product, were it in
    each leaf; 0 where a product lacks the modality.
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
    """(products, leaves) float64: how probable each leaf is, by what some modalities tell."""
    with np.errstate(divide="ignore"):
        score = np.log([leaf.prior for leaf in tree.leaves])[None, :]
    for modality in modalities:
        score = score + likelihoods[modality]
    score = np.round(score - score.max(axis=1, keepdims=True), _DIGITS)
    weights = np.exp(score)
    shares: np.ndarray = weights / weights.sum(axis=1, keepdims=True)
    return shares


MOST_GENERAL, MOST_SPECIFIC, ALL = "most-general", "most-specific", "all"

CUT_OFFS = (1, 5, 10)

_PRODUCTS = 4000
"""Of more products the first so many are averaged over, and of more test products the first so many are ranked."""


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


_TOLD = ("depend", "told", "right", "free", "told beside")


class Truth:
    """What is true of a shop, as its products come by; memory is that of a few thousand of them."""

    def __init__(self, tree: ShopTree, effects: Effects) -> None:
        self._tree, self._effects = tree, effects
        self._some: list[Mapping[str, Any]] = []
        self._test: list[Mapping[str, Any]] = []
        self._counts: Counter[str] = Counter()
        self._splits: Counter[str] = Counter()
        self._leaves: Counter[tuple[str, ...]] = Counter()
        self._told: dict[tuple[str, str], Counter[str]] = {
            (modality, facet): Counter(dict.fromkeys(_TOLD, 0))
            for modality in MODALITIES
            for facet in effects.of(modality)
        }

    def add(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Count products, as ``products.jsonl`` has them."""
        self._some += lines[: max(0, _PRODUCTS - len(self._some))]
        test = [line for line in lines if line["split"] == "test" and line["category_paths"]]
        self._test += test[: max(0, _PRODUCTS - len(self._test))]
        for line in lines:
            self._splits[line["split"]] += 1
            self._leaves[tuple(line["belongs"])] += 1
            self._counts["without category"] += not line["category_paths"]
            self._counts["in two places"] += len(line["category_paths"]) > 1
            for modality in MODALITIES:
                self._counts[f"without {modality}"] += modality not in line["told"]
                if modality in line["told"]:
                    self._add_told(modality, line)

    def _add_told(self, modality: str, line: Mapping[str, Any]) -> None:
        for facet in self._effects.of(modality):
            counts = self._told[modality, facet]
            depends = facet == "noun" or facet in line["depends"]
            value = line["told"][modality].get(facet)
            counts["depend" if depends else "free"] += 1
            if value is not None:
                counts["told" if depends else "told beside"] += 1
                counts["right"] += value == line["facts"][facet]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``truth.json`` holds."""
        told: dict[str, dict[str, dict[str, int]]] = {}
        for (modality, facet), counts in self._told.items():
            told.setdefault(modality, {})[facet] = dict(counts)
        return {
            "effects": asdict(self._effects),
            "tree": _tree(self._tree),
            "counts": self._counted(),
            "told": told,
            "ideal": {
                "accuracy": _accuracies(self._tree, self._effects, self._some),
                "precision": _precisions(self._tree, self._effects, self._test),
            },
        }

    def _counted(self) -> dict[str, Any]:
        n = self._leaves.total()
        levels: Counter[int] = Counter()
        for path, count in self._leaves.items():
            levels[len(path)] += count
        nodes = {path[:level] for path in self._leaves for level in range(1, len(path) + 1)}
        return {
            "products": n,
            "splits": dict(self._splits),
            **{f"without {modality}": self._counts[f"without {modality}"] for modality in MODALITIES},
            "without category": self._counts["without category"],
            "in two places": self._counts["in two places"],
            "categories with products": len(nodes),
            "levels": {str(level): levels[level] for level in sorted(levels)},
            "mean level": sum(level * count for level, count in levels.items()) / n,
            "in the largest category": max(self._leaves.values()),
        }


def shown(truth: Mapping[str, Any]) -> tuple[str, Table]:
    """Return what ``truth.json`` says of the tree, and of how well a category can be known."""
    counts, tree, accuracy = truth["counts"], truth["tree"], truth["ideal"]["accuracy"]
    at = {(row["model"], row["level"]): f"{row['share']:.1%}" for row in accuracy}
    models = {row["model"]: " + ".join(row["modalities"]) for row in accuracy}
    rows = [(seen, at[model, 1], at[model, "most-specific"]) for model, seen in models.items()]
    line = (
        f"{counts['categories with products']:,} of {tree['categories']:,} categories have products, "
        f"{counts['mean level']:.1f} levels in the mean; "
        f"{tree['categories that share a name']:,} share a name with another"
    )
    title = "how often the best possible observer would know a product's category"
    return line, Table.of(title, "", ("from its", "most general", "most specific"), rows)


def _tree(tree: ShopTree) -> dict[str, Any]:
    names = Counter(path[-1] for path in tree.paths)
    return {
        "categories": len(tree.paths),
        "most specific": len(tree.leaves),
        "mean level": sum(leaf.prior * len(leaf.path) for leaf in tree.leaves),
        "categories that share a name": sum(count for count in names.values() if count > 1),
        "leaves": [
            {"path": list(leaf.path), "probability": leaf.prior, "values": leaf.values}
            for leaf in tree.leaves
        ],
    }
