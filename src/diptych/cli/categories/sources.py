"""From the data options of ``diptych categories`` to a catalogue, and back from what a run says of its data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.sources import parse_values
from diptych.core.artifact import decode
from diptych.core.errors import StorageError, UnknownNameError, UsageError

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_array

    from diptych.commerce.catalogue import Catalogue
    from diptych.commerce.category_to_image.rankers import Ranker
    from diptych.commerce.category_to_image.runs import CategoryRun
    from diptych.data.collection import Collection

ProductsData = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Products: a folder or file that a reader knows (diptych data products, XMarket, a feed, …).",
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

    def catalogue(self) -> Catalogue:
        """Read it."""
        from diptych.commerce.catalogue.making import assign_splits, catalogue_of
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


def described(kind: type, said: Any, folder: Path) -> Any:
    """Return how the products of a folder were read, as it says."""
    try:
        return decode(kind, said, {})
    except (TypeError, ValueError) as error:
        raise StorageError(f"{folder} does not say how its data is read: {error}", "make it again") from None


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


RunFolder = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="A folder that diptych categories train wrote.", show_default=False),
]
OtherProducts = Annotated[
    Path | None,
    typer.Argument(
        metavar="DATA", help="Other products than those the run was trained on.", show_default=False
    ),
]
SplitName = Annotated[
    str | None,
    typer.Option(
        "--split", help="Only the products of this split, e.g. test; all by default.", show_default=False
    ),
]

_HELD = 100_000
"""Of more products rows go to a file while they are used."""


@dataclass(frozen=True)
class OtherData:
    """The data options of a verb that uses a run.

    Attributes:
        data: the products; None for those the run was trained on.
        images: their folder of pictures.
        reader: their format.
        reader_option: of the reader.
        taxonomy: a file with the category tree.
        taxonomy_format: its format.
        unknown: what becomes of paths that the tree does not have.
    """

    data: Path | None = None
    images: Path | None = None
    reader: str | None = None
    reader_option: list[str] | None = None
    taxonomy: Path | None = None
    taxonomy_format: str | None = None
    unknown: str = "error"

    def __post_init__(self) -> None:
        for name in ("data", "images", "taxonomy"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, getattr(self, name).resolve())

    def catalogue(self, run: CategoryRun, *, own_tree: bool) -> tuple[Catalogue, dict[str, Any]]:
        """The products, and how they were read."""
        if self.data is None:
            if self != OtherData(unknown=self.unknown):
                raise UsageError(
                    "options of data, but no data", "name the products after the run, or leave them out"
                )
            return own_products(run), dict(run.about["data"])
        if self.taxonomy is not None or (own_tree and self._sorted()):
            catalogue, source = catalogue_from(
                self.data,
                images=self.images,
                reader=self.reader,
                reader_option=self.reader_option,
                taxonomy=self.taxonomy,
                taxonomy_format=self.taxonomy_format,
                unknown=self.unknown,
                attribute_form=_attribute_form(run),
                split_by="given",
            )
            return catalogue, asdict(source)
        from diptych.commerce.catalogue.making import catalogue_of

        catalogue = catalogue_of(
            self._collection(),
            tree=run.tree,
            attribute_form=_attribute_form(run),  # type: ignore[arg-type]
            unknown="none",
        )
        return catalogue, {"data": str(self.data.resolve()), "reader": self.reader, "tree": "the run's"}

    def _collection(self) -> Collection:
        from diptych.data import read_collection

        options = parse_values(self.reader_option, "--reader-option")
        if self.images is not None:
            options["images"] = str(self.images.resolve())
        if not self.reader and not Path(str(self.data)).exists():
            raise UsageError(f"{self.data} does not exist", "check the path")
        return read_collection(str(self.data), self.reader, **options)

    def _sorted(self) -> bool:
        """Whether any product has a category of its own."""
        from diptych.data.products import paths_of

        return any(paths_of(record) for record in self._collection().records or ())


def own_products(run: CategoryRun) -> Catalogue:
    """The products that a run was trained on, with the splits that they had; later ones are of the split ``new``."""
    catalogue: Catalogue = described(CatalogueSource, run.about["data"], run.folder).catalogue()
    splits = run.splits
    return replace(catalogue, splits=[splits.get(name, "new") for name in catalogue.ids])


def _attribute_form(run: CategoryRun) -> str:
    return str(run.about["data"].get("attribute_form", "named"))


def used_part(catalogue: Catalogue, split: str | None) -> Catalogue:
    """The products of one split, or all."""
    if split is None or split == "all":
        return catalogue
    if split not in catalogue.split_sizes:
        raise UnknownNameError(f"split of {catalogue.name}", split, catalogue.split_sizes)
    return catalogue.split(split)


def trained_on(run: CategoryRun, catalogue: Catalogue, *, own: bool) -> int:
    """How many of the products, by their ids, the run was trained on; of its ``own`` those with a category alone."""
    splits = run.splits
    return sum(
        splits.get(name) == "train" and not (own and place < 0)
        for name, place in zip(catalogue.ids, catalogue.place.tolist(), strict=True)
    )


def known_to(run: CategoryRun, catalogue: Catalogue) -> np.ndarray:
    """(n,) booleans: which products have any of what the run's model reads."""
    features, read = run.features(catalogue), run.options.modalities
    has = {
        "image": features.pictured,
        "title": features.titled,
        "attributes": features.attribute_start[1:] > features.attribute_start[:-1],
    }
    known: np.ndarray = has[read[0]].copy()
    for modality in read[1:]:
        known |= has[modality]
    return known


@contextmanager
def rows_for(
    run: CategoryRun, ranker: Ranker, catalogue: Catalogue, beside: Path
) -> Iterator[np.ndarray | csr_array]:
    """Rows of products by a ranker; of very many in a file beside ``beside``, which goes when they were used."""
    import tempfile

    from diptych.commerce.category_to_image.rankers import product_embeddings, product_rows

    features = run.features(catalogue)
    if len(catalogue) <= _HELD:
        yield product_rows(ranker, features)
        return
    about: dict[str, Any] = {}
    beside.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".rows-", dir=beside.parent) as folder:
        yield product_embeddings(
            ranker, features, Path(folder) / "rows", data=catalogue.fingerprint, about=about
        ).rows
