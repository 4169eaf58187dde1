"""The data options of ``diptych categories``, and the catalogue that they mean."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from pydantic import field_validator

from diptych.cli.sources import DataSource, OutOption, TargetOption, encoder_source, parse_values
from diptych.commerce.catalogue.source import CatalogueSource, training_part, used_part
from diptych.commerce.category_to_image.application import other_products, own_products
from diptych.commerce.category_to_image.features import FeatureMaker, learning_texts
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.core.errors import UsageError
from diptych.core.options import Options, parameter

if TYPE_CHECKING:
    from diptych.commerce.catalogue import Catalogue
    from diptych.commerce.category_to_image.runs import CategoryRun

TAXONOMIES = "diptych.data.taxonomy:TAXONOMIES"
SETTINGS = "diptych.commerce.catalogue:SETTINGS"
_RUN = "A folder that diptych categories train wrote."
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help=_RUN, show_default=False)]


class SortedData(DataSource):
    """How products and the tree that they are sorted into are read."""

    data: Path | None = parameter(
        None, "Other products than those the run was trained on.", argument=True, metavar="DATA"
    )
    taxonomy: Path | None = parameter(None, "The category tree, where it is another file.")
    taxonomy_format: str | None = parameter(None, "Its format, where it is not recognised.", names=TAXONOMIES)
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


class OtherData(SortedData):
    """Which products a run is used on; without ``data`` those that it was trained on."""

    @field_validator("data", "images", "taxonomy")
    @classmethod
    def _whole(cls, path: Path | None) -> Path | None:
        return path and path.resolve()

    def catalogue(
        self, run: CategoryRun, split: str | None = None, own_tree: bool = True
    ) -> tuple[Catalogue, dict[str, Any]]:
        """Read the products of a split; return also how they were read."""
        if self.data is not None:
            catalogue, source = other_products(run, self.source(), own_tree=own_tree)
            return used_part(catalogue, split), source
        if self != OtherData(unknown=self.unknown):
            fix = "name the products after the run, or leave them out"
            raise UsageError("options of data, but no data", fix)
        return used_part(own_products(run), split), dict(run.about["data"])


class PartOptions(OutOption):
    """Which of the products, and where results are written."""

    split: str | None = parameter(None, "Only the products of this split, e.g. test.")


class EncoderSpec(Options):
    """The frozen encoders that make rows of images and texts."""

    image_encoder: str = parameter("grid", "grid (no weights), backbone:NAME, hf:NAME, …, or none.")
    image_option: list[str] = parameter([], "KEY=VALUE for it, e.g. weights=FILE. Repeatable.")
    text_encoder: str = parameter("lsa", "lsa (learned here), sentence:NAME, hf:NAME, …")

    @property
    def given(self) -> list[tuple[str, str]]:
        """The options as a command repeats them."""
        options = [("image option", one) for one in self.image_option]
        return [("image", self.image_encoder), ("text", self.text_encoder), *options]

    def maker(self, catalogue: Catalogue, modalities: tuple[str, ...] = ("image",)) -> FeatureMaker:
        """Return what makes features; what learns from texts learns from the training products."""
        is_learned = self.text_encoder.partition(":")[0] == "lsa"
        values = parse_values(self.image_option, "--image-option")
        for key, value in values.items():  # files by their whole path, so that they are found from anywhere
            if isinstance(value, str) and Path(value).expanduser().is_file():
                values[key] = str(Path(value).expanduser().resolve())
        seen = "image" in modalities and self.image_encoder != "none"
        return FeatureMaker.of(
            encoder_source(self.image_encoder) if seen else None,
            encoder_source(self.text_encoder),
            learn_from=learning_texts(training_part(catalogue)[0]) if is_learned else (),
            image_options=values or None,
        )


class HeadOptions(TargetOption):
    """How heads over frozen encoders are trained."""

    out: Path = parameter(..., "Where to write; resumed if unfinished.", "--out", "-o")
    query: Literal["name", "path"] = parameter("name", "A category's text: name or whole path.")
    published: bool = parameter(False, "As in the thesis: τ = 1, no dropout, …")
    set_: list[str] = parameter([], "KEY=VALUE of training, e.g. epochs=10. Repeatable.", "--set")

    def training(self, base: Mapping[str, Any], seed: str) -> TrainOptions:
        """Return the options of training over ``base``; ``seed`` is the option that seeds come from."""
        values = parse_values(self.set_, "--set")
        named = {"modalities": "--model", "setting": "--setting", "query": "--query", "seed": seed}
        for key in values.keys() & named.keys():
            raise UsageError(f"--set {key}", f"say it with {named[key]}")
        return TrainOptions.read({**base, **values}, "options of the training")
