"""What is true of a shop of product scenes: what is planted, what its products have of it, and what can be known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from diptych.data.scenes.products.effects import MODALITIES, Effects
from diptych.data.scenes.products.observer import MOST_GENERAL, MOST_SPECIFIC, Observer
from diptych.data.scenes.products.tree import ShopTree

__all__ = ["Truth"]

_TOLD = ("depend", "told", "right", "free", "told beside")


class Truth:
    """What is true of a shop, as its products come by; memory is that of a few thousand of them.

    Args:
        tree: where they are.
        effects: what is planted.
    """

    def __init__(self, tree: ShopTree, effects: Effects) -> None:
        self._tree, self._effects = tree, effects
        self._observer = Observer(tree, effects)
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
        self._observer.add(lines)
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
        """What ``truth.json`` holds.

        Returns:
            ``effects`` (see :class:`~diptych.data.scenes.products.effects.Effects`); ``tree``: its leaves with their
            probabilities and the facets they depend on; ``counts`` of products; ``told``: for each modality and
            facet, of how many products that have the modality the category depends on the facet (``depend``) and of
            how many not (``free``), of how many of each a value is told (``told``, ``told beside``), and of how many
            in all it is the right one; ``ideal``: the best possible observer
            (:class:`~diptych.data.scenes.products.observer.Observer`); ``claims``: what follows from its figures.
        """
        ideal = self._observer.to_dict()
        told: dict[str, dict[str, dict[str, int]]] = {}
        for (modality, facet), counts in self._told.items():
            told.setdefault(modality, {})[facet] = dict(counts)
        return {
            "effects": self._effects.to_dict(),
            "tree": _tree(self._tree),
            "counts": self._counted(),
            "told": told,
            "ideal": ideal,
            "claims": _claims(ideal),
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


def _claims(ideal: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Claims of the thesis, chapter 7, as they are for the best possible observer."""
    at = {(row["model"], row["level"]): row["share"] for row in ideal["accuracy"]}

    def claim(said: str, *figures: tuple[str, str | int]) -> dict[str, Any]:
        """That the figures fall."""
        values = [at[one] for one in figures]
        return {
            "claim": said,
            "figures": [
                {"model": model, "level": level, "share": at[model, level]} for model, level in figures
            ],
            "holds": all(left > right for left, right in pairwise(values)),
        }

    s = MOST_SPECIFIC
    claims = [
        claim("ITA > IA > I on the most specific categories", ("clip-ita", s), ("clip-ia", s), ("clip-i", s)),
        claim("titles tell the most specific category better than pictures", ("clip-t", s), ("clip-i", s)),
        claim("pictures tell the most general category better than titles", ("clip-i", 1), ("clip-t", 1)),
        claim("pictures tell the most general category better than attributes", ("clip-i", 1), ("clip-a", 1)),
    ]
    for level, called in ((1, MOST_GENERAL), (s, MOST_SPECIFIC)):
        single = max(("clip-i", "clip-t", "clip-a"), key=lambda model: at[model, level])
        claims.append(
            claim(
                f"three modalities beat the best single one, {called}", ("clip-ita", level), (single, level)
            )
        )
    return claims
