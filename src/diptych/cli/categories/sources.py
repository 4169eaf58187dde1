"""The data options of ``diptych categories``, and the catalogue that they mean."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from diptych.cli.sources import Images, ReaderName, ReaderOptions, encoder_source, parse_values
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.commerce.catalogue import Catalogue
    from diptych.commerce.catalogue.source import CatalogueSource
    from diptych.commerce.category_to_image.features import FeatureMaker
    from diptych.commerce.category_to_image.options import TrainOptions
    from diptych.commerce.category_to_image.runs import CategoryRun
    from diptych.data.collection import Collection


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command, for each parameter that is a dataclass, the options that the dataclass declares."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, type[Any]] = {
        name: one.annotation
        for name, one in signature.parameters.items()
        if isinstance(one.annotation, type) and is_dataclass(one.annotation)
    }
    flat = []
    for name, one in signature.parameters.items():
        if name not in groups:
            flat.append(one)
            continue
        hints = get_type_hints(groups[name], include_extras=True)
        for field in fields(groups[name]):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            flat.append(one.replace(name=field.name, default=default, annotation=hints[field.name]))

    @wraps(command)
    def call(**given: Any) -> None:
        for name, kind in groups.items():
            own = {field.name: given.pop(field.name) for field in fields(kind)}
            given[name] = kind(**own)
        command(**given)

    keyword_only = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in flat]
    call.__signature__ = signature.replace(parameters=keyword_only)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in flat}
    return call


TaxonomyFile = Annotated[
    Path | None,
    typer.Option("--taxonomy", help="The category tree, where it is a file of its own.", show_default=False),
]
TaxonomyFormat = Annotated[
    str | None,
    typer.Option("--taxonomy-format", help="Its format, where it is not recognised.", show_default=False),
]
UnknownPaths = Annotated[
    str,
    typer.Option(
        "--unknown-paths", help="Products in categories that --taxonomy does not have: error, add or none."
    ),
]
RunFolder = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="A folder that diptych categories train wrote.", show_default=False),
]
SplitName = Annotated[
    str | None,
    typer.Option(
        "--split", help="Only the products of this split, e.g. test; all by default.", show_default=False
    ),
]


@dataclass(frozen=True)
class ProductData:
    """The data options of a verb that trains."""

    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="Products: a folder or file that a reader knows (diptych data products, XMarket, a feed, …).",
            show_default=False,
        ),
    ]
    images: Images = None
    reader: ReaderName = None
    reader_option: ReaderOptions = None
    taxonomy: TaxonomyFile = None
    taxonomy_format: TaxonomyFormat = None
    unknown_paths: UnknownPaths = "error"
    attribute_form: Annotated[
        str,
        typer.Option("--attribute-form", help="An attribute's text: named (colour: red) or values (red)."),
    ] = "named"
    split_by: Annotated[
        str | None,
        typer.Option(
            "--split-by",
            help="given, product, or category (some categories are only tested); as the data says where it has a test "
            "split, else by product.",
            show_default=False,
        ),
    ] = None
    split_option: Annotated[
        list[str] | None,
        typer.Option(
            "--split-option",
            help="KEY=VALUE for --split-by, e.g. seed=1, held_out=0.3, shares.test=0.2. Repeatable.",
            show_default=False,
        ),
    ] = None

    def read(self) -> tuple[Catalogue, CatalogueSource]:
        """Read the products; gives also how to read them again from anywhere."""
        from diptych.commerce.catalogue.source import CatalogueSource

        source = CatalogueSource(
            data=str(self.data.resolve()) if self.data.exists() else str(self.data),
            reader=self.reader,
            options=_reader_options(self.reader_option, self.images),
            taxonomy=None if self.taxonomy is None else str(self.taxonomy.resolve()),
            taxonomy_format=self.taxonomy_format,
            unknown=self.unknown_paths,
            attribute_form=self.attribute_form,
            split_by=self.split_by,
            split_options=_nested(parse_values(self.split_option, "--split-option")),
        )
        return source.catalogue(), source


def _reader_options(given: list[str] | None, images: Path | None) -> dict[str, Any]:
    options = parse_values(given, "--reader-option")
    return options if images is None else {**options, "images": str(images.resolve())}


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


@dataclass(frozen=True)
class OtherData:
    """The data options of a verb that uses a run; without ``data`` they are of the products it was trained on."""

    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA", help="Other products than those the run was trained on.", show_default=False
        ),
    ] = None
    images: Images = None
    reader: ReaderName = None
    reader_option: ReaderOptions = None
    taxonomy: TaxonomyFile = None
    taxonomy_format: TaxonomyFormat = None
    unknown: UnknownPaths = "error"

    def __post_init__(self) -> None:
        for name in ("data", "images", "taxonomy"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, getattr(self, name).resolve())

    def catalogue(self, run: CategoryRun, *, own_tree: bool) -> tuple[Catalogue, dict[str, Any]]:
        """Read the products; gives also how they were read."""
        from diptych.commerce.category_to_image.application import own_products

        if self.data is None:
            if self != OtherData(unknown=self.unknown):
                raise UsageError(
                    "options of data, but no data", "name the products after the run, or leave them out"
                )
            return own_products(run), dict(run.about["data"])
        form = str(run.about["data"].get("attribute_form", "named"))
        if self.taxonomy is not None or (own_tree and self._sorted()):
            values = {field.name: getattr(self, field.name) for field in fields(self)}
            values["unknown_paths"] = values.pop("unknown")
            catalogue, source = ProductData(**values, attribute_form=form, split_by="given").read()
            return catalogue, asdict(source)
        from diptych.commerce.catalogue.making import catalogue_of

        catalogue = catalogue_of(self._collection(), tree=run.tree, attribute_form=form, unknown="none")  # type: ignore[arg-type]
        return catalogue, {"data": str(self.data), "reader": self.reader, "tree": "the run's"}

    def _collection(self) -> Collection:
        from diptych.data import read_collection

        options = _reader_options(self.reader_option, self.images)
        if not self.reader and not Path(str(self.data)).exists():
            raise UsageError(f"{self.data} does not exist", "check the path")
        return read_collection(str(self.data), self.reader, **options)

    def _sorted(self) -> bool:
        """Return whether any product has a category of its own."""
        from diptych.data.products import paths_of

        return any(paths_of(record) for record in self._collection().records or ())


@dataclass(frozen=True)
class Encoders:
    """The frozen encoders that make rows of images and texts."""

    image_encoder: Annotated[
        str,
        typer.Option(
            help="grid (colours and edges, no weights), backbone:NAME of timm, an encoder such as hf:NAME; none."
        ),
    ] = "grid"
    image_option: Annotated[
        list[str] | None,
        typer.Option(help="KEY=VALUE for the image encoder, e.g. weights=FILE, size=96.", show_default=False),
    ] = None
    text_encoder: Annotated[
        str,
        typer.Option(
            help="lsa (learned from the training products), sentence:NAME, or an encoder such as hf:NAME."
        ),
    ] = "lsa"

    @property
    def given(self) -> list[tuple[str, str]]:
        """The options as a command repeats them."""
        options = [("image option", one) for one in self.image_option or ()]
        return [("image", self.image_encoder), ("text", self.text_encoder), *options]

    def maker(self, catalogue: Catalogue, modalities: tuple[str, ...] = ("image",)) -> FeatureMaker:
        """Return what makes features; what learns from texts learns from the training products."""
        from diptych.commerce.catalogue.source import training_part
        from diptych.commerce.category_to_image.features import FeatureMaker, learning_texts

        is_learned = self.text_encoder.partition(":")[0] == "lsa"
        values = parse_values(self.image_option, "--image-option")
        for key, value in values.items():  # files by their whole path, so that they are found from anywhere
            if isinstance(value, str) and Path(value).expanduser().is_file():
                values[key] = str(Path(value).expanduser().resolve())
        return FeatureMaker.of(
            encoder_source(self.image_encoder)
            if "image" in modalities and self.image_encoder != "none"
            else None,
            encoder_source(self.text_encoder),
            learn_from=learning_texts(training_part(catalogue)[0]) if is_learned else (),
            image_options=values or None,
        )


def training_options(
    given: list[str] | None, named: Mapping[str, str], base: Mapping[str, Any] | None = None
) -> TrainOptions:
    """Return the options of training that ``--set`` and the verb's own options give."""
    from diptych.commerce.category_to_image.options import TrainOptions

    values = parse_values(given, "--set")
    for key in values:
        if key in named:
            raise UsageError(f"--set {key}", f"say it with {named[key]}")
    return TrainOptions.read({**(base or {}), **values}, "options of the training")
