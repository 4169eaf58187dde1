"""One file per way of splitting products."""

from __future__ import annotations

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue
from diptych.commerce.catalogue.lineages import nodes_on_paths
from diptych.commerce.catalogue.settings import asking_nodes
from diptych.commerce.catalogue.splits.declaration import SPLITS, SplitKind, SplitOptions
from diptych.core.context import track
from diptych.core.draws import draw_uniform, keys_of
from diptych.core.errors import DataError

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


CATEGORY = SPLITS.add(
    SplitKind(
        name="category",
        description="a share of the categories held out of all splits but test, on top of the splits there are",
        takes=frozenset({"seed", "setting", "held_out", "test", "moved_to"}),
        assign=_assign,
    )
)


def _given_assign(catalogue: Catalogue, options: SplitOptions) -> tuple[list[str], tuple[str, ...]]:
    return list(catalogue.splits), ()


GIVEN = SPLITS.add(
    SplitKind(
        name="given",
        description="the splits that the dataset came with",
        takes=frozenset(),
        assign=_given_assign,
    )
)


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


PRODUCT = SPLITS.add(
    SplitKind(
        name="product",
        description="products at random; those of one title, or one title and picture, in one split if asked",
        takes=frozenset({"shares", "seed", "together"}),
        assign=_product_assign,
    )
)
