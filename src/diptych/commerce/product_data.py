"""Options that say which products are meant; the catalogue they give, its parts, and the description of a tree."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import field_validator

from diptych.commerce.catalogue import (
    AttributeForm,
    Catalogue,
    UnknownPath,
    assign_splits,
    catalogue_of,
    nodes_on_paths,
)
from diptych.commerce.taxonomy import CategoryTree, read_taxonomy, recognised_format, shape_of
from diptych.core.errors import UsageError
from diptych.core.options import parameter, parse_values
from diptych.core.table import Table
from diptych.data import read_collection
from diptych.data.collection import Collection
from diptych.data.readers import has_own_format
from diptych.data.source import DataSource, OutOption

_TAXONOMIES = "diptych.commerce.taxonomy:TAXONOMIES"


class SortedData(DataSource):
    """Options of products and of the tree that they are sorted into; enough to read them again from anywhere."""

    data: Path | None = parameter(
        None, "Other products than the run was trained on.", argument=True, metavar="DATA"
    )
    taxonomy: Path | None = parameter(None, "The category tree, where it is another file.")
    taxonomy_format: str | None = parameter(None, "Its format, if it is not recognised.", names=_TAXONOMIES)
    unknown: UnknownPath = parameter(
        "error", "error, add or none: categories that --taxonomy lacks.", "--unknown-paths", metavar="RULE"
    )

    @field_validator("data", "images", "taxonomy")
    @classmethod
    def _from_anywhere(cls, path: Path | None) -> Path | None:
        return path.resolve() if path is not None and path.exists() else path

    def collection(self) -> Collection:
        return read_collection(str(self.data), self.reader, **self.reader_options())

    def tree(self) -> CategoryTree | None:
        return None if self.taxonomy is None else read_taxonomy(self.taxonomy, self.taxonomy_format)

    def catalogue(self) -> Catalogue:
        return catalogue_of(self.collection(), tree=self.tree(), unknown=self.unknown)


class ProductData(SortedData):
    """Options of the products that a model is trained or measured on, and of their splits."""

    data: Path = parameter(..., "Products: generated, XMarket, a feed, …", argument=True, metavar="DATA")
    attribute_form: AttributeForm = parameter("named", "named (colour: red) or values (red).", metavar="FORM")
    split_by: Literal["given", "product", "category"] | None = parameter(
        None, "given, product or category.", default="given, else product"
    )
    split_option: list[str] = parameter([], "KEY=VALUE for it, e.g. seed=1. Repeatable.")

    def catalogue(self) -> Catalogue:
        nested: dict[str, Any] = {}  # shares.test=0.2 is a value in a table of shares
        for key, value in parse_values(self.split_option, "--split-option").items():
            name, point, part = key.partition(".")
            nested[name] = {**nested.get(name, {}), part: value} if point else value
        given = self.split_by in (None, "given")
        collection = self.collection().divided() if given else self.collection()
        how: dict[str, Any] = {"attribute_form": self.attribute_form, "unknown": self.unknown}
        found = catalogue_of(collection, tree=self.tree(), **how)
        kind = self.split_by or ("given" if "test" in found.split_sizes else "product")
        return assign_splits(found, kind, **nested)


class TreeOptions(SortedData, OutOption):
    """Options of the tree that is described; --out writes it as JSON."""

    data: Path = parameter(..., "A taxonomy's file, or products.", argument=True, metavar="FILE|DATA")
    format: str | None = parameter(None, "The file's format, where it is not recognised.", names=_TAXONOMIES)
    option: list[str] = parameter([], "KEY=VALUE for the format, e.g. orphans=root. Repeatable.")

    @property
    def is_file(self) -> bool:
        """Return whether it is a taxonomy's file; a feed has paths as well, and is no list of them."""
        of_products = any((self.images, self.reader, self.reader_option, self.taxonomy))
        of_file = bool(self.format or self.option)
        if of_products and of_file:
            message = "--format and --option are of a taxonomy's file, the other options of products"
            raise UsageError(message, "give one kind")
        own = of_products or of_file or has_own_format(self.data)
        return of_file if own else recognised_format(self.data) is not None


_SHOWN = 10


def describe_tree(options: TreeOptions) -> tuple[list[Table | str], dict[str, Any]]:
    """Return what is shown of a tree, and its JSON, which the format ``written`` reads."""
    counts: dict[str, np.ndarray] = {}
    found: Any
    if options.is_file:
        found = read_taxonomy(options.data, options.format, **parse_values(options.option, "--option"))
        tree = found
        content: dict[str, Any] = {"name": found.name, "version": found.version, "language": found.language}
    else:
        found = options.catalogue()
        tree, content = found.tree, {"name": found.name, "products": len(found)}
        below = np.bincount(nodes_on_paths(found)[1], minlength=len(tree))
        itself = np.bincount(found.places, minlength=len(tree))
        counts = {"products": itself, "products_with_those_below": below}
    shape = shape_of(tree)
    levels = [[f"{value:,.1f}".removesuffix(".0") for value in one.values()] for one in shape["levels"]]
    columns = ("level", "categories", "without children", "children of one, at most", "on average")
    after = "on average: of the categories that have children"
    shown: list[Table | str] = [found.describe(), Table.of("levels", after, columns, levels)]
    if shared := shape["shared"]:
        caption = f"names that stand in several places ({len(shared):,})"
        after = "a category is known by its whole path, which is its query where its name is not unique"
        names = [(name, f"{count:,}") for name, count in [*shared.items()][:_SHOWN]]
        shown.append(Table.of(caption, after, ("name", "categories"), names))
    if single := shape["only_children"]:
        shown.append(f"{single:,} categories have no siblings: their level sorts nothing")
    shown += [f"note: {note}" for note in found.notes]
    if counts:
        largest = [node for node in np.argsort(-itself, kind="stable")[:_SHOWN].tolist() if itself[node]]
        rows = [(tree.text(node), f"{itself[node]:,}", f"{below[node]:,}") for node in largest]
        heads = ("category", "products", "with those below")
        shown.append(Table.of("the largest categories", "", heads, rows))
        if empty := int((below == 0).sum()):
            shown.append(f"{empty:,} of {len(tree):,} categories have no products, in them or below")
        share = itself.max() / max(1, (found.place >= 0).sum())
        if len(tree) > 1 and share >= 0.5:
            what = f"{tree.text(largest[0])!r} holds {share:.0%} of the products"
            shown.append(f"note: {what}; measures are means over categories")
    categories = [
        {"path": list(path), **({"id": tree.codes[path]} if path in tree.codes else {})}
        | {name: int(of[node]) for name, of in counts.items()}
        for node, path in enumerate(tree.paths)
    ]
    content |= {"notes": list(found.notes), "fingerprint": tree.fingerprint, "shape": shape}
    return shown, content | {"categories": categories}
