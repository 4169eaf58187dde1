"""``diptych categories tree``: what a taxonomy file, or the tree of a dataset of products, looks like."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from diptych.cli.categories.sources import TAXONOMIES, SortedData
from diptych.cli.console import next_step, progress, say, show
from diptych.cli.sources import OutOption, parse_values
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.commerce.catalogue import Catalogue


class TreeOptions(SortedData, OutOption):
    """What is described; --out writes the tree as JSON."""

    data: Path = Field(
        description="A taxonomy's file, or a dataset of products.",
        json_schema_extra={"argument": True, "metavar": "FILE|DATA"},
    )
    format: str | None = Field(
        None,
        description="The file's format, where it is not recognised.",
        json_schema_extra={"names": TAXONOMIES},
    )
    option: list[str] = Field([], description="KEY=VALUE for the format, e.g. orphans=root. Repeatable.")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.of_products and (self.format or self.option):
            message = "--format and --option are of a taxonomy's file, the other options of products"
            raise UsageError(message, "give one kind")
        return self

    @property
    def of_products(self) -> bool:
        """Whether any option is of products."""
        return any(getattr(self, name) for name in ("images", "reader", "reader_option", "taxonomy"))

    @property
    def is_file(self) -> bool:
        """Whether it is a taxonomy's file; a feed has paths as well, and is no list of them."""
        from diptych.data.readers import has_own_format
        from diptych.data.taxonomy import recognised_format

        if self.of_products or self.format or self.option:
            return not self.of_products
        return not has_own_format(self.data) and bool(recognised_format(self.data))


def tree(options: TreeOptions) -> None:
    """Describe a category tree: levels and widths, names in several places, products per category.

    A file of categories is Google's or Shopify's, a path per line, or a table of ids and parents; what had to be mended
    in it is listed. Of a dataset of products it is the tree that they are sorted into. --out writes JSON.

    Examples:
        diptych categories tree taxonomy-with-ids.en-US.txt
        diptych categories tree categories.csv --option orphans=root
        diptych categories tree shop --taxonomy categories.txt --out tree.json
    """
    from diptych.commerce.catalogue.catalogue import products_per_category
    from diptych.commerce.catalogue.source import product_tables
    from diptych.core.files import write_json
    from diptych.data.taxonomy import read_taxonomy
    from diptych.data.taxonomy.tree import shape_of, tree_content

    catalogue: Catalogue | None = None
    counts: dict[str, Any] = {}
    with progress():
        if options.is_file:
            made = read_taxonomy(options.data, options.format, **parse_values(options.option, "--option"))
            categories, notes = made.tree, made.notes
            about: dict[str, Any] = {"name": made.name, "version": made.version, "language": made.language}
            say(made.describe())
        else:
            catalogue = options.source(split_by="given").catalogue()  # a tree needs no test products
            categories, notes = catalogue.tree, catalogue.notes
            about = {"name": catalogue.name, "products": len(catalogue)}
            say(catalogue.describe())
            itself, below = products_per_category(catalogue)
            counts = {"products": itself, "products_with_those_below": below}
        shape = shape_of(categories)
    show(*shape.tables())
    if shape.only_children:
        say(f"{shape.only_children:,} categories have no siblings: their level sorts nothing")
    for note in notes:
        say(f"note: {note}")
    if catalogue is not None:
        tables, sizes = product_tables(catalogue)
        show(*tables)
        for note in sizes:
            say(note)
    if options.out is not None:
        write_json(options.out, about | tree_content(categories, notes, counts))
        say(f"written to {options.out}")
    data = ["DATA", "--taxonomy", options.data] if catalogue is None else [options.data]
    next_step(["diptych", "categories", "train", *data, "--out", "runs/shop"])
