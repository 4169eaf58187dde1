"""Catalogue: products with titles, attributes, pictures and places in a category tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.core.fingerprint import fingerprint
from diptych.data.collection import Collection
from diptych.data.taxonomy import CategoryTree


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
