"""Make catalogues of collections, and split them: by product, by category; which categories a training has seen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from diptych.commerce.catalogue.catalogue import Catalogue, nodes_on_paths, query_nodes_of, targets_of
from diptych.commerce.taxonomy import SEPARATOR, CategoryTree, Names
from diptych.core.draws import draw_uniform, keys_of
from diptych.core.errors import DataError, UnknownNameError
from diptych.core.options import Options
from diptych.data.collection import Collection
from diptych.data.products import attributes_of, paths_of, plain_text
from diptych.metrics.runs import starts

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
    another of its paths goes on from is dropped. What was done is counted in the catalogue's notes.
    """
    name, pictured = collection.name, collection.pictured.tolist()
    items: dict[str, list[int]] = {}
    records = [one or {} for one in collection.records or [{}] * len(pictured)]
    for row, (item, record) in enumerate(zip(collection.image_ids, records, strict=True)):
        product = record.get("product")
        items.setdefault(item if product in (None, "") else str(product), []).append(row)
    titles, texts, paths = list[str](), list[Any](), list[list[Names]]()
    splits, images, parted = list[str](), list[int](), 0
    known: dict[Any, Any] = {}  # what many products have is held once
    for rows in items.values():
        given = [records[row] for row in rows]
        titles.append(next(filter(None, (plain_text(str(one.get("title") or "")) for one in given)), ""))
        pairs = (pair for one in given for pair in attributes_of(one))
        own = tuple(dict.fromkeys(_text(*pair, attribute_form) for pair in pairs))
        texts.append(known.setdefault(own, own))
        places = dict.fromkeys(path for one in given for path in paths_of(one))
        paths.append([known.setdefault(path, path) for path in places])
        splits.append(collection.splits[rows[0]])
        parted += sum(collection.splits[row] != splits[-1] for row in rows)
        images.append(next((row for row in rows if pictured[row]), -1))
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
    counts, n_found = np.array([len(own) for own in kept], dtype=np.int64), sum(map(len, found))
    notes = {
        "categories added to the tree": len(full) - len(tree or full),
        "paths left out that the tree does not have": len(new) if unknown == "none" else 0,
        "paths left out that another path of the same product goes on from": n_found - counts.sum(),
        "further items of products that had one already, their images left out": len(pictured) - len(items),
        "items in another split than their product's first item": parted,
        "products in several places of the tree": (counts > 1).sum(),
    }
    return Catalogue(
        name=name,
        ids=list(items),
        titles=titles,
        attributes=texts,
        tree=full,
        place_start=starts(counts),
        places=np.array([node for own in kept for node in own], dtype=np.int64),
        splits=splits,
        collection=collection,
        picture_rows=np.array(images, dtype=np.int64),
        notes=(*collection.notes, *(f"{note}: {count:,}" for note, count in notes.items() if count)),
    )


def _text(name: str, value: str, form: AttributeForm) -> str:
    name = name.replace("_", " ").strip() if form == "named" else ""
    return f"{name}: {value}" if name else value


class GivenSplit(Options):
    """The splits that the dataset came with."""

    def assign(self, catalogue: Catalogue) -> tuple[list[str], str]:
        """Return the split of every product, and how it was made."""
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
        keys = [str(one) for one in catalogue.ids]
        if self.together == "title":
            titles = zip(keys, catalogue.titles, strict=True)
            keys = [f"title\0{title}" if title else key for key, title in titles]
        draws = draw_uniform(self.seed, _key("split of a product"), keys_of(keys))
        which = np.minimum(np.searchsorted(edges, draws, side="right"), len(names) - 1)
        splits = [names[one] for one in which.tolist()]
        if empty := [name for name, share in self.shares.items() if share and name not in splits]:
            message = f"{catalogue.name}: no product fell to {', '.join(empty)} of {len(catalogue):,}"
            raise DataError(message, "give it a larger share, another seed, or more products")
        shares = ", ".join(f"{name} {share:g}" for name, share in self.shares.items())
        whole = "" if self.together == "none" else ", one title in one split"
        return splits, f"split by product, seed {self.seed}: {shares}{whole}"


class CategorySplit(GivenSplit):
    """A share of the categories held out of all splits but ``test``, on top of the splits there are.

    Products on or below a held-out category go from all other splits to ``held-out``, so all categories below are
    unseen too. One above stays seen as long as it has other products to train on.
    """

    seed: int = 0
    setting: Literal["all", "most-general", "most-specific"] = "most-specific"  # whose are held out
    held_out: float = Field(0.2, gt=0, lt=1)  # share of those categories

    def assign(self, catalogue: Catalogue) -> tuple[list[str], str]:
        """Hold out categories with products in test and elsewhere, by their draws, which belong to seed and path."""
        before = np.asarray(catalogue.splits, dtype=object)
        start, nodes = nodes_on_paths(catalogue)
        product = np.repeat(np.arange(len(catalogue)), np.diff(start))
        is_test = before == "test"
        able = np.intersect1d(nodes[is_test[product]], nodes[~is_test[product]])
        able = np.intersect1d(able, query_nodes_of(catalogue, self.setting))
        if len(able) < 2:
            problem = f"{len(able)} of the {self.setting!r} categories have products in test and elsewhere"
            fix = "split by product first, or take another setting"
            raise DataError(f"{catalogue.name}: {problem}, at least two are needed to hold one out", fix)
        texts = [catalogue.tree.text(node) for node in able.tolist()]
        order = np.argsort(draw_uniform(self.seed, _key("category held out"), keys_of(texts)), kind="stable")
        count = min(max(1, round(self.held_out * len(able))), len(able) - 1)
        touched = np.zeros(len(catalogue), dtype=bool)
        touched[product[np.isin(nodes, able[order[:count]])]] = True
        after = np.where(touched & ~is_test, "held-out", before).tolist()
        if emptied := sorted({*before} - {*after}):
            message = f"{catalogue.name}: all products of {', '.join(emptied)} are in the {count:,} held-out categories"
            raise DataError(message, "hold fewer out, or take a more specific setting")
        moved, stay = (touched & ~is_test).sum(), (touched & is_test).sum()
        note = (
            f"categories held out, seed {self.seed}: {count:,} {self.setting}; {moved:,} products of theirs"
        )
        return after, f"{note} moved to 'held-out', {stay:,} stay in 'test'"


def _key(purpose: str) -> int:
    return int(keys_of([purpose])[0])


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


def seen_nodes(train: Catalogue, setting: str, seed: int = 0, *, epochs: int = 0) -> np.ndarray:
    """(nodes of the tree,) booleans: the categories that ``setting`` pairs some training product with.

    A category above or below a seen one is not seen by that: its own text was in no pair.
    """
    drawn = [targets_of(train, setting, seed, epoch) for epoch in (range(epochs) if epochs else (None,))]
    return np.isin(np.arange(len(train.tree)), np.concatenate(drawn))
