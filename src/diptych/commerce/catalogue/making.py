"""Catalogues are made of collections, and split: by product, by category; which categories a training has seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue, asking_nodes, nodes_on_paths, targets_of
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.context import track
from diptych.core.draws import draw_uniform, keys_of
from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.core.registry import Registry
from diptych.data.collection import Collection
from diptych.data.products import attributes_of, paths_of, plain_text

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


Together = Literal["none", "title", "title-picture"]
"""Which products are one for the draw: none, those of one title, or those of one title and one picture's bytes."""


@dataclass(frozen=True)
class SplitOptions:
    """What a split can be told; each kind says which of it it takes.

    Attributes:
        shares: of products per split, adding up to 1.
    """

    shares: Mapping[str, float] = field(default_factory=lambda: {"train": 0.8, "val": 0.1, "test": 0.1})
    seed: int = 0  # of the draws
    together: Together = "none"  # which products are never parted
    setting: str = "most-specific"  # whose categories are held out
    held_out: float = 0.2  # share of those categories
    test: str = "test"  # the split that asks for seen and unseen categories alike
    moved_to: str = "held-out"  # the split that the other products of held-out categories go to

    def __post_init__(self) -> None:
        sizes = list(self.shares.values())
        if (
            not sizes
            or any(not share >= 0 for share in sizes)
            or not math.isclose(sum(sizes), 1, abs_tol=1e-6)
        ):
            given = ", ".join(f"{name} {share:g}" for name, share in self.shares.items())
            raise UsageError(
                f"shares {given or 'of nothing'} do not add up to 1", "for instance train=0.8, test=0.2"
            )
        if not 0 < self.held_out < 1:
            raise UsageError(f"a share of {self.held_out:g} categories cannot be held out", "between 0 and 1")
        if self.together not in ("none", "title", "title-picture"):
            raise UsageError(f"together {self.together!r} is none", "one of none, title, title-picture")
        if not self.test or not self.moved_to:
            raise UsageError("a split needs a name", "name test and moved_to")


@dataclass(frozen=True)
class SplitKind:
    """One way.

    Attributes:
        assign: the split of every product, and one line per thing that was done.
    """

    name: str  # given, product or category
    description: str  # one line
    takes: frozenset[str]  # names of the options that it reads
    assign: Callable[[Catalogue, SplitOptions], tuple[list[str], tuple[str, ...]]]


SPLITS: Registry[SplitKind] = Registry("split of a catalogue", "diptych.commerce.catalogue.making")
"""All ways; each is declared in a file of its own."""


def assign_splits(catalogue: Catalogue, kind: str, **options: Any) -> Catalogue:
    """The same products with the splits that ``kind`` gives them."""
    declared = SPLITS.get(kind)
    for name in options:
        if name not in declared.takes:
            raise UnknownNameError(f"option of the {kind!r} split", name, declared.takes)
    splits, notes = declared.assign(catalogue, SplitOptions(**options))
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


_PURPOSE = "category held out"


def held_out_nodes(catalogue: Catalogue, options: SplitOptions) -> np.ndarray:
    """The nodes, ascending, that are held out: a share of the setting's categories that have products both in the
    test split and elsewhere, those with the smallest draws, at least one. A draw belongs to seed and path.
    """
    test = catalogue.split(options.test)
    others = catalogue.subset(np.flatnonzero(np.asarray(catalogue.splits, dtype=object) != options.test))
    within = np.zeros((2, len(catalogue.tree)), dtype=bool)
    for mask, part in zip(within, (test, others), strict=True):
        mask[nodes_on_paths(part)[1]] = True
    able = asking_nodes(catalogue, options.setting)
    able = able[within[:, able].all(axis=0)]
    if len(able) < 2:
        raise DataError(
            f"{catalogue.name}: {len(able)} of the {options.setting!r} categories have products in {options.test!r} "
            "and elsewhere, at least two are needed to hold one out",
            "split by product first, or take another setting",
        )
    paths = [catalogue.tree.text(node) for node in able.tolist()]
    draws = draw_uniform(options.seed, int(keys_of([_PURPOSE])[0]), keys_of(paths))
    count = min(max(1, round(options.held_out * len(able))), len(able) - 1)
    return np.sort(able[np.argsort(draws, kind="stable")[:count]])


def _assign(catalogue: Catalogue, options: SplitOptions) -> tuple[list[str], tuple[str, ...]]:
    """Products on or below a held-out category leave all splits but the test split.

    All categories below one that is held out are then unseen too. One above it stays seen as long as it has other
    products to train on.
    """
    held = held_out_nodes(catalogue, options)
    out = np.zeros(len(catalogue.tree), dtype=bool)
    out[held] = True
    start, nodes = nodes_on_paths(catalogue)
    product = np.repeat(np.arange(len(catalogue)), np.diff(start))
    touched = np.zeros(len(catalogue), dtype=bool)
    touched[product[out[nodes]]] = True
    before = np.asarray(catalogue.splits, dtype=object)
    moved = touched & (before != options.test)
    after = before.copy()
    after[moved] = options.moved_to
    emptied = sorted(set(before.tolist()) - set(after.tolist()))
    if emptied:
        raise DataError(
            f"{catalogue.name}: all products of {', '.join(emptied)} are in the {len(held):,} held-out categories",
            "hold fewer out, or take a more specific setting",
        )
    note = (
        f"categories held out, seed {options.seed}: {len(held):,} {options.setting}; "
        f"{int(moved.sum()):,} products of theirs moved to {options.moved_to!r}, "
        f"{int((touched & ~moved).sum()):,} stay in {options.test!r}"
    )
    return after.tolist(), (note,)


_PRODUCT_PURPOSE = "split of a product"


def _product_assign(catalogue: Catalogue, options: SplitOptions) -> tuple[list[str], tuple[str, ...]]:
    """A product stays where it is when others come or go, since its draw is its own."""
    names = list(options.shares)
    edges = np.cumsum(list(options.shares.values()))
    draws = draw_uniform(
        options.seed, int(keys_of([_PRODUCT_PURPOSE])[0]), keys_of(_keys(catalogue, options))
    )
    which = np.minimum(np.searchsorted(edges, draws, side="right"), len(names) - 1)
    sizes = np.bincount(which, minlength=len(names))
    empty = [name for name, size in zip(names, sizes, strict=True) if not size and options.shares[name]]
    if empty:
        raise DataError(
            f"{catalogue.name}: no product fell to {', '.join(empty)} of {len(catalogue):,}",
            "give it a larger share, another seed, or more products",
        )
    shares = ", ".join(f"{name} {share:g}" for name, share in options.shares.items())
    together = {
        "none": "",
        "title": ", one title in one split",
        "title-picture": ", one title and picture in one",
    }
    note = f"split by product, seed {options.seed}: {shares}{together[options.together]}"
    return [names[one] for one in which.tolist()], (note,)


def _keys(catalogue: Catalogue, options: SplitOptions) -> list[str]:
    """What a product's draw belongs to: its id, or its title (and its picture's bytes) where it has one."""
    if options.together == "none":
        return list(catalogue.ids)
    if options.together == "title":
        pairs = zip(catalogue.ids, catalogue.titles, strict=True)
        return [f"title\0{title}" if title else one for one, title in pairs]
    keys = []
    collection = catalogue.collection
    for row in track(range(len(catalogue)), "reading pictures", unit="products"):
        title, picture = catalogue.titles[row], int(catalogue.picture_rows[row])
        if not title or picture < 0:
            keys.append(catalogue.ids[row])
            continue
        content = collection.source.content(int(collection.source_rows[picture]))
        keys.append(f"title\0{title}\0{content}")
    return keys


for _kind in (
    SplitKind(
        "category",
        "a share of the categories held out of all splits but test, on top of the splits there are",
        frozenset({"seed", "setting", "held_out", "test", "moved_to"}),
        _assign,
    ),
    SplitKind(
        "given",
        "the splits that the dataset came with",
        frozenset(),
        lambda catalogue, _: (list(catalogue.splits), ()),
    ),
    SplitKind(
        "product",
        "products at random; those of one title, or one title and picture, in one split if asked",
        frozenset({"shares", "seed", "together"}),
        _product_assign,
    ),
):
    SPLITS.add(_kind)
