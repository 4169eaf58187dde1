"""Catalogue: products, their category tree, settings of what is relevant, and judgements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from diptych.commerce.taxonomy import CategoryTree
from diptych.core.draws import draw_uniform, keys_of
from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.core.registry import Registry
from diptych.data.collection import Collection
from diptych.metrics.ground_truth import GroundTruth, distinct


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Products and the tree that they are sorted into; nothing here loads a picture.

    Attributes:
        name: of the dataset.
        ids: one unique id per product.
        titles: one line of plain text each, ``""`` where a product has none.
        attributes: per product its attributes as texts (``"colour: red"``), maybe none.
        tree: the categories.
        place_start: (n + 1,) int64: product i's places are ``places[place_start[i]:place_start[i + 1]]``.
        places: (m,) int64 nodes of ``tree``: the most specific category of each of a product's paths. Most products
            have one place, one without a category has none.
        splits: the name of each product's split.
        collection: where pictures are.
        picture_rows: (n,) int64: the row in ``collection`` of each product's picture, -1 for one without.
        notes: what was done to get here, one line each.
    """

    name: str
    ids: Sequence[str]
    titles: Sequence[str]
    attributes: Sequence[tuple[str, ...]]
    tree: CategoryTree
    place_start: np.ndarray
    places: np.ndarray
    splits: Sequence[str]
    collection: Collection
    picture_rows: np.ndarray
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        n = len(self.ids)
        for what, have, want in (
            ("titles", len(self.titles), n),
            ("sets of attributes", len(self.attributes), n),
            ("splits", len(self.splits), n),
            ("picture rows", len(self.picture_rows), n),
            ("starts of places", len(self.place_start), n + 1),
            ("places", len(self.places), int(self.place_start[-1])),
        ):
            if have != want:
                raise DataError(f"{self.name}: {want} {what} expected, got {have}")
        if len(set(self.ids)) != n:
            raise DataError(f"{self.name}: a product id occurs twice", "make ids unique")

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def place(self) -> np.ndarray:
        """(n,) int64: each product's first place, -1 for one without a category."""
        first = np.full(len(self), -1, dtype=np.int64)
        some = np.diff(self.place_start) > 0
        first[some] = self.places[self.place_start[:-1][some]]
        return first

    @cached_property
    def pictured(self) -> np.ndarray:
        """(n,) booleans: products with a picture."""
        return self.picture_rows >= 0

    def places_of(self, product: int) -> np.ndarray:
        """The nodes of a product's most specific categories."""
        return self.places[self.place_start[product] : self.place_start[product + 1]]

    def is_in(self, product: int, nodes: set[int]) -> bool | None:
        """Return whether a product is in any of these categories, or below; None where it has no category."""
        places = self.places_of(product).tolist()
        above = {int(node) for place in places for node in self.tree.ancestors(place)}
        return not nodes.isdisjoint(above) if places else None

    @property
    def split_sizes(self) -> dict[str, int]:
        """Products per split, in the order of first appearance."""
        sizes: dict[str, int] = {}
        for name in self.splits:
            sizes[name] = sizes.get(name, 0) + 1
        return sizes

    def split(self, name: str) -> Catalogue:
        """The products of split ``name``; the tree stays whole."""
        rows = np.flatnonzero(np.asarray(self.splits, dtype=object) == name)
        if not len(rows):
            raise UnknownNameError(f"split of {self.name}", name, self.split_sizes)
        return self if len(rows) == len(self) else self.subset(rows)

    def subset(self, rows: Sequence[int] | np.ndarray) -> Catalogue:
        """The products ``rows``, in that order; the tree stays whole."""
        rows = np.asarray(rows, dtype=np.int64)
        counts = np.diff(self.place_start)[rows]
        start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        within = np.arange(start[-1]) - np.repeat(start[:-1], counts)
        some = rows.tolist()
        return Catalogue(
            name=self.name,
            ids=[self.ids[row] for row in some],
            titles=[self.titles[row] for row in some],
            attributes=[self.attributes[row] for row in some],
            tree=self.tree,
            place_start=start,
            places=self.places[np.repeat(self.place_start[rows], counts) + within],
            splits=[self.splits[row] for row in some],
            collection=self.collection,
            picture_rows=self.picture_rows[rows],
            notes=self.notes,
        )

    @cached_property
    def fingerprint(self) -> str:
        """Of ids, titles, attributes, tree and places; pictures' bytes are not read."""
        lists = (self.ids, self.titles, self.attributes, map(int, self.place_start), map(int, self.places))
        return fingerprint(self.tree.fingerprint, *(iter(one) for one in lists))

    def describe(self) -> str:
        """One line: sizes, what is missing, the tree."""
        n = len(self)
        parts = [f"{self.name}: {n:,} products"]
        for count, what in (
            (n - int(self.pictured.sum()), "without a picture"),
            (sum(not title for title in self.titles), "without a title"),
            (sum(not given for given in self.attributes), "without attributes"),
            (int((self.place < 0).sum()), "without a category"),
            (int((np.diff(self.place_start) > 1).sum()), "in several categories"),
        ):
            if count:
                parts.append(f"{count:,} {what}")
        return f"{', '.join(parts)}; {self.tree.describe()}"


CategoryText = Literal["name", "path"]
"""``name``: the category's own name, as published; ``path``: all names from the root on, which tells apart the
categories of one name."""


def category_texts(tree: CategoryTree, nodes: Iterable[int], form: CategoryText = "name") -> list[str]:
    """The text of each node: ``"Dresses"`` or ``"Women > Clothing > Dresses"``."""
    if form not in ("name", "path"):
        raise UsageError(f"a category's text cannot be its {form!r}", "one of name, path")
    return [tree.text(int(node)) if form == "path" else tree.paths[int(node)][-1] for node in nodes]


def nodes_on_paths(catalogue: Catalogue) -> tuple[np.ndarray, np.ndarray]:
    """(n + 1,) starts and nodes: product i is on or below ``nodes[start[i]:start[i + 1]]``, ascending, each once.

    Ascending is from the root on where a product has one path, since parents have smaller numbers.
    """
    tree, n = catalogue.tree, len(catalogue)
    places = np.diff(catalogue.place_start)
    if not len(catalogue.places):
        return np.zeros(n + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    depth = tree.depth[catalogue.places]
    nodes = tree.lineage[catalogue.places]
    nodes = nodes[nodes >= 0]
    product = np.repeat(np.repeat(np.arange(n), places), depth)
    if (places > 1).any():  # two paths share what they have in common
        product, nodes = np.divmod(distinct(product * len(tree) + nodes), len(tree))
    start = np.concatenate([[0], np.cumsum(np.bincount(product, minlength=n))]).astype(np.int64)
    return start, nodes


@dataclass(frozen=True)
class Setting:
    """One way to pair products with categories (thesis section 7.4.2).

    Attributes:
        name: ``all``, ``most-general`` or ``most-specific``.
        description: one line.
        targets: from a catalogue and (n,) draws in [0, 1), one per product: (n,) int64 nodes, -1 for a product
            without a category.
        asking: from a catalogue: (nodes of the tree,) booleans, the categories that ask where a product is relevant
            to all on its paths.
        draws: whether chance has a part in it.
    """

    name: str
    description: str
    targets: Callable[[Catalogue, np.ndarray], np.ndarray]
    asking: Callable[[Catalogue], np.ndarray]
    draws: bool = False


SETTINGS: Registry[Setting] = Registry("setting", "diptych.commerce.catalogue.catalogue")
"""All settings; each is declared in a file of its own."""


def _drawn_targets(catalogue: Catalogue, draws: np.ndarray) -> np.ndarray:
    """Each category on the product's paths is as likely, however many paths share it."""
    start, nodes = nodes_on_paths(catalogue)
    counts = np.diff(start)
    found = np.full(len(catalogue), -1, dtype=np.int64)
    some = counts > 0
    found[some] = nodes[start[:-1][some] + (draws[some] * counts[some]).astype(np.int64)]
    return found


def _roots(catalogue: Catalogue, draws: np.ndarray) -> np.ndarray:
    return np.where(catalogue.place < 0, -1, catalogue.tree.root[catalogue.place])


def _among(catalogue: Catalogue, nodes: np.ndarray) -> np.ndarray:
    mask = np.zeros(len(catalogue.tree), dtype=bool)
    mask[nodes] = True
    return mask


def _on_the_way(catalogue: Catalogue) -> np.ndarray:
    """Every category with a product on or below it."""
    lineage = catalogue.tree.lineage[catalogue.places]
    return _among(catalogue, lineage[lineage >= 0])


for _setting in (
    Setting(
        "all",
        "one category of a product's paths, drawn, each as likely",
        _drawn_targets,
        _on_the_way,
        draws=True,
    ),
    Setting(
        "most-general",
        "the root of a product's path; of its first path where it has several",
        _roots,
        lambda catalogue: _among(catalogue, catalogue.tree.root[catalogue.places]),
    ),
    Setting(
        "most-specific",
        "the last category of a product's path; of its first path where it has several",
        lambda catalogue, _: catalogue.place.copy(),
        lambda catalogue: _among(catalogue, catalogue.places),
    ),
):
    SETTINGS.add(_setting)


_PURPOSE = "category of a product"


def targets_of(catalogue: Catalogue, setting: str, seed: int = 0, epoch: int | None = None) -> np.ndarray:
    """(n,) int64: the node that ``setting`` pairs each product with, -1 for one without a category.

    A draw belongs to the seed, the epoch and the product's id: it is the same in a split and in any order.
    """
    declared = SETTINGS.get(setting)
    if declared.draws:
        when = -1 if epoch is None else epoch
        draws = draw_uniform(seed, int(keys_of([_PURPOSE])[0]), when, keys_of(catalogue.ids))
    else:
        draws = np.zeros(len(catalogue))
    return declared.targets(catalogue, draws)


def asking_nodes(catalogue: Catalogue, setting: str) -> np.ndarray:
    """The nodes, ascending, that ask under ``setting`` where a product is relevant to all on its paths."""
    return np.flatnonzero(SETTINGS.get(setting).asking(catalogue))


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
