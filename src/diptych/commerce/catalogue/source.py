"""CatalogueSource: how the products of a catalogue are read; its parts by split, its sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue, products_per_category
from diptych.core.artifact import decode
from diptych.core.errors import DataError, StorageError, UnknownNameError, UsageError
from diptych.core.table import Table

if TYPE_CHECKING:
    from diptych.data.collection import Collection


@dataclass(frozen=True)
class CatalogueSource:
    """What was read and how: enough to read it again.

    Attributes:
        data: a folder or file.
        reader: its format; None where it is recognised.
        options: of the reader.
        taxonomy: a file with the category tree; None for the products' own.
        taxonomy_format: its format.
        unknown: what becomes of paths that the taxonomy does not have.
        attribute_form: ``named`` or ``values``.
        split_by: a kind of split; None for the data's own, or by product where it has no test split.
        split_options: of that kind.
    """

    data: str
    reader: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    taxonomy: str | None = None
    taxonomy_format: str | None = None
    unknown: str = "error"
    attribute_form: str = "named"
    split_by: str | None = None
    split_options: Mapping[str, Any] = field(default_factory=dict)

    def collection(self) -> Collection:
        """Read the products, sorted or not."""
        from diptych.data import read_collection

        if not self.reader and not Path(self.data).exists():
            raise DataError(f"{self.data} does not exist", "check the path")
        return read_collection(self.data, self.reader, **self.options)

    def catalogue(self) -> Catalogue:
        """Read the products with their tree and splits."""
        from diptych.commerce.catalogue.making import assign_splits, catalogue_of

        collection, tree = self.collection(), None
        if self.taxonomy is not None:
            from diptych.data.taxonomy import read_taxonomy

            tree = read_taxonomy(self.taxonomy, self.taxonomy_format).tree
        catalogue = catalogue_of(
            collection,
            tree=tree,
            attribute_form=self.attribute_form,  # type: ignore[arg-type]
            unknown=self.unknown,  # type: ignore[arg-type]
        )
        kind = self.split_by
        if kind is None:
            kind = "given" if "test" in catalogue.split_sizes else "product"
        return assign_splits(catalogue, kind, **self.split_options)


def described(kind: type, metadata: Any, folder: Path) -> Any:
    """Return how the products of a folder were read, as it says."""
    try:
        return decode(kind, metadata, {})
    except (TypeError, ValueError) as error:
        raise StorageError(f"{folder} does not hold how its data is read: {error}", "recreate it") from None


VALIDATION = ("val", "validation", "valid", "dev")
"""What the split to validate on may be called; the first that there is is taken."""


def validation_split(catalogue: Catalogue) -> str | None:
    """The name of the products to validate on: ``val``, ``validation``, ``valid`` or ``dev``; None without any."""
    sizes = catalogue.split_sizes
    return next((name for name in VALIDATION if name in sizes), None)


def validation_part(catalogue: Catalogue) -> Catalogue | None:
    """The products to choose epochs by; None where there are none, or none of them has a category."""
    name = validation_split(catalogue)
    part = None if name is None else catalogue.split(name)
    return part if part is not None and bool((part.place >= 0).any()) else None


def used_part(catalogue: Catalogue, split: str | None) -> Catalogue:
    """The products of one split, or all."""
    if split is None or split == "all":
        return catalogue
    if split not in catalogue.split_sizes:
        raise UnknownNameError(f"split of {catalogue.name}", split, catalogue.split_sizes)
    return catalogue.split(split)


def training_part(catalogue: Catalogue, *more: str) -> list[Catalogue]:
    """Return the products of the split ``train`` and of the splits ``more``, which all must be there."""
    sizes = catalogue.split_sizes
    for name in ("train", *more):
        if name not in sizes:
            raise UsageError(
                f"{catalogue.name} has no split called {name}, only {', '.join(sizes)}",
                "make one with --split-by product",
            )
    return [catalogue.split(name) for name in ("train", *more)]


_SHOWN = 10
_HALF = 0.5


def product_tables(catalogue: Catalogue) -> tuple[list[Table], list[str]]:
    """Return the largest categories, and notes on empty ones and on one that holds most products."""
    itself, below = products_per_category(catalogue)
    largest = [node for node in np.argsort(-itself, kind="stable")[:_SHOWN] if itself[node]]
    rows = [(catalogue.tree.text(node), f"{itself[node]:,}", f"{below[node]:,}") for node in largest]
    columns = ("category", "products", "with those below")
    notes = []
    if empty := int((below == 0).sum()):
        notes.append(f"{empty:,} of {len(below):,} categories have no products, in them or below")
    sorted_in = int((catalogue.place >= 0).sum())
    if sorted_in and itself.max() >= _HALF * sorted_in and len(below) > 1:
        first = int(itself.argmax())
        notes.append(
            f"note: {catalogue.tree.text(first)!r} alone holds {itself[first] / sorted_in:.0%} of the products; most "
            "measures are means over categories, where it counts as one"
        )
    return [Table.of("the largest categories", "", columns, rows)], notes
