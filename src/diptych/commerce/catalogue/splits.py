"""Ways of telling training from test products, by name, and which categories a training has seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue, asking_nodes, nodes_on_paths, targets_of
from diptych.core.context import track
from diptych.core.draws import draw_uniform, keys_of
from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.core.registry import Registry

Together = Literal["none", "title", "title-picture"]
"""Which products are one for the draw: none, those of one title, or those of one title and one picture's bytes."""


@dataclass(frozen=True)
class SplitOptions:
    """What a split can be told; each kind says which of it it takes.

    Attributes:
        shares: of products per split, adding up to 1.
        seed: of the draws.
        together: which products are never parted.
        setting: whose categories are held out.
        held_out: share of those categories.
        test: the split that asks for seen and unseen categories alike.
        moved_to: the split that the other products of held-out categories go to.
    """

    shares: Mapping[str, float] = field(default_factory=lambda: {"train": 0.8, "val": 0.1, "test": 0.1})
    seed: int = 0
    together: Together = "none"
    setting: str = "most-specific"
    held_out: float = 0.2
    test: str = "test"
    moved_to: str = "held-out"

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
        name: ``given``, ``product`` or ``category``.
        description: one line.
        takes: names of the options that it reads.
        assign: the split of every product, and one line per thing that was done.
    """

    name: str
    description: str
    takes: frozenset[str]
    assign: Callable[[Catalogue, SplitOptions], tuple[list[str], tuple[str, ...]]]


SPLITS: Registry[SplitKind] = Registry("split of a catalogue", "diptych.commerce.catalogue.splits")
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
