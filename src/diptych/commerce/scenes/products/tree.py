"""The tree of a shop: a function of the seed and the levels, whatever the products.

Every department has an order of its own in which facets come, and a node's children are some values of the next
facet. Products come down from the root: ``prior`` is how many of them end in a leaf.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from diptych.commerce.scenes.products.facets import DEPARTMENTS, FACETS, SAID

LEVELS = (2, 9)

FREE = -1
"""The value of a facet that a category does not depend on."""

_CHILDREN = ((3, 4), (2, 3), (2, 3), (1, 3), (1, 2), (1, 2), (1, 2), (1, 2))
"""How many a node of level 1, 2, … 8 has, at least and at most."""

_DEPTHS = (10, 18, 25, 20, 12, 7, 5, 3)
"""How often products are at the least level, the one below, …: about 4.5 levels in the mean for 2 to 9."""

_IN_STOCK = {"shape": 6, "colour": 6}
"""Of how many values a shop has some: departments sell the same shapes in the same colours, so that these alone do
not tell the department."""

_ADJECTIVES_FROM = 2  # levels 1 and 2 are the department and the shape
_MOST_ADJECTIVES = 3


@dataclass(frozen=True)
class Leaf:
    """A category without children."""

    path: tuple[str, ...]  # names from the root on
    values: dict[str, str]  # facet → value, of the facets that it depends on, in their order
    prior: float  # probability that a product is here


@dataclass(frozen=True)
class ShopTree:
    """The leaves of a tree, in the order they grew in."""

    leaves: tuple[Leaf, ...]

    @cached_property
    def cumulative(self) -> list[float]:
        """Of the leaves' priors."""
        return list(np.cumsum([leaf.prior for leaf in self.leaves]))

    @cached_property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """Of all nodes, sorted."""
        nodes = {leaf.path[:level] for leaf in self.leaves for level in range(1, len(leaf.path) + 1)}
        return tuple(sorted(nodes))

    def values_of(self, facet: str) -> np.ndarray:
        """(leaves,) int64: the number of each leaf's value, :data:`FREE` where it does not depend on the facet."""
        if facet == "noun":
            said = list(SAID["noun"])
            return np.array([said.index(DEPARTMENTS[leaf.values["department"]].noun) for leaf in self.leaves])
        said = list(SAID[facet])
        return np.array(
            [said.index(leaf.values[facet]) if facet in leaf.values else FREE for leaf in self.leaves]
        )

    def with_skew(self, share: float) -> ShopTree:
        """Return the same tree with a part ``share`` of all products in its most frequent leaf, before the others'."""
        if not share:
            return self
        largest = max(self.leaves, key=lambda leaf: leaf.prior)
        return ShopTree(
            tuple(
                Leaf(leaf.path, leaf.values, leaf.prior * (1 - share) + share * (leaf is largest))
                for leaf in self.leaves
            )
        )


def grow(seed: int, levels: Sequence[int] = LEVELS) -> ShopTree:
    """Grow the tree of a seed: every leaf is at one of ``levels``, the least to the most."""
    least, most = levels
    chance = random.Random(f"diptych products/{seed}/tree")
    departments = list(DEPARTMENTS)
    chance.shuffle(departments)
    weights = [1 / (rank + 3) for rank in range(len(departments))]  # some departments sell more
    stock = {facet: list(SAID[facet]) for facet in FACETS}
    for facet, number in _IN_STOCK.items():
        stock[facet] = chance.sample(stock[facet], number)
    leaves: list[Leaf] = []
    stops = _Stops(chance, least, most)
    for name, weight in zip(departments, weights, strict=True):
        seen, unseen = ["colour", "finish"], list(FACETS[4:])
        chance.shuffle(seen)
        chance.shuffle(unseen)
        order = ("department", "shape", *seen, *unseen)
        leaves += _below(chance, stock, order, {"department": name}, (name,), weight / sum(weights), stops)
    return ShopTree(tuple(leaves))


def _below(
    chance: random.Random,
    stock: dict[str, list[str]],
    order: tuple[str, ...],
    values: dict[str, str],
    path: tuple[str, ...],
    prior: float,
    stops: _Stops,
) -> list[Leaf]:
    """Return the leaves of a node, itself if it is one."""
    level = len(path)
    if stops.at(level):
        return [Leaf(path, values, prior)]
    facet = order[level]
    some = chance.sample(stock[facet], chance.randint(*_CHILDREN[level - 1]))
    weights = [chance.uniform(0.5, 1.5) for _ in some]
    found: list[Leaf] = []
    for value, weight in zip(some, weights, strict=True):
        further = {**values, facet: value}
        found += _below(
            chance,
            stock,
            order,
            further,
            (*path, _name(order, further)),
            prior * weight / sum(weights),
            stops,
        )
    return found


class _Stops:
    """Which nodes have no children: evenly spread over a level, so that small trees are as deep as large ones."""

    def __init__(self, chance: random.Random, least: int, most: int) -> None:
        places = np.linspace(0, len(_DEPTHS) - 1, most - least + 1)
        depths = np.interp(places, np.arange(len(_DEPTHS)), _DEPTHS)
        going_on = np.cumsum(depths[::-1])[::-1]
        self._share = {level: 0.0 for level in range(1, least)}
        self._share |= dict(zip(range(least, most + 1), (depths / going_on).tolist(), strict=True))
        self._sum = {level: chance.random() for level in self._share}

    def at(self, level: int) -> bool:
        """Return whether the next node of ``level`` stops."""
        before = int(self._sum[level])
        self._sum[level] += self._share[level]
        return self._share[level] >= 1 or int(self._sum[level]) > before


def _name(order: tuple[str, ...], values: dict[str, str]) -> str:
    """Return a category's name: its last words first, before the shape and what the department sells."""
    told = [facet for facet in order[_ADJECTIVES_FROM:] if facet in values][-_MOST_ADJECTIVES:]
    noun = DEPARTMENTS[values["department"]].noun
    words = [*(values[facet] for facet in reversed(told)), values["shape"], f"{noun}s"]
    return " ".join(word.capitalize() for word in words)
