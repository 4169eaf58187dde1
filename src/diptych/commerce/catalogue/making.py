"""A catalogue out of a collection of products."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.core.errors import DataError, UsageError
from diptych.data.collection import Collection
from diptych.data.products import attributes_of, paths_of, plain_text
from diptych.data.taxonomy import CategoryTree

AttributeForm = Literal["named", "values"]
"""``named``: ``"base colour: red"``; ``values``: ``"red"``."""

UnknownPath = Literal["error", "add", "none"]
"""What becomes of a path that a given tree does not have: an error, a new node, or no place for its product."""

Path = tuple[str, ...]


@dataclass
class _Gathered:
    """Products in the making, in the order of their first items."""

    rows: dict[str, int] = field(default_factory=dict)
    titles: list[str] = field(default_factory=list)
    attributes: list[tuple[str, ...]] = field(default_factory=list)
    paths: list[tuple[int, ...]] = field(default_factory=list)
    splits: list[str] = field(default_factory=list)
    pictures: list[int] = field(default_factory=list)
    known: dict[Path, int] = field(default_factory=dict)
    torn: int = 0


def catalogue_of(
    collection: Collection,
    *,
    tree: CategoryTree | None = None,
    attribute_form: AttributeForm = "named",
    unknown: UnknownPath = "error",
) -> Catalogue:
    """The products of a collection, with the tree of their categories; no picture is read.

    Items with the same ``product`` in their records are one product: its first title and first picture, all its
    attributes and categories, the split of its first item. A product in several paths keeps them all; a path that
    another of its paths goes on from is dropped. What was done is counted in the catalogue's notes.
    """
    for what, given, allowed in (
        ("attribute_form", attribute_form, ("named", "values")),
        ("unknown", unknown, ("error", "add", "none")),
    ):
        if given not in allowed:
            raise UsageError(f"{what} {given!r} is none", f"one of {', '.join(allowed)}")
    gathered = _gather(collection, named=attribute_form == "named")
    if not any(gathered.titles) and not any(gathered.attributes) and not gathered.known:
        raise DataError(
            f"{collection.name}: no item has a title, attributes or a category: these are no products",
            "read a dataset of products; diptych info lists the readers",
        )
    if tree is None and not gathered.known:
        raise DataError(
            f"{collection.name}: none of {len(gathered.rows):,} products has a category",
            "give a taxonomy, or a dataset whose records have category paths",
        )
    notes: list[str] = []
    node_of, full = _nodes(gathered, collection.name, tree, unknown, notes)
    start, places = _places(gathered, node_of, full, notes)
    merged = collection.n_images - len(gathered.rows)
    several = int((np.diff(start) > 1).sum())
    for count, note in (
        (merged, f"further items of products that had one already, their pictures left out: {merged:,}"),
        (
            gathered.torn,
            f"items in another split than their product's first item: {gathered.torn:,}",
        ),
        (several, f"products in several places of the tree: {several:,}"),
    ):
        if count:
            notes.append(note)
    return Catalogue(
        name=collection.name,
        ids=list(gathered.rows),
        titles=gathered.titles,
        attributes=gathered.attributes,
        tree=full,
        place_start=start,
        places=places,
        splits=gathered.splits,
        collection=collection,
        picture_rows=np.array(gathered.pictures, dtype=np.int64),
        notes=(*collection.notes, *notes),
    )


def _items(collection: Collection) -> Iterator[tuple[str, str, bool, Mapping[str, Any]]]:
    """Id, split, whether there is a picture, record."""
    records: Sequence[Mapping[str, Any]] | None = collection.records
    empty: Mapping[str, Any] = {}
    each = (empty for _ in range(collection.n_images)) if records is None else iter(records)
    return zip(collection.image_ids, collection.splits, collection.pictured.tolist(), each, strict=True)


def _gather(collection: Collection, named: bool) -> _Gathered:
    made = _Gathered()
    texts: dict[tuple[str, str], str] = {}
    seen: dict[tuple[str, ...], tuple[str, ...]] = {}  # many products have the same attributes: kept once
    for item, (identifier, split, pictured, given) in enumerate(_items(collection)):
        record = given or {}
        product = str(record["product"]) if record.get("product") not in (None, "") else identifier
        title = plain_text(str(record["title"])) if record.get("title") else ""
        found = tuple(_text(texts, pair, named) for pair in attributes_of(record))
        paths = tuple(made.known.setdefault(path, len(made.known)) for path in paths_of(record))
        row = made.rows.setdefault(product, len(made.rows))
        if row == len(made.titles):
            made.titles.append(title)
            made.attributes.append(seen.setdefault(found, found))
            made.paths.append(paths)
            made.splits.append(split)
            made.pictures.append(item if pictured else -1)
            continue
        made.titles[row] = made.titles[row] or title
        made.attributes[row] = tuple(dict.fromkeys((*made.attributes[row], *found)))
        made.paths[row] = tuple(dict.fromkeys((*made.paths[row], *paths)))
        made.torn += split != made.splits[row]
        if made.pictures[row] < 0 and pictured:
            made.pictures[row] = item
    return made


def _text(texts: dict[tuple[str, str], str], pair: tuple[str, str], named: bool) -> str:
    """An attribute as text, made once for all products that have it; ``base_colour`` reads as words."""
    if pair not in texts:
        name = pair[0].replace("_", " ").strip()
        texts[pair] = f"{name}: {pair[1]}" if named and name else pair[1]
    return texts[pair]


def _nodes(
    gathered: _Gathered, name: str, tree: CategoryTree | None, unknown: UnknownPath, notes: list[str]
) -> tuple[np.ndarray, CategoryTree]:
    """The node of every known path, -1 for one that gets none, and the tree that has them."""
    if tree is None:
        full = CategoryTree(gathered.known)
    else:
        strange = [path for path in gathered.known if path not in tree]
        full = tree
        if strange and unknown == "error":
            number = gathered.known[strange[0]]
            product = next(
                one for one, paths in zip(gathered.rows, gathered.paths, strict=True) if number in paths
            )
            raise DataError(
                f"{name}: product {product} is in {' > '.join(strange[0])!r}, which the tree does not have; "
                f"{len(strange):,} of {len(gathered.known):,} paths are like that",
                "give the taxonomy that the products were sorted by, or say unknown='add' or 'none' (--unknown-paths)",
            )
        if strange and unknown == "add":
            full = CategoryTree((*tree.paths, *strange), tree.codes)
            notes.append(f"categories added to the tree: {len(full) - len(tree):,}")
        elif strange:
            notes.append(f"paths left out that the tree does not have: {len(strange):,}")
    return np.array([full.node(path) if path in full else -1 for path in gathered.known], np.int64), full


def _places(
    gathered: _Gathered, node_of: np.ndarray, tree: CategoryTree, notes: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """(n + 1,) starts and the places, without those that another place of the product goes on from."""
    counts = np.fromiter((len(paths) for paths in gathered.paths), np.int64, len(gathered.paths))
    flat = np.fromiter((one for paths in gathered.paths for one in paths), np.int64, int(counts.sum()))
    product, places = np.repeat(np.arange(len(counts)), counts), node_of[flat] if len(flat) else flat
    keep = places >= 0
    crowded = np.flatnonzero(counts[product] > 1)
    dropped = 0
    for rows in np.split(crowded, np.flatnonzero(np.diff(product[crowded])) + 1) if len(crowded) else []:
        above = {int(node) for row in rows if places[row] >= 0 for node in tree.ancestors(places[row])[:-1]}
        for row in rows:
            if int(places[row]) in above:
                keep[row] = False
                dropped += 1
    if dropped:
        notes.append(f"paths left out that another path of the same product goes on from: {dropped:,}")
    start = np.concatenate([[0], np.cumsum(np.bincount(product[keep], minlength=len(counts)))])
    return start.astype(np.int64), places[keep]
