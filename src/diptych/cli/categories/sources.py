"""From the data options of ``diptych categories`` to a catalogue, and back from what a run says of its data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.sources import parse_values
from diptych.core.errors import StorageError, UsageError

if TYPE_CHECKING:
    from diptych.commerce.catalogue import Catalogue

ProductsData = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Products: a folder or file that a reader knows (diptych scenes --products, XMarket, a feed, …).",
        show_default=False,
    ),
]
TaxonomyFile = Annotated[
    Path | None,
    typer.Option("--taxonomy", help="The category tree, where it is a file of its own.", show_default=False),
]
TaxonomyFormatName = Annotated[
    str | None,
    typer.Option("--taxonomy-format", help="Its format, where it is not recognised.", show_default=False),
]
UnknownPaths = Annotated[
    str,
    typer.Option(
        "--unknown-paths", help="Products in categories that --taxonomy does not have: error, add or none."
    ),
]
AttributeForm = Annotated[
    str, typer.Option("--attribute-form", help="An attribute's text: named (colour: red) or values (red).")
]
SplitBy = Annotated[
    str | None,
    typer.Option(
        "--split-by",
        help="given, product, or category (some categories are only tested); as the data says where it has a test "
        "split, else by product.",
        show_default=False,
    ),
]
SplitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--split-option",
        help="KEY=VALUE for --split-by, e.g. seed=1, held_out=0.3, shares.test=0.2. Repeatable.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class CatalogueSource:
    """What was read and how: enough to read it again; JSON-able by :meth:`to_dict`.

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

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)

    @classmethod
    def from_dict(cls, said: Any) -> CatalogueSource:
        """The inverse of :meth:`to_dict`."""
        try:
            return cls(**said)
        except TypeError as error:
            raise StorageError(f"data is not described as expected: {error}", "make it again") from None

    def catalogue(self) -> Catalogue:
        """Read it."""
        from diptych.commerce.catalogue.making import catalogue_of
        from diptych.commerce.catalogue.splits import assign_splits
        from diptych.data import read_collection

        if not self.reader and not Path(self.data).exists():
            raise UsageError(f"{self.data} does not exist", "check the path")
        collection = read_collection(self.data, self.reader, **self.options)
        tree = None
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


def catalogue_from(
    data: Path | str,
    *,
    images: Path | None = None,
    reader: str | None = None,
    reader_option: list[str] | None = None,
    taxonomy: Path | None = None,
    taxonomy_format: str | None = None,
    unknown: str = "error",
    attribute_form: str = "named",
    split_by: str | None = None,
    split_option: list[str] | None = None,
) -> tuple[Catalogue, CatalogueSource]:
    """The products that the options of a command mean, and how to read them again from anywhere."""
    options = parse_values(reader_option, "--reader-option")
    if images is not None:
        options["images"] = str(images.resolve())
    path = Path(data)
    source = CatalogueSource(
        data=str(path.resolve()) if path.exists() else str(data),
        reader=reader,
        options=options,
        taxonomy=None if taxonomy is None else str(taxonomy.resolve()),
        taxonomy_format=taxonomy_format,
        unknown=unknown,
        attribute_form=attribute_form,
        split_by=split_by,
        split_options=_nested(parse_values(split_option, "--split-option")),
    )
    return source.catalogue(), source


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """``shares.test=0.2`` beside others of ``shares`` becomes one table of shares."""
    made: dict[str, Any] = {}
    for key, value in values.items():
        name, point, part = key.partition(".")
        if point:
            made.setdefault(name, {})[part] = value
        else:
            made[name] = value
    return made


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
