"""Splits of a catalogue: given, by product, by category; their parts; which categories a training has seen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from diptych.commerce.catalogue.catalogue import Catalogue, nodes_on_paths, query_nodes_of, targets_of
from diptych.core.draws import draw_uniform, keys_of
from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.core.options import Options

_PRODUCT, _CATEGORY = (int(key) for key in keys_of(["split of a product", "category held out"]))


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
    """(nodes of the tree,) booleans: the categories that ``setting`` pairs some training product with.

    A category above or below a seen one is not seen by that: its own text was in no pair.
    """
    drawn = [targets_of(train, setting, seed, epoch) for epoch in (range(epochs) if epochs else (None,))]
    return np.isin(np.arange(len(train.tree)), np.concatenate(drawn))
