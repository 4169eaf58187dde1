"""``diptych categories tree``: what a taxonomy file, or the tree of a dataset of products, looks like."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.categories.sources import ProductData, TaxonomyFile, UnknownPaths
from diptych.cli.console import next_step, progress, say, show
from diptych.cli.sources import Images, ReaderName, ReaderOptions, parse_values
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.data.taxonomy import Taxonomy


def tree(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|DATA", help="A taxonomy's file, or a dataset of products.", show_default=False
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write the tree as JSON to this file.", show_default=False),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(help="The file's format, where it is not recognised.", show_default=False),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", help="KEY=VALUE for the format, e.g. orphans=root. Repeatable.", show_default=False
        ),
    ] = None,
    images: Images = None,
    reader: ReaderName = None,
    reader_option: ReaderOptions = None,
    taxonomy: TaxonomyFile = None,
    unknown_paths: UnknownPaths = "error",
) -> None:
    """Describe a category tree: levels and widths, names that stand in several places, products per category.

    A file of categories is Google's or Shopify's, a path per line, or a table of ids and parents; what had to be mended
    in it is listed. Of a dataset of products it is the tree that they are sorted into.

    Examples:

      [bold]diptych categories tree taxonomy-with-ids.en-US.txt[/bold]

      [bold]diptych categories tree categories.csv --option orphans=root --out tree.json[/bold]

      [bold]diptych categories tree shop --taxonomy categories.txt --out tree.json[/bold]
    """
    from diptych.commerce.catalogue.catalogue import products_per_category
    from diptych.commerce.catalogue.source import product_tables
    from diptych.core.files import write_json
    from diptych.data.taxonomy import recognised_format
    from diptych.data.taxonomy.tree import shape_of

    about_products = bool(reader or reader_option or taxonomy or images)
    if about_products and (format or option):
        raise UsageError(
            "--format and --option are of a taxonomy's file, the other options of products", "give one kind"
        )
    with progress():
        if not about_products and (
            format or option or (not _is_products(source) and recognised_format(source))
        ):
            made, catalogue = _taxonomy(source, format, option), None
            categories, notes = made.tree, made.notes
            about: dict[str, Any] = {"name": made.name, "version": made.version, "language": made.language}
            say(made.describe())
        else:
            given = ProductData(
                source, images, reader, reader_option, taxonomy, unknown_paths=unknown_paths, split_by="given"
            )
            catalogue, _ = given.read()  # a tree needs no test products
            categories, notes = catalogue.tree, catalogue.notes
            about = {"name": catalogue.name, "products": len(catalogue)}
            say(catalogue.describe())
        shape = shape_of(categories)
        itself, below = ((), ()) if catalogue is None else products_per_category(catalogue)
        counts = {} if catalogue is None else {"products": itself, "products_with_those_below": below}
    show(*shape.tables())
    if shape.only_children:
        say(f"{shape.only_children:,} categories have no siblings: their level sorts nothing")
    for note in notes:
        say(f"note: {note}")
    if catalogue is not None:
        tables, about_sizes = product_tables(catalogue)
        show(*tables)
        for note in about_sizes:
            say(note)
    if out is not None:
        nodes = [
            {
                "path": list(path),
                **({"id": categories.codes[path]} if path in categories.codes else {}),
                **{what: int(values[node]) for what, values in counts.items()},
            }
            for node, path in enumerate(categories.paths)
        ]
        written = {**about, "fingerprint": categories.fingerprint, "notes": list(notes)}
        shown = asdict(shape) | {"shared": {name: len(found) for name, found in shape.shared}}
        write_json(out, {**written, "shape": shown, "categories": nodes})
        say(f"written to {out}")
    if catalogue is None:
        next_step(["diptych", "categories", "train", "DATA", "--taxonomy", source, "--out", "runs/shop"])
    else:
        next_step(["diptych", "categories", "train", str(source), "--out", "runs/shop"])


def _is_products(source: Path) -> bool:
    """Whether a reader of a format of its own knows it: a feed has paths as well, and is no list of them."""
    from diptych.data.readers import READERS

    return source.is_dir() or (
        source.exists() and any(one.general == 0 and one.recognises(source) for one in READERS)
    )


def _taxonomy(source: Path, format: str | None, option: list[str] | None) -> Taxonomy:
    from diptych.data.taxonomy import read_taxonomy

    return read_taxonomy(source, format, **parse_values(option, "--option"))
