"""The categories of generated products: what they say, their tree, what is planted, and how well they can be known.

A category says the department first, then the shape, then what it adds level by level; which facet comes at which
level differs from department to department. Words and numbers stand in ``products.toml``.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.reading import read_toml
from diptych.core.table import Table
from diptych.data.scenes.facts import COLOUR_WORDS, MATERIAL_WORDS, SHAPE_WORDS
from diptych.data.scenes.generator import with_changes

Line = Mapping[str, Any]
Effects = Mapping[str, Any]

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


def planted(changes: Effects | None = None) -> dict[str, Any]:
    """Return the effects of ``products.toml`` with other values for some of them."""
    effects = with_changes(SHOP["effects"], changes)
    can_tell = {
        "picture": FACETS[:4],
        "title": set(WORDS) - {"department"},  # they tell it by the noun
        "attributes": set(WORDS) - {"noun"},
    }
    shares = {name: effects[name] for name in effects if name not in MODALITIES}
    for modality, facets in can_tell.items():
        for facet, how in effects[modality].items():
            if facet not in facets:
                raise UnknownNameError(f"facet that {modality} can tell:", facet, sorted(facets))
            shares |= {f"{modality}: {facet}, {key}": share for key, share in how.items()}
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise UsageError(f"effects: {name} is {share}", "give a probability, 0 to 1")
    if [how["told"] for how in effects["picture"].values()] != [1.0] * 4:
        raise UsageError(
            f"effects: pictures tell {', '.join(effects['picture'])}",
            f"give {', '.join(FACETS[:4])}, each told with probability 1: a picture shows some value of each",
        )
    return effects


@dataclass(frozen=True)
class Leaf:
    """A category without children."""

    path: tuple[str, ...]  # names from the root on
    values: dict[str, str]  # facet → value, of the facets that it depends on, in their order
    prior: float  # probability that a product is here

    @property
    def nodes(self) -> list[tuple[str, ...]]:
        """Return the paths of all categories that it lies in, from the root to itself."""
        return [self.path[:level] for level in range(1, len(self.path) + 1)]

    def value(self, facet: str) -> str | None:
        """Return what a product here has of a facet; None where it may have any."""
        return DEPARTMENTS[self.path[0]]["noun"] if facet == "noun" else self.values.get(facet)


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
    return [
        Leaf(leaf.path, leaf.values, leaf.prior * (1 - skew) + skew * (leaf is largest)) for leaf in leaves
    ]


def _stops(least: int, most: int) -> dict[int, float]:
    """Return which part of the nodes of each level have no children."""
    depths = SHOP["tree"]["depths"]
    places = np.linspace(0, len(depths) - 1, most - least + 1)
    here = np.interp(places, np.arange(len(depths)), depths)
    from_here = np.cumsum(here[::-1])[::-1]
    shares = zip(range(least, most + 1), (here / from_here).tolist(), strict=True)
    return dict.fromkeys(range(1, least), 0.0) | dict(shares)


def _name(values: dict[str, str]) -> str:
    """Return a category's name: its last words first, before the shape and what the department sells."""
    department, shape, *others = values.values()
    words = [*reversed(others[-3:]), shape, f"{DEPARTMENTS[department]['noun']}s"]
    return " ".join(word.capitalize() for word in words)


SUBSETS = tuple(some for size in (1, 2, 3) for some in combinations(MODALITIES, size))
"""Every set of modalities: one of each, pairs, all three."""

MOST_SPECIFIC = "most-specific"

_DIGITS = 9  # of log posteriors: what differs by less was added up in another order
_PRODUCTS = 4000  # of more, the first so many are averaged over, or ranked


class Observer:
    """The best possible one: it knows the tree, how often products are where, and what is planted.

    It reads what is told without error; what a model lacks to it is the model's. Modalities tell independently of each
    other once the category is known, so its posterior over the leaves is their prior times a likelihood for each
    modality, and all of it is exact. Which products are averaged over is chance: shares come with a standard error.
    """

    def __init__(self, leaves: Sequence[Leaf], effects: Effects) -> None:
        self.leaves, self.effects = leaves, effects
        self.paths = sorted({path for leaf in leaves for path in leaf.nodes})
        self._number = {path: place for place, path in enumerate(self.paths)}
        # (leaves, nodes): 1 where a leaf is a node or below it
        self._below = np.zeros((len(leaves), len(self.paths)))
        for row, leaf in zip(self._below, leaves, strict=True):
            row[[self._number[path] for path in leaf.nodes]] = 1

    def posteriors(self, lines: Sequence[Line]) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
        """Yield the model that sees some modalities, and (products, leaves) how probable it holds each leaf."""
        likelihoods = {modality: self._log_likelihood(modality, lines) for modality in MODALITIES}
        with np.errstate(divide="ignore"):
            prior = np.log([leaf.prior for leaf in self.leaves])[None, :]
        for some in SUBSETS:
            score = sum((likelihoods[modality] for modality in some), prior)
            weights = np.exp(np.round(score - score.max(axis=1, keepdims=True), _DIGITS))
            name = "clip-" + "".join(modality[0] for modality in some).replace("p", "i")
            model = {"model": name, "modalities": list(some)}
            yield model, weights / weights.sum(axis=1, keepdims=True)

    def _log_likelihood(self, modality: str, lines: Sequence[Line]) -> np.ndarray:
        """(products, leaves): log probability of what a modality tells, in each leaf; 0 where it is missing."""
        total = np.zeros((len(lines), len(self.leaves)))
        beside = 1.0 if modality == "picture" else self.effects["beside"]
        for facet, how in self.effects[modality].items():
            number = {value: place for place, value in enumerate((*WORDS[facet], None))}
            own = np.array([number[leaf.value(facet)] for leaf in self.leaves])
            told = np.array([number[line["told"].get(modality, {}).get(facet)] for line in lines])
            total += _log_table(how, len(number) - 1, beside)[own[None, :], told[:, None]]
        total[[modality not in line["told"] for line in lines]] = 0.0
        return total

    def accuracies(self, lines: Sequence[Line]) -> list[dict[str, Any]]:
        """Return how often the node that it holds most probable is right, at each level and among all leaves."""
        depth = np.array([len(path) for path in self.paths])
        reached = np.array([len(line["belongs"]) for line in lines])
        rows = []
        for model, shares in self.posteriors(lines):
            nodes = shares @ self._below
            best: dict[str | int, np.ndarray] = {MOST_SPECIFIC: shares.max(axis=1)}
            for level in range(1, int(depth.max()) + 1):
                of_level = nodes[:, depth == level][reached >= level]
                if len(of_level):
                    best[level] = of_level.max(axis=1) / of_level.sum(axis=1)
            for level_or_leaf, right in best.items():
                error = float(right.std() / np.sqrt(len(right)))
                found = {"level": level_or_leaf, "products": len(right), "share": float(right.mean())}
                rows.append({**model, **found, "error": error})
        return rows


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


def truth_of(leaves: Sequence[Leaf], effects: Effects, lines: Iterable[Line]) -> dict[str, Any]:
    """Return the content of ``truth.json`` from products as they come by; a few thousand of them are kept."""
    some: list[Line] = []
    splits: Counter[str] = Counter()
    places: Counter[tuple[str, ...]] = Counter()
    lacks = [*(f"without {modality}" for modality in MODALITIES), "without category", "in two places"]
    counts = Counter(dict.fromkeys(lacks, 0))
    for line in lines:
        if len(some) < _PRODUCTS:
            some.append(line)
        splits[line["split"]] += 1
        places[tuple(line["belongs"])] += 1
        counts["without category"] += not line["category_paths"]
        counts["in two places"] += len(line["category_paths"]) > 1
        counts.update(f"without {modality}" for modality in MODALITIES if modality not in line["told"])
    n = places.total()
    levels = Counter(level for path in sorted(places, key=len) for level in [len(path)] * places[path])
    observer = Observer(leaves, effects)
    names = Counter(path[-1] for path in observer.paths)
    return {
        "effects": effects,
        "tree": {
            "categories": len(observer.paths),
            "most specific": len(leaves),
            "mean level": sum(leaf.prior * len(leaf.path) for leaf in leaves),
            "categories that share a name": sum(count for count in names.values() if count > 1),
            "leaves": [
                {"path": list(leaf.path), "probability": leaf.prior, "values": leaf.values} for leaf in leaves
            ],
        },
        "counts": {
            "products": n,
            "splits": dict(splits),
            **counts,
            "categories with products": len({path[:k] for path in places for k in range(1, len(path) + 1)}),
            "levels": {str(level): count for level, count in levels.items()},
            "mean level": sum(level * count for level, count in levels.items()) / n,
            "in the largest category": max(places.values()),
        },
        "ideal": {"accuracy": observer.accuracies(some)},
    }


def shown(truth: Mapping[str, Any]) -> tuple[str, Table]:
    """Return what ``truth.json`` says of the tree, and of how well a category can be known."""
    counts, tree, accuracy = truth["counts"], truth["tree"], truth["ideal"]["accuracy"]
    at = {(row["model"], row["level"]): f"{row['share']:.1%}" for row in accuracy}
    models = {row["model"]: " + ".join(row["modalities"]) for row in accuracy}
    rows = [(seen, at[model, 1], at[model, MOST_SPECIFIC]) for model, seen in models.items()]
    line = (
        f"{counts['categories with products']:,} of {tree['categories']:,} categories have products, "
        f"{counts['mean level']:.1f} levels in the mean; "
        f"{tree['categories that share a name']:,} share a name with another"
    )
    title = "how often the best possible observer would know a product's category"
    return line, Table.of(title, "", ("from its", "most general", "most specific"), rows)
