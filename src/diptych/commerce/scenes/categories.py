"""The categories of generated products: what they say, and their tree.

A category says the department first, then the shape, then what it adds level by level; which facet comes at which
level differs from department to department. Words and numbers stand in ``products.toml``.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from diptych.core.reading import read_toml
from diptych.data.scenes.facts import COLOUR_WORDS, MATERIAL_WORDS, SHAPE_WORDS

SHOP = read_toml(Path(__file__).with_name("products.toml"))

DEPARTMENTS: Mapping[str, Mapping[str, str]] = SHOP["departments"]
"""Root of the tree → the background of its images and the noun of what it sells."""

WORDS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "department": {name: (name,) for name in DEPARTMENTS},
    "shape": SHAPE_WORDS,
    "colour": COLOUR_WORDS,
    "finish": MATERIAL_WORDS,
    **SHOP["words"],
}
"""Facet → value → what titles say for it; the first is the category's word, and what attributes say."""

FACETS = tuple(facet for facet in WORDS if facet != "noun")
"""What a category can depend on: one for each of nine levels. The noun follows from the department."""

MODALITIES = ("picture", "title", "attributes")


@dataclass(frozen=True)
class Leaf:
    """A category without children."""

    path: tuple[str, ...]  # names from the root on
    values: dict[str, str]  # facet → value, of the facets that it depends on, in their order
    prior: float  # probability that a product is here


def grow(seed: int, levels: tuple[int, int] = (2, len(FACETS)), skew: float = 0.0) -> list[Leaf]:
    """Grow a tree and return its leaves: every department has an order of its own in which facets come.

    Args:
        levels: of the leaves, the least and the most.
        skew: part of all products that is in the most frequent leaf, before the others'.
    """
    chance = random.Random(f"diptych products/{seed}/tree")
    departments = list(DEPARTMENTS)
    chance.shuffle(departments)
    weights = [1 / (rank + 3) for rank in range(len(departments))]  # some departments sell more
    stock = {facet: list(WORDS[facet]) for facet in FACETS}
    for facet, number in SHOP["tree"]["stock"].items():
        stock[facet] = chance.sample(stock[facet], number)
    # Leaves are evenly spread over the nodes of a level, so that small trees are as deep as large ones.
    stops = _stops(*levels)
    sums = {level: chance.random() for level in stops}

    def below(
        order: list[str], values: dict[str, str], path: tuple[str, ...], prior: float
    ) -> Iterator[Leaf]:
        level = len(path)
        before = int(sums[level])
        sums[level] += stops[level]
        if stops[level] >= 1 or int(sums[level]) > before:
            yield Leaf(path, values, prior)
            return
        facet = order[level]
        some = chance.sample(stock[facet], chance.randint(*SHOP["tree"]["children"][level - 1]))
        shares = [chance.uniform(0.5, 1.5) for _ in some]
        for value, share in zip(some, shares, strict=True):
            further = {**values, facet: value}
            yield from below(order, further, (*path, _name(further)), prior * share / sum(shares))

    leaves: list[Leaf] = []
    for name, weight in zip(departments, weights, strict=True):
        seen, unseen = ["colour", "finish"], list(FACETS[4:])
        chance.shuffle(seen)
        chance.shuffle(unseen)
        order = ["department", "shape", *seen, *unseen]
        leaves += below(order, {"department": name}, (name,), weight / sum(weights))
    largest = max(leaves, key=lambda leaf: leaf.prior)
    priors = (leaf.prior * (1 - skew) + skew * (leaf is largest) for leaf in leaves)
    return [Leaf(leaf.path, leaf.values, prior) for leaf, prior in zip(leaves, priors, strict=True)]


def _stops(least: int, most: int) -> dict[int, float]:
    """Return which part of the nodes of each level have no children."""
    depths = SHOP["tree"]["depths"]
    here = np.interp(np.linspace(0, len(depths) - 1, most - least + 1), np.arange(len(depths)), depths)
    shares = (here / np.cumsum(here[::-1])[::-1]).tolist()
    return dict.fromkeys(range(1, least), 0.0) | dict(enumerate(shares, start=least))


def _name(values: dict[str, str]) -> str:
    """Return a category's name: its last words first, before the shape and what the department sells."""
    department, shape, *others = values.values()
    words = [*reversed(others[-3:]), shape, f"{DEPARTMENTS[department]['noun']}s"]
    return " ".join(word.capitalize() for word in words)
