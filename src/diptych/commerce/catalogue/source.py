"""CatalogueSource: how the products of a catalogue are read; its parts by split, its tree and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from diptych.commerce.catalogue.catalogue import Catalogue, products_per_category
from diptych.commerce.taxonomy import read_taxonomy
from diptych.commerce.taxonomy.formats import recognised_format
from diptych.commerce.taxonomy.tree import shape_of, shape_tables, tree_content
from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.options import Options, parameter, parse_values
from diptych.core.table import Table
from diptych.data.readers import has_own_format
from diptych.data.source import DataSource, OutOption

if TYPE_CHECKING:
    from diptych.data.collection import Collection

_TAXONOMIES = "diptych.commerce.taxonomy:TAXONOMIES"


class CatalogueSource(Options):
    """What was read and how: enough to read it again."""

    data: str  # a folder or file
    reader: str | None = None  # its format; None where it is recognised
    options: Mapping[str, Any] = {}  # of the reader
    taxonomy: str | None = None  # a file with the category tree; None for the products' own
    taxonomy_format: str | None = None
    unknown: str = "error"  # what becomes of paths that the taxonomy does not have
    attribute_form: str = "named"
    split_by: str | None = None  # None: the data's own splits, or by product where it has no test split
    split_options: Mapping[str, Any] = {}

    def collection(self) -> Collection:
        """Read the products, sorted or not."""
        from diptych.data import read_collection

        if not self.reader and not Path(self.data).exists():
            raise DataError(f"{self.data} does not exist", "check the path")
        found = read_collection(self.data, self.reader, **self.options)
        return found.divided() if self.split_by in (None, "given") else found

    def catalogue(self) -> Catalogue:
        """Read the products with their tree and splits."""
        from diptych.commerce.catalogue.making import assign_splits, catalogue_of

        collection, tree = self.collection(), None
        if self.taxonomy is not None:
            tree = read_taxonomy(self.taxonomy, self.taxonomy_format).tree
        how: dict[str, Any] = {"attribute_form": self.attribute_form, "unknown": self.unknown}
        catalogue = catalogue_of(collection, tree=tree, **how)
        kind = self.split_by or ("given" if "test" in catalogue.split_sizes else "product")
        return assign_splits(catalogue, kind, **self.split_options)


def read_again(metadata: Any, folder: Path) -> Catalogue:
    """Read the products of a folder's metadata again."""
    return CatalogueSource.read(metadata, str(folder), StorageError, "recreate it").catalogue()


class SortedData(DataSource):
    """How products and the tree that they are sorted into are read."""

    data: Path | None = parameter(
        None, "Other products than those the run was trained on.", argument=True, metavar="DATA"
    )
    taxonomy: Path | None = parameter(None, "The category tree, where it is another file.")
    taxonomy_format: str | None = parameter(
        None, "Its format, where it is not recognised.", names=_TAXONOMIES
    )
    unknown: Literal["error", "add", "none"] = parameter(
        "error",
        "error, add or none, for categories that --taxonomy lacks.",
        "--unknown-paths",
        metavar="RULE",
    )

    def source(self, **more: Any) -> CatalogueSource:
        """Return how the products are read, from anywhere."""
        data = Path(str(self.data))
        return CatalogueSource(
            data=str(data.resolve() if data.exists() else data),
            options=self.reader_options(),
            taxonomy=None if self.taxonomy is None else str(self.taxonomy.resolve()),
            **self.model_dump(include={"reader", "taxonomy_format", "unknown"}),
            **more,
        )


class ProductData(SortedData):
    """Which products a model is trained or measured on, and how they are split."""

    data: Path = parameter(
        ...,
        "Products: a folder or file (diptych data products, XMarket, a feed, …).",
        argument=True,
        metavar="DATA",
    )
    attribute_form: Literal["named", "values"] = parameter(
        "named", "named (colour: red) or values (red).", metavar="FORM"
    )
    split_by: str | None = parameter(
        None, "given, product or category.", default="given, or product where there is no test split"
    )
    split_option: list[str] = parameter([], "KEY=VALUE for it, e.g. seed=1. Repeatable.")

    def read_products(self) -> tuple[Catalogue, CatalogueSource]:
        """Read the products; return also how to read them again from anywhere."""
        nested: dict[str, Any] = {}  # shares.test=0.2 is a value in a table of shares
        for key, value in parse_values(self.split_option, "--split-option").items():
            name, point, part = key.partition(".")
            nested[name] = {**nested.get(name, {}), part: value} if point else value
        source = self.source(attribute_form=self.attribute_form, split_by=self.split_by, split_options=nested)
        return source.catalogue(), source


class TreeOptions(SortedData, OutOption):
    """Which tree is described; --out writes it as JSON."""

    data: Path = parameter(
        ..., "A taxonomy's file, or a dataset of products.", argument=True, metavar="FILE|DATA"
    )
    format: str | None = parameter(None, "The file's format, where it is not recognised.", names=_TAXONOMIES)
    option: list[str] = parameter([], "KEY=VALUE for the format, e.g. orphans=root. Repeatable.")

    @property
    def is_file(self) -> bool:
        """Return whether it is a taxonomy's file; a feed has paths as well, and is no list of them."""
        of_products = any(getattr(self, one) for one in ("images", "reader", "reader_option", "taxonomy"))
        of_file = bool(self.format or self.option)
        if of_products and of_file:
            message = "--format and --option are of a taxonomy's file, the other options of products"
            raise UsageError(message, "give one kind")
        if of_products or of_file:
            return of_file
        return not has_own_format(self.data) and recognised_format(self.data) is not None


def describe_tree(options: TreeOptions) -> tuple[list[Table | str], dict[str, Any]]:
    """Return what is shown of a tree, and its JSON."""
    more: list[Table | str] = []
    counts: dict[str, Any] = {}
    if options.is_file:
        made = read_taxonomy(options.data, options.format, **parse_values(options.option, "--option"))
        about: dict[str, Any] = {"name": made.name, "version": made.version, "language": made.language}
        line, tree, notes = made.describe(), made.tree, made.notes
    else:
        catalogue = options.source(split_by="given").catalogue()  # a tree needs no test products
        about = {"name": catalogue.name, "products": len(catalogue)}
        line, tree, notes = catalogue.describe(), catalogue.tree, catalogue.notes
        counts["products"], counts["products_with_those_below"] = products_per_category(catalogue)
        more = _product_tables(catalogue, **counts)
    shape = shape_of(tree)
    lines = [f"note: {note}" for note in notes]
    if alone := shape["only_children"]:
        lines.insert(0, f"{alone:,} categories have no siblings: their level sorts nothing")
    return [line, *shape_tables(shape), *lines, *more], about | tree_content(tree, notes, counts)


_SHOWN = 10
_HALF = 0.5


def _product_tables(
    catalogue: Catalogue, products: np.ndarray, products_with_those_below: np.ndarray
) -> list[Table | str]:
    """Return the largest categories, and notes on empty ones and on one that holds most products."""
    itself, below, text = products, products_with_those_below, catalogue.tree.text
    largest = [node for node in np.argsort(-itself, kind="stable")[:_SHOWN] if itself[node]]
    rows = [(text(node), f"{itself[node]:,}", f"{below[node]:,}") for node in largest]
    columns = ("category", "products", "with those below")
    shown: list[Table | str] = [Table.of("the largest categories", "", columns, rows)]
    if empty := int((below == 0).sum()):
        shown.append(f"{empty:,} of {len(below):,} categories have no products, in them or below")
    many = int((catalogue.place >= 0).sum())
    if many and itself.max() >= _HALF * many and len(below) > 1:
        shown.append(
            f"note: {text(int(itself.argmax()))!r} alone holds {itself.max() / many:.0%} of the products; most "
            "measures are means over categories, where it counts as one"
        )
    return shown


VALIDATION = ("val", "validation", "valid", "dev")
"""Names of the split to validate on; the first that there is is taken."""


def validation_split(catalogue: Catalogue) -> str | None:
    """Return the name of the products to validate on; None without any."""
    sizes = catalogue.split_sizes
    return next((name for name in VALIDATION if name in sizes), None)


def validation_part(catalogue: Catalogue) -> Catalogue | None:
    """Return the products to choose epochs by; None where there are none, or none of them has a category."""
    name = validation_split(catalogue)
    part = None if name is None else catalogue.split(name)
    return part if part is not None and bool((part.place >= 0).any()) else None


def used_part(catalogue: Catalogue, split: str | None) -> Catalogue:
    """Return the products of one split, or all."""
    return catalogue if split in (None, "all") else catalogue.split(split)


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
