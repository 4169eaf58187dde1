"""Catalogues are made of collections, and split: by product, by category; which categories a training has seen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import repeat
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from diptych.commerce.catalogue.catalogue import Catalogue, nodes_on_paths, query_nodes_of, targets_of
from diptych.commerce.taxonomy import SEPARATOR, CategoryTree
from diptych.core.context import track
from diptych.core.draws import draw_uniform, keys_of
from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.core.options import Options
from diptych.data.collection import Collection
from diptych.data.products import attributes_of, paths_of, plain_text

AttributeForm = Literal["named", "values"]
"""``named``: ``"base colour: red"``; ``values``: ``"red"``."""

UnknownPath = Literal["error", "add", "none"]
"""What becomes of a path that a given tree does not have: an error, a new node, or no place for its product."""

Path = tuple[str, ...]


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
    for what, given, allowed in (
        ("attribute_form", attribute_form, ("named", "values")),
        ("unknown", unknown, ("error", "add", "none")),
    ):
        if given not in allowed:
            raise UsageError(f"{what} {given!r} is none", f"one of {', '.join(allowed)}")
    rows: dict[str, int] = {}
    titles: list[str] = []
    attributes: list[tuple[str, ...]] = []
    paths: list[tuple[Path, ...]] = []
    splits: list[str] = []
    images: list[int] = []
    known: dict[Path, Path] = {}
    texts: dict[tuple[str, ...], tuple[str, ...]] = {}  # many products have the same attributes: kept once
    parted = 0
    records = repeat({}) if collection.records is None else collection.records
    items = zip(collection.image_ids, collection.splits, collection.pictured.tolist(), records, strict=False)
    for item, (identifier, split, pictured, record) in enumerate(items):
        record = record or {}
        product = str(record["product"]) if record.get("product") not in (None, "") else identifier
        title = plain_text(str(record["title"])) if record.get("title") else ""
        found = tuple(_attribute_text(*pair, attribute_form) for pair in attributes_of(record))
        own = tuple(known.setdefault(path, path) for path in paths_of(record))
        row = rows.setdefault(product, len(rows))
        if row == len(titles):
            titles.append(title)
            attributes.append(texts.setdefault(found, found))
            paths.append(own)
            splits.append(split)
            images.append(item if pictured else -1)
        else:
            titles[row] = titles[row] or title
            attributes[row] = tuple(dict.fromkeys((*attributes[row], *found)))
            paths[row] = tuple(dict.fromkeys((*paths[row], *own)))
            parted += split != splits[row]
            images[row] = item if images[row] < 0 and pictured else images[row]
    name = collection.name
    if not any(titles) and not any(attributes) and not known:
        raise DataError(
            f"{name}: no item has a title, attributes or a category: these are no products",
            "read a dataset of products; diptych info lists the readers",
        )
    if tree is None and not known:
        raise DataError(
            f"{name}: none of {len(rows):,} products has a category",
            "give a taxonomy, or a dataset whose records have category paths",
        )
    full = tree if tree is not None else CategoryTree(known)
    strange = [path for path in known if path not in full]
    if strange and unknown == "error":
        product = next(one for one, own in zip(rows, paths, strict=True) if strange[0] in own)
        raise DataError(
            f"{name}: product {product} is in {SEPARATOR.join(strange[0])!r}, which the tree does not have; "
            f"{len(strange):,} of {len(known):,} paths are like that",
            "give the taxonomy that the products were sorted by, or say unknown='add' or 'none' (--unknown-paths)",
        )
    if strange and unknown == "add":
        full = CategoryTree((*full.paths, *strange), full.codes)
    node_of = {path: full.node(path) for path in known if path in full}
    places: list[list[int]] = []
    dropped = 0
    for own in paths:
        nodes = [node_of[path] for path in own if path in node_of]
        above = {int(one) for node in nodes for one in full.ancestors(node)[:-1]} if len(nodes) > 1 else set()
        places.append([node for node in nodes if node not in above])
        dropped += len(nodes) - len(places[-1])
    added = len(full) - len(tree) if tree is not None else 0
    merged = collection.n_images - len(rows)
    counts = np.array([len(nodes) for nodes in places], dtype=np.int64)
    notes = {
        "categories added to the tree": added,
        "paths left out that the tree does not have": 0 if added else len(strange),
        "paths left out that another path of the same product goes on from": dropped,
        "further items of products that had one already, their pictures left out": merged,
        "items in another split than their product's first item": parted,
        "products in several places of the tree": int((counts > 1).sum()),
    }
    return Catalogue(
        name=name,
        ids=list(rows),
        titles=titles,
        attributes=attributes,
        tree=full,
        place_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        places=np.array([node for nodes in places for node in nodes], dtype=np.int64),
        splits=splits,
        collection=collection,
        picture_rows=np.array(images, dtype=np.int64),
        notes=(*collection.notes, *(f"{note}: {count:,}" for note, count in notes.items() if count)),
    )


def _attribute_text(name: str, value: str, form: AttributeForm) -> str:
    """Return an attribute as text; ``base_colour`` reads as words."""
    name = name.replace("_", " ").strip() if form == "named" else ""
    return f"{name}: {value}" if name else value


class GivenSplit(Options):
    """The splits that the dataset came with."""

    def assign(self, catalogue: Catalogue) -> tuple[list[str], tuple[str, ...]]:
        """Return the split of every product, and one line per thing that was done."""
        return list(catalogue.splits), ()


class ProductSplit(Options):
    """Products at random; a product stays where it is when others come or go, since its draw is its own."""

    shares: Mapping[str, float] = {"train": 0.8, "val": 0.1, "test": 0.1}
    seed: int = 0
    together: Literal["none", "title", "title-picture"] = "none"  # equal ones are never parted

    @model_validator(mode="after")
    def _whole(self) -> Self:
        sizes = list(self.shares.values())
        if any(not share >= 0 for share in sizes) or not math.isclose(sum(sizes), 1, abs_tol=1e-6):
            raise ValueError("shares do not add up to 1; for instance train=0.8, test=0.2")
        return self

    def assign(self, catalogue: Catalogue) -> tuple[list[str], tuple[str, ...]]:
        """Return the split of every product, and one line per thing that was done."""
        names, edges = list(self.shares), np.cumsum(list(self.shares.values()))
        draws = draw_uniform(self.seed, _number("split of a product"), keys_of(self._keys(catalogue)))
        which = np.minimum(np.searchsorted(edges, draws, side="right"), len(names) - 1)
        sizes = np.bincount(which, minlength=len(names))
        empty = [name for name, size in zip(names, sizes, strict=True) if not size and self.shares[name]]
        if empty:
            raise DataError(
                f"{catalogue.name}: no product fell to {', '.join(empty)} of {len(catalogue):,}",
                "give it a larger share, another seed, or more products",
            )
        shares = ", ".join(f"{name} {share:g}" for name, share in self.shares.items())
        together = {
            "none": "",
            "title": ", one title in one split",
            "title-picture": ", one title and picture in one",
        }
        note = f"split by product, seed {self.seed}: {shares}{together[self.together]}"
        return [names[one] for one in which.tolist()], (note,)

    def _keys(self, catalogue: Catalogue) -> list[str]:
        """Return what each draw belongs to: the id, or the title (and the image's bytes) where there is one."""
        keys, collection = list(catalogue.ids), catalogue.collection
        if self.together == "title":
            keys = [
                f"title\0{title}" if title else key for key, title in zip(keys, catalogue.titles, strict=True)
            ]
        if self.together == "title-picture":
            for row in track(range(len(catalogue)), "reading pictures", unit="products"):
                title, image = catalogue.titles[row], int(catalogue.picture_rows[row])
                if title and image >= 0:
                    content = collection.source.content(int(collection.source_rows[image]))
                    keys[row] = f"title\0{title}\0{content}"
        return keys


class CategorySplit(Options):
    """A share of the categories held out of all splits but test, on top of the splits there are.

    Products on or below a held-out category leave all splits but the test split, so all categories below are unseen
    too. One above stays seen as long as it has other products to train on.
    """

    seed: int = 0
    setting: str = "most-specific"  # whose categories are held out
    held_out: float = Field(0.2, gt=0, lt=1)  # share of those categories
    test: str = Field("test", min_length=1)  # the split with queries for seen and unseen categories alike
    moved_to: str = Field("held-out", min_length=1)  # where other products of held-out categories go

    def assign(self, catalogue: Catalogue) -> tuple[list[str], tuple[str, ...]]:
        """Return the split of every product, and one line per thing that was done."""
        held = self._held_out(catalogue)
        start, nodes = nodes_on_paths(catalogue)
        touched = np.zeros(len(catalogue), dtype=bool)
        touched[np.repeat(np.arange(len(catalogue)), np.diff(start))[np.isin(nodes, held)]] = True
        before = np.asarray(catalogue.splits, dtype=object)
        moved = touched & (before != self.test)
        after = np.where(moved, self.moved_to, before)
        emptied = sorted(set(before.tolist()) - set(after.tolist()))
        if emptied:
            raise DataError(
                f"{catalogue.name}: all products of {', '.join(emptied)} are in the {len(held):,} held-out categories",
                "hold fewer out, or take a more specific setting",
            )
        note = (
            f"categories held out, seed {self.seed}: {len(held):,} {self.setting}; "
            f"{int(moved.sum()):,} products of theirs moved to {self.moved_to!r}, "
            f"{int((touched & ~moved).sum()):,} stay in {self.test!r}"
        )
        return after.tolist(), (note,)

    def _held_out(self, catalogue: Catalogue) -> np.ndarray:
        """Return a share of the setting's categories that have products both in test and elsewhere, at least one.

        They are those with the smallest draws; a draw belongs to seed and path.
        """
        is_test = np.asarray(catalogue.splits, dtype=object) == self.test
        parts = catalogue.split(self.test), catalogue.subset(np.flatnonzero(~is_test))
        able = query_nodes_of(catalogue, self.setting)
        for part in parts:
            able = able[np.isin(able, nodes_on_paths(part)[1])]
        if len(able) < 2:
            raise DataError(
                f"{catalogue.name}: {len(able)} of the {self.setting!r} categories have products in {self.test!r} "
                "and elsewhere, at least two are needed to hold one out",
                "split by product first, or take another setting",
            )
        paths = [catalogue.tree.text(node) for node in able.tolist()]
        draws = draw_uniform(self.seed, _number("category held out"), keys_of(paths))
        count = min(max(1, round(self.held_out * len(able))), len(able) - 1)
        return np.sort(able[np.argsort(draws, kind="stable")[:count]])


def _number(purpose: str) -> int:
    return int(keys_of([purpose])[0])


SPLITS: dict[str, type[GivenSplit | ProductSplit | CategorySplit]] = {
    "category": CategorySplit,
    "given": GivenSplit,
    "product": ProductSplit,
}


def assign_splits(catalogue: Catalogue, kind: str, **options: Any) -> Catalogue:
    """Return the same products with the splits that ``kind`` gives them: given, product or category."""
    if kind not in SPLITS:
        raise UnknownNameError("split of a catalogue", kind, SPLITS)
    splits, notes = SPLITS[kind].read(options, f"the {kind!r} split").assign(catalogue)
    return replace(catalogue, splits=splits, notes=(*catalogue.notes, *notes))


def seen_nodes(train: Catalogue, setting: str, seed: int = 0, *, epochs: int = 0) -> np.ndarray:
    """(nodes of the tree,) booleans: the categories that ``setting`` pairs some training product with.

    A category above or below a seen one is not seen by that: its own text was in no pair.
    """
    seen = np.zeros(len(train.tree), dtype=bool)
    for epoch in range(epochs) if epochs else (None,):
        targets = targets_of(train, setting, seed, epoch)
        seen[targets[targets >= 0]] = True
    return seen
