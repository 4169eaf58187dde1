"""Catalogue: products, their category tree, what is relevant to which category, and splits; nothing loads an image."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from diptych.commerce.taxonomy import SEPARATOR, CategoryTree, Names
from diptych.core.draws import draw_uniform, keys_of
from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options
from diptych.data.collection import Collection
from diptych.data.products import attributes_of, paths_of, plain_text
from diptych.metrics.ground_truth import GroundTruth, distinct
from diptych.metrics.runs import starts


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Products and the tree that they are sorted into; nothing here loads an image."""

    name: str  # of the dataset
    ids: Sequence[str]  # one unique id per product
    titles: Sequence[str]  # one line of plain text each, "" where a product has none
    attributes: Sequence[tuple[str, ...]]  # as texts ("colour: red")
    tree: CategoryTree
    place_start: np.ndarray  # (n + 1,) int64: product i's are places[place_start[i]:place_start[i + 1]]
    places: np.ndarray  # (m,) int64 nodes: the most specific category of each of a product's paths
    splits: Sequence[str]  # of each product
    collection: Collection  # where images are
    picture_rows: np.ndarray  # (n,) int64: row in the collection of each product's image, -1 for one without
    notes: tuple[str, ...] = ()  # what was done to get here

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def place(self) -> np.ndarray:
        """(n,) int64: each product's first place, -1 for one without a category."""
        some = np.diff(self.place_start) > 0
        first = np.full(len(self), -1, dtype=np.int64)
        first[some] = self.places[self.place_start[:-1][some]]
        return first

    @property
    def pictured(self) -> np.ndarray:
        """(n,) booleans: products with an image."""
        return self.picture_rows >= 0

    def places_of(self, product: int) -> np.ndarray:
        """Return the nodes of a product's most specific categories."""
        return self.places[self.place_start[product] : self.place_start[product + 1]]

    @property
    def split_sizes(self) -> dict[str, int]:
        """Products per split, in the order of first appearance."""
        return dict(Counter(self.splits))

    def split(self, name: str) -> Self:
        """Return the products of split ``name``; the tree stays whole."""
        if name not in self.splits:
            raise UnknownNameError(f"split of {self.name}", name, self.split_sizes)
        return self.subset([row for row, own in enumerate(self.splits) if own == name])

    def subset(self, rows: Sequence[int] | np.ndarray) -> Self:
        """Return the products ``rows``, in that order; the tree stays whole."""
        rows = np.asarray(rows, dtype=np.int64)
        names = ("ids", "titles", "attributes", "splits")
        lists: dict[str, Any] = {name: [getattr(self, name)[row] for row in rows.tolist()] for name in names}
        start = starts(np.diff(self.place_start)[rows])
        places = np.concatenate([self.places[:0], *map(self.places_of, rows.tolist())])
        return replace(self, place_start=start, places=places, picture_rows=self.picture_rows[rows], **lists)

    @cached_property
    def fingerprint(self) -> str:
        """Of ids, titles, attributes, tree and places; images' bytes are not read."""
        lists = (self.ids, self.titles, self.attributes, map(int, self.place_start), map(int, self.places))
        return fingerprint(self.tree.fingerprint, *map(iter, lists))

    def describe(self) -> str:
        counts = {
            "without an image": int((~self.pictured).sum()),
            "without a title": sum(not title for title in self.titles),
            "without attributes": sum(not given for given in self.attributes),
            "without a category": int((self.place < 0).sum()),
            "in several categories": int((np.diff(self.place_start) > 1).sum()),
        }
        lacks = [f", {count:,} {name}" for name, count in counts.items() if count]
        return f"{self.name}: {len(self):,} products{''.join(lacks)}; {self.tree.describe()}"


AttributeForm = Literal["named", "values"]
"""``named``: ``"base colour: red"``; ``values``: ``"red"``."""

UnknownPath = Literal["error", "add", "none"]
"""Rules for a path that a given tree does not have: an error, a new node, or no place for its product."""


def catalogue_of(
    collection: Collection,
    *,
    tree: CategoryTree | None = None,
    attribute_form: AttributeForm = "named",
    unknown: UnknownPath = "error",
) -> Catalogue:
    """Return the products of a collection, with the tree of their categories; no image is read.

    Items with the same ``product`` in their records are one product: its first title and first image, all its
    attributes and categories, the split of its first item. A product in several paths keeps them all; a path that
    another of its paths continues is dropped. What was done is counted in the catalogue's notes.
    """
    name, pictured = collection.name, collection.pictured.tolist()
    items: dict[str, list[int]] = {}
    records = [one or {} for one in collection.records or [{}] * len(pictured)]
    for row, (item, record) in enumerate(zip(collection.image_ids, records, strict=True)):
        product = record.get("product")
        items.setdefault(item if product in (None, "") else str(product), []).append(row)
    titles, texts, paths = list[str](), list[tuple[str, ...]](), list[list[Names]]()
    known: dict[Any, Any] = {}  # what many products have is held once
    is_named = attribute_form == "named"
    for rows in items.values():
        given = [records[row] for row in rows]
        titles.append(next(filter(None, (plain_text(str(one.get("title") or "")) for one in given)), ""))
        pairs = (pair for one in given for pair in attributes_of(one))
        named = ((label.replace("_", " ").strip() * is_named, value) for label, value in pairs)
        own = tuple(dict.fromkeys(f"{label}: {value}" if label else value for label, value in named))
        texts.append(known.setdefault(own, own))
        places = dict.fromkeys(path for one in given for path in paths_of(one))
        paths.append([known.setdefault(path, path) for path in places])
    listed = dict.fromkeys(path for own in paths for path in own)
    if not any(titles) and not any(texts) and not listed:
        fix = "read a dataset of products; diptych info lists the readers"
        raise DataError(f"{name}: no item has a title, attributes or a category: these are no products", fix)
    if tree is None and not listed:
        fix = "give a taxonomy, or a dataset whose records have category paths"
        raise DataError(f"{name}: none of {len(items):,} products has a category", fix)
    full = CategoryTree(listed) if tree is None else tree
    new = [path for path in listed if path not in full]
    if new and unknown == "error":
        product = next(one for one, own in zip(items, paths, strict=True) if new[0] in own)
        message = f"{name}: product {product} is in {SEPARATOR.join(new[0])!r}, which the tree does not have"
        fix = "give the taxonomy that they were sorted by, or unknown='add' or 'none' (--unknown-paths)"
        raise DataError(f"{message}; {len(new):,} of {len(listed):,} paths are like that", fix)
    if new and unknown == "add":
        full = CategoryTree((*full.paths, *new), full.codes)
    found = [[path for path in own if path in full] for own in paths]
    above = [{path[:end] for path in own for end in range(1, len(path))} for own in found]
    kept = [[full.node(path) for path in own if path not in up] for own, up in zip(found, above, strict=True)]
    splits = [[collection.splits[row] for row in rows] for rows in items.values()]
    notes = {
        "categories added to the tree": len(full) - len(tree or full),
        "paths left out that the tree does not have": len(new) if unknown == "none" else 0,
        "further items of products that had one already, their images left out": len(pictured) - len(items),
        "items in another split than their product's first item": sum(
            len(own) - own.count(own[0]) for own in splits
        ),
    }
    return Catalogue(
        name=name,
        ids=list(items),
        titles=titles,
        attributes=texts,
        tree=full,
        place_start=starts(np.array(list(map(len, kept)), dtype=np.int64)),
        places=np.array([node for own in kept for node in own], dtype=np.int64),
        splits=[own[0] for own in splits],
        collection=collection,
        picture_rows=np.array([next((row for row in rows if pictured[row]), -1) for rows in items.values()]),
        notes=(*collection.notes, *(f"{note}: {count:,}" for note, count in notes.items() if count)),
    )


CategoryText = Literal["name", "path", "unique"]
"""``name``: the category's own name, as published; ``path``: all names from the root on; ``unique``: the name, and the
path where several categories have that name."""


def category_texts(tree: CategoryTree, nodes: Iterable[int], form: CategoryText = "name") -> list[str]:
    """Return the text of each node: ``"Dresses"`` or ``"Women > Clothing > Dresses"``."""
    whole = tree.shares_name if form == "unique" else np.full(len(tree), form == "path")
    return [tree.text(node) if whole[node] else tree.paths[node][-1] for node in map(int, nodes)]


def nodes_on_paths(catalogue: Catalogue) -> tuple[np.ndarray, np.ndarray]:
    """(n + 1,) starts and nodes: product i is on or below ``nodes[start[i]:start[i + 1]]``, ascending, each once."""
    size, n = max(1, len(catalogue.tree)), len(catalogue)
    lineage = catalogue.tree.lineage[catalogue.places]
    product = np.repeat(np.arange(n), np.diff(catalogue.place_start))[:, None]
    product, nodes = np.divmod(distinct((product * size + lineage)[lineage >= 0]), size)
    return starts(np.bincount(product, minlength=n)), nodes


SETTINGS = {
    "all": "one category of a product's paths, drawn, each as likely",
    "most-general": "the root of a product's path; of its first path where it has several",
    "most-specific": "the last category of a product's path; of its first path where it has several",
}
"""Ways to pair products with categories (thesis section 7.4.2)."""

_DRAW = int(keys_of(["category of a product"])[0])


def targets_of(catalogue: Catalogue, setting: str, seed: int = 0, epoch: int | None = None) -> np.ndarray:
    """(n,) int64: the node that ``setting`` gives each product by seed, epoch and its id; -1 without a category."""
    if setting not in SETTINGS:
        raise UnknownNameError("setting", setting, SETTINGS)
    found = catalogue.place.copy()
    some = found >= 0
    if setting == "most-general":
        found[some] = catalogue.tree.root[found[some]]
    elif setting == "all":
        start, nodes = nodes_on_paths(catalogue)
        draws = draw_uniform(seed, _DRAW, -1 if epoch is None else epoch, keys_of(catalogue.ids))
        found[some] = nodes[(start[:-1] + (draws * np.diff(start)).astype(np.int64))[some]]
    return found


def query_nodes_of(catalogue: Catalogue, setting: str) -> np.ndarray:
    """Return the query categories of ``setting``, ascending, where a product is relevant to all on its paths."""
    if setting == "all":
        return np.unique(nodes_on_paths(catalogue)[1])
    return np.unique(catalogue.tree.root[catalogue.places] if setting == "most-general" else catalogue.places)


Relevance = Literal["label", "path"]
"""``label``: a product is relevant to the one category that its setting gave it, as published; ``path``: to every
query category on its paths, ancestors included."""


@dataclass(frozen=True, eq=False)
class Judged:
    """Query categories, and the products that are relevant to them.

    In ``truth`` products are images (rows of ``products``), categories texts (rows of ``nodes``); a category belongs to
    no product, so each is a query of its own when queries are resampled.
    """

    nodes: np.ndarray  # (q,) int64 nodes of the tree, ascending, each with at least one relevant product
    products: np.ndarray  # (n,) int64 rows of the catalogue that are candidates: those with a category
    truth: GroundTruth
    labels: np.ndarray  # (n,) int64 the category that the setting gave each candidate
    setting: str
    relevance: Relevance
    seed: int
    without_category: int = 0  # products that are no candidates: it is unknown what they are relevant to


def judge(catalogue: Catalogue, setting: str, relevance: Relevance = "label", seed: int = 0) -> Judged:
    """Return the query categories of ``setting`` and the products relevant to each.

    A product that is relevant to no query category stays a candidate; one without a category is none.
    """
    labels = targets_of(catalogue, setting, seed)
    products = np.flatnonzero(labels >= 0)
    if not len(products):
        message = f"{catalogue.name}: no category has a product, out of {len(catalogue):,} products"
        raise DataError(message, "give products with categories")
    pairs, nodes = np.arange(len(products)), labels[products]
    queries = np.unique(nodes)
    if relevance == "path":
        start, nodes = nodes_on_paths(catalogue)
        queries = query_nodes_of(catalogue, setting)
        among = np.isin(nodes, queries)
        pairs, nodes = np.repeat(np.cumsum(labels >= 0) - 1, np.diff(start))[among], nodes[among]
    texts, of_no_product = np.searchsorted(queries, nodes), np.full(len(queries), -1)
    truth = GroundTruth.from_pairs(pairs, texts, len(products), len(queries), of_no_product)
    answered = truth.i2t.counts > 0
    if not answered.all():
        answered.flags.writeable = False
        truth = replace(truth, evaluated={"i2t": answered})
    left = len(catalogue) - len(products)
    return Judged(queries, products, truth, labels[products], setting, relevance, seed, left)


_PRODUCT, _CATEGORY = (int(key) for key in keys_of(["split of a product", "category held out"]))


class GivenSplit(Options):
    """The splits that the dataset came with."""

    def assign(self, catalogue: Catalogue) -> tuple[list[str], str]:
        return list(catalogue.splits), ""


class ProductSplit(GivenSplit):
    """Products at random; a product stays where it is when others come or go, since its draw is its own."""

    shares: Mapping[str, float] = {"train": 0.8, "val": 0.1, "test": 0.1}
    seed: int = 0
    together: Literal["none", "title"] = "none"  # title: products of one title are never parted

    @model_validator(mode="after")
    def _whole(self) -> Self:
        sizes = list(self.shares.values())
        if any(not share >= 0 for share in sizes) or not math.isclose(sum(sizes), 1, abs_tol=1e-6):
            raise ValueError("shares do not add up to 1; for instance train=0.8, test=0.2")
        return self

    def assign(self, catalogue: Catalogue) -> tuple[list[str], str]:
        names, edges = list(self.shares), np.cumsum(list(self.shares.values()))
        each, is_title = zip(catalogue.ids, catalogue.titles, strict=True), self.together == "title"
        keys = [f"title\0{title}" if is_title and title else str(one) for one, title in each]
        draws = draw_uniform(self.seed, _PRODUCT, keys_of(keys))
        which = np.minimum(np.searchsorted(edges, draws, side="right"), len(names) - 1)
        splits = [names[one] for one in which.tolist()]
        if empty := [name for name, share in self.shares.items() if share and name not in splits]:
            message = f"{catalogue.name}: no product fell to {', '.join(empty)} of {len(catalogue):,}"
            raise DataError(message, "give it a larger share, another seed, or more products")
        shares = ", ".join(f"{name} {share:g}" for name, share in self.shares.items())
        whole = "" if self.together == "none" else ", one title in one split"
        return splits, f"split by product, seed {self.seed}: {shares}{whole}"


class CategorySplit(GivenSplit):
    """A share of the categories held out: products on or below them go from all splits but ``test`` to ``held-out``."""

    seed: int = 0
    setting: Literal["all", "most-general", "most-specific"] = "most-specific"  # whose are held out
    held_out: float = Field(0.2, gt=0, lt=1)  # share of those categories

    def assign(self, catalogue: Catalogue) -> tuple[list[str], str]:
        """Hold out categories with products in test and elsewhere, by their draws, which belong to seed and path."""
        before = np.asarray(catalogue.splits, dtype=object)
        start, nodes = nodes_on_paths(catalogue)
        product, is_test = np.repeat(np.arange(len(catalogue)), np.diff(start)), before == "test"
        able = np.intersect1d(nodes[is_test[product]], nodes[~is_test[product]])
        able = np.intersect1d(able, query_nodes_of(catalogue, self.setting))
        if len(able) < 2:
            problem = f"{len(able)} of the {self.setting!r} categories have products in test and elsewhere"
            fix = "split by product first, or take another setting"
            raise DataError(f"{catalogue.name}: {problem}, at least two are needed to hold one out", fix)
        texts = [catalogue.tree.text(node) for node in able.tolist()]
        order = np.argsort(draw_uniform(self.seed, _CATEGORY, keys_of(texts)), kind="stable")
        count = min(max(1, round(self.held_out * len(able))), len(able) - 1)
        touched = np.zeros(len(catalogue), dtype=bool)
        touched[product[np.isin(nodes, able[order[:count]])]] = True
        moved, stay = touched & ~is_test, touched & is_test
        after = np.where(moved, "held-out", before).tolist()
        if emptied := sorted({*before} - {*after}):
            message = f"{catalogue.name}: all products of {', '.join(emptied)} are in the {count:,} held-out categories"
            raise DataError(message, "hold fewer out, or take a more specific setting")
        note = f"categories held out, seed {self.seed}: {count:,} {self.setting}; {moved.sum():,} products of theirs"
        return after, f"{note} moved to 'held-out', {stay.sum():,} stay in 'test'"


SPLITS: dict[str, type[GivenSplit]] = {
    "category": CategorySplit,
    "given": GivenSplit,
    "product": ProductSplit,
}


def assign_splits(catalogue: Catalogue, kind: str, **options: Any) -> Catalogue:
    """Return the same products with the splits that ``kind`` gives them: given, product or category."""
    if kind not in SPLITS:
        raise UnknownNameError("split of a catalogue", kind, SPLITS)
    splits, note = SPLITS[kind].read(options, f"the {kind!r} split").assign(catalogue)
    return replace(catalogue, splits=splits, notes=(*catalogue.notes, *([note] if note else [])))


VALIDATION = ("val", "validation", "valid", "dev")
"""Names of the split to validate on; the first that there is is taken."""


def validation_split(catalogue: Catalogue) -> str | None:
    """Return the name of the products to validate on; None without any."""
    return next((name for name in VALIDATION if name in catalogue.split_sizes), None)


def validation_part(catalogue: Catalogue) -> Catalogue | None:
    """Return the products to choose epochs by; None where there are none, or none of them has a category."""
    name = validation_split(catalogue)
    part = None if name is None else catalogue.split(name)
    return part if part is not None and bool((part.place >= 0).any()) else None


def training_part(catalogue: Catalogue, *more: str) -> list[Catalogue]:
    """Return the products of the split ``train`` and of the splits ``more``, which all must be there."""
    sizes = catalogue.split_sizes
    if missing := [name for name in ("train", *more) if name not in sizes]:
        message = f"{catalogue.name} has no split called {missing[0]}, only {', '.join(sizes)}"
        raise UsageError(message, "make one with --split-by product")
    return [catalogue.split(name) for name in ("train", *more)]


def seen_nodes(train: Catalogue, setting: str, seed: int = 0, *, epochs: int = 0) -> np.ndarray:
    """(nodes of the tree,) booleans: the categories that ``setting`` itself pairs some training product with."""
    drawn = [targets_of(train, setting, seed, epoch) for epoch in (range(epochs) if epochs else (None,))]
    return np.isin(np.arange(len(train.tree)), np.concatenate(drawn))
