"""Catalogue: products, their category tree, settings of what is relevant, and judgements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

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
    """Products and the tree that they are sorted into; nothing here loads an image.

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
        collection: where images are.
        picture_rows: (n,) int64: the row in ``collection`` of each product's image, -1 for one without.
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
    notes: tuple[str, ...] = ()

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
        """(n,) booleans: products with an image."""
        return self.picture_rows >= 0

    def places_of(self, product: int) -> np.ndarray:
        """Return the nodes of a product's most specific categories."""
        return self.places[self.place_start[product] : self.place_start[product + 1]]

    def is_in(self, product: int, nodes: set[int]) -> bool | None:
        """Return whether a product is in any of these categories, or below; None where it has no category."""
        places = self.places_of(product)
        return not nodes.isdisjoint(self.tree.lineage[places].ravel().tolist()) if len(places) else None

    @property
    def split_sizes(self) -> dict[str, int]:
        """Products per split, in the order of first appearance."""
        sizes: dict[str, int] = {}
        for name in self.splits:
            sizes[name] = sizes.get(name, 0) + 1
        return sizes

    def split(self, name: str) -> Catalogue:
        """Return the products of split ``name``; the tree stays whole."""
        rows = np.flatnonzero(np.asarray(self.splits, dtype=object) == name)
        if not len(rows):
            raise UnknownNameError(f"split of {self.name}", name, self.split_sizes)
        return self if len(rows) == len(self) else self.subset(rows)

    def subset(self, rows: Sequence[int] | np.ndarray) -> Catalogue:
        """Return the products ``rows``, in that order; the tree stays whole."""
        rows = np.asarray(rows, dtype=np.int64)
        counts = np.diff(self.place_start)[rows]
        start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        within = np.arange(start[-1]) - np.repeat(start[:-1], counts)
        some = rows.tolist()
        return replace(
            self,
            ids=[self.ids[row] for row in some],
            titles=[self.titles[row] for row in some],
            attributes=[self.attributes[row] for row in some],
            place_start=start,
            places=self.places[np.repeat(self.place_start[rows], counts) + within],
            splits=[self.splits[row] for row in some],
            picture_rows=self.picture_rows[rows],
        )

    @cached_property
    def fingerprint(self) -> str:
        """Of ids, titles, attributes, tree and places; images' bytes are not read."""
        lists = (self.ids, self.titles, self.attributes, map(int, self.place_start), map(int, self.places))
        return fingerprint(self.tree.fingerprint, *(iter(one) for one in lists))

    def describe(self) -> str:
        """Return one line: sizes, what is missing, the tree."""
        n = len(self)
        counts = {
            "without a picture": n - int(self.pictured.sum()),
            "without a title": sum(not title for title in self.titles),
            "without attributes": sum(not given for given in self.attributes),
            "without a category": int((self.place < 0).sum()),
            "in several categories": int((np.diff(self.place_start) > 1).sum()),
        }
        lacks = [f", {count:,} {what}" for what, count in counts.items() if count]
        return f"{self.name}: {n:,} products{''.join(lacks)}; {self.tree.describe()}"


CategoryText = Literal["name", "path", "unique"]
"""``name``: the category's own name, as published; ``path``: all names from the root on; ``unique``: the name, and the
path where several categories have that name."""


def category_texts(tree: CategoryTree, nodes: Iterable[int], form: CategoryText = "name") -> list[str]:
    """Return the text of each node: ``"Dresses"`` or ``"Women > Clothing > Dresses"``."""
    if form not in ("name", "path", "unique"):
        raise UsageError(f"a category's text cannot be its {form!r}", "one of name, path, unique")
    whole = tree.shares_name if form == "unique" else np.full(len(tree), form == "path")
    return [tree.text(int(node)) if whole[node] else tree.paths[int(node)][-1] for node in nodes]


def nodes_on_paths(catalogue: Catalogue) -> tuple[np.ndarray, np.ndarray]:
    """(n + 1,) starts and nodes: product i is on or below ``nodes[start[i]:start[i + 1]]``, ascending, each once.

    Ascending is from the root on where a product has one path, since parents have smaller numbers.
    """
    tree, n = catalogue.tree, len(catalogue)
    lineage = tree.lineage[catalogue.places]
    product = np.repeat(np.arange(n), np.diff(catalogue.place_start))
    product, nodes = np.broadcast_to(product[:, None], lineage.shape)[lineage >= 0], lineage[lineage >= 0]
    if (
        len(catalogue.places) and np.diff(catalogue.place_start).max() > 1
    ):  # paths share what they have in common
        product, nodes = np.divmod(distinct(product * len(tree) + nodes), len(tree))
    start = np.concatenate([[0], np.cumsum(np.bincount(product, minlength=n))]).astype(np.int64)
    return start, nodes


def products_per_category(catalogue: Catalogue) -> tuple[np.ndarray, np.ndarray]:
    """(nodes,) int64: products sorted into each category itself, and those in it or below it, each product once."""
    nodes = len(catalogue.tree)
    itself = np.bincount(catalogue.places, minlength=nodes)
    return itself, np.bincount(nodes_on_paths(catalogue)[1], minlength=nodes)


class Setting(NamedTuple):
    """One way to pair products with categories (thesis section 7.4.2)."""

    name: str
    description: str
    # from a catalogue and (n,) draws in [0, 1): (n,) int64 nodes, -1 for a product without a category
    targets: Callable[[Catalogue, np.ndarray], np.ndarray]
    # from a catalogue: nodes, the query categories where a product is relevant to all on its paths
    queries: Callable[[Catalogue], np.ndarray]


SETTINGS: Registry[Setting] = Registry("setting", "diptych.commerce.catalogue.catalogue")


def _drawn_targets(catalogue: Catalogue, draws: np.ndarray) -> np.ndarray:
    """Return one of each product's categories, each as likely, however many paths share it."""
    start, nodes = nodes_on_paths(catalogue)
    counts = np.diff(start)
    found = np.full(len(catalogue), -1, dtype=np.int64)
    some = counts > 0
    found[some] = nodes[start[:-1][some] + (draws[some] * counts[some]).astype(np.int64)]
    return found


for _setting in (
    Setting(
        "all",
        "one category of a product's paths, drawn, each as likely",
        _drawn_targets,
        lambda catalogue: nodes_on_paths(catalogue)[1],
    ),
    Setting(
        "most-general",
        "the root of a product's path; of its first path where it has several",
        lambda catalogue, _: np.where(catalogue.place < 0, -1, catalogue.tree.root[catalogue.place]),
        lambda catalogue: catalogue.tree.root[catalogue.places],
    ),
    Setting(
        "most-specific",
        "the last category of a product's path; of its first path where it has several",
        lambda catalogue, _: catalogue.place.copy(),
        lambda catalogue: catalogue.places,
    ),
):
    SETTINGS.add(_setting)

_DRAW = int(keys_of(["category of a product"])[0])


def targets_of(catalogue: Catalogue, setting: str, seed: int = 0, epoch: int | None = None) -> np.ndarray:
    """(n,) int64: the node that ``setting`` pairs each product with, -1 for one without a category.

    A draw belongs to the seed, the epoch and the product's id: it is the same in a split and in any order.
    """
    declared = SETTINGS.get(setting)
    return declared.targets(
        catalogue, draw_uniform(seed, _DRAW, -1 if epoch is None else epoch, keys_of(catalogue.ids))
    )


def query_nodes_of(catalogue: Catalogue, setting: str) -> np.ndarray:
    """Return the query categories of ``setting``, ascending, where a product is relevant to all on its paths."""
    return np.unique(SETTINGS.get(setting).queries(catalogue))


Relevance = Literal["label", "path"]
"""``label``: a product is relevant to the one category that its setting gave it, as published; ``path``: to every
query category on its paths, ancestors included."""


@dataclass(frozen=True, eq=False)
class Judged:
    """Query categories, and the products that are relevant to them.

    Attributes:
        nodes: (q,) int64 nodes of the tree, ascending, each with at least one relevant product.
        products: (n,) int64 rows of the catalogue that are candidates: those with a category.
        truth: products as images (rows of ``products``), categories as texts (rows of ``nodes``); a category belongs
            to no product, so each is a query of its own when queries are resampled.
        labels: (n,) int64 the category that the setting gave each candidate.
        without_category: how many products are no candidates, since it is unknown what they are relevant to.
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
    """Return the query categories of ``setting`` and the products relevant to each.

    Products without a category are no candidates. A product that is relevant to no query category stays a candidate
    and is no query itself.

    Args:
        query_nodes: nodes, or (nodes of the tree,) booleans, that queries are restricted to.
    """
    if relevance not in ("label", "path"):
        raise UsageError(f"relevance {relevance!r} is none", "one of label, path")
    size, labels = len(catalogue.tree), targets_of(catalogue, setting, seed)
    products = np.flatnonzero(labels >= 0)
    if relevance == "label":
        pairs, nodes = np.arange(len(products)), labels[products]
        wanted = nodes
    else:
        start, nodes = nodes_on_paths(catalogue)
        pairs = np.repeat(np.cumsum(labels >= 0) - 1, np.diff(start))
        wanted = query_nodes_of(catalogue, setting)
    is_query = np.zeros(size, dtype=bool)
    is_query[wanted] = True
    if query_nodes is not None:
        is_query &= _mask(query_nodes, size)
    queries = np.flatnonzero(is_query)
    if not len(queries):
        of = "" if query_nodes is None else f" of the {len(query_nodes):,} asked for"
        raise DataError(
            f"{catalogue.name}: no category{of} has a product, out of {len(catalogue):,} products, "
            f"{len(products):,} of them with a category",
            "give products with categories, or other categories",
        )
    text, keep = np.cumsum(is_query) - 1, is_query[nodes]
    truth = GroundTruth.from_pairs(
        pairs[keep], text[nodes[keep]], len(products), len(queries), np.full(len(queries), -1)
    )
    answered = truth.i2t.counts > 0
    if not answered.all():
        answered.flags.writeable = False
        truth = replace(truth, asked={"i2t": answered})
    left = len(catalogue) - len(products)
    return Judged(queries, products, truth, labels[products], setting, relevance, seed, left)


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
