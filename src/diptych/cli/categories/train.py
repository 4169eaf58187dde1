"""``diptych categories train``: heads over frozen encoders, for one catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.categories.sources import (
    AttributeForm,
    CatalogueSource,
    ProductsData,
    SplitBy,
    SplitOption,
    TaxonomyFile,
    TaxonomyFormatName,
    UnknownPaths,
    catalogue_from,
    validation_part,
)
from diptych.cli.console import next_step, print_table, progress, say, stop_on_signal
from diptych.cli.sources import Images, ReaderName, ReaderOptions, encoder_source, parse_values
from diptych.core.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from diptych.commerce.catalogue import Catalogue
    from diptych.commerce.category_to_image.features import FeatureMaker, ProductFeatures
    from diptych.commerce.category_to_image.options import TrainOptions
    from diptych.commerce.category_to_image.runs import CategoryRun
    from diptych.evaluation.result import Result


def image_options(given: list[str] | None) -> dict[str, Any] | None:
    """The image encoder's options; files by their whole path, so that they are found from anywhere."""
    values = parse_values(given, "--image-option")
    for key, value in values.items():
        if isinstance(value, str) and Path(value).expanduser().is_file():
            values[key] = str(Path(value).expanduser().resolve())
    return values or None


def training_options(
    given: list[str] | None, named: Mapping[str, str], base: Mapping[str, Any] | None = None
) -> TrainOptions:
    """The options of training that ``--set`` and the verb's own options say."""
    from diptych.commerce.category_to_image.options import TrainOptions

    values = parse_values(given, "--set")
    for key in values:
        if key in named:
            raise UsageError(f"--set {key}", f"say it with {named[key]}")
    return TrainOptions.read({**(base or {}), **values}, "options of the training")


def say_data(
    catalogue: Catalogue, source: CatalogueSource, features: ProductFeatures, maker: FeatureMaker
) -> None:
    """The products, their splits, what was missing, and which encoders made the rows."""
    say(catalogue.describe())
    for note in catalogue.notes:
        say(f"  {note}")
    sizes = ", ".join(f"{name} {size:,}" for name, size in catalogue.split_sizes.items())
    how = "" if source.split_by is None else f", by {source.split_by}"
    say(f"splits: {sizes}{how}")
    about = features.about
    unreadable = int(about.get("unreadable_pictures") or 0)
    if unreadable:
        say(f"{unreadable:,} pictures to train on cannot be read: their products stand without")
    image, text = about.get("image"), about["text"]
    say(
        f"text encoder: {_encoder(text)}; image encoder: {_encoder(image) if image else 'none, the model needs none'}"
    )
    if maker.image is not None and maker.image.kind == "grid":
        say(
            "  the grid sees colours and edges alone: better pictures with --image-encoder backbone:NAME or hf:NAME"
        )
    if str(text.get("kind", "")) == "lsa":
        say(
            "  lsa knows the words of the training products alone: better texts with --text-encoder sentence:NAME"
        )


def _encoder(description: dict[str, Any]) -> str:
    """Name and fingerprint of an encoder out of what it says of itself."""
    words = [str(description[key]) for key in ("kind", "model", "source", "name") if description.get(key)]
    return " ".join(dict.fromkeys(words)) + f" ({description.get('fingerprint', 'no fingerprint')})"


def say_training(run: CategoryRun) -> None:
    """What was trained on how much, and which epoch was taken."""
    about = run.model.about
    left = about["without_category"]
    say(
        f"{run.describe()}: trained on {about['products']:,} products"
        + (f", {left:,} without a category left out" if left else "")
    )
    last = about["metrics"][about["best_epoch"] - 1]
    why = f"the best by {about['chosen_by']} of validation products" if about["chosen_by"] else "the last"
    measured = f", {about['chosen_by']} {100 * last[about['chosen_by']]:.2f} %" if about["chosen_by"] else ""
    say(f"epoch {about['best_epoch']} of {about['epochs']}, {why}: loss {last['loss']:.4f}{measured}")


def say_tested(result: Result, options: TrainOptions) -> None:
    """A table of the measures of test products."""
    from diptych.commerce.category_to_image.evaluation.measure import CATEGORY_MEASURES

    names = tuple(name for name in CATEGORY_MEASURES if "hits" not in name)
    rows = [(options.model, *(f"{100 * result.value(name, 't2i'):.2f}" for name in names))]
    print_table(
        f"test products, {options.setting}",
        ("model", *names),
        rows,
        numbers=names,
        caption="per cent; categories ask for products, relevant by label; mAP@k divided by min(k, relevant)",
    )


def train(
    data: ProductsData,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the run.", show_default=False)],
    model: Annotated[
        str, typer.Option(help="clip- and what stands for a product: i(mage), t(itle), a(ttributes).")
    ] = "clip-ita",
    setting: Annotated[
        str, typer.Option(help="The category of a product: most-specific, most-general, or all (one drawn).")
    ] = "most-specific",
    query: Annotated[str, typer.Option(help="A category's text: its name, or its whole path.")] = "name",
    image_encoder: Annotated[
        str,
        typer.Option(
            help="grid (colours and edges, no weights), backbone:NAME of timm, or an encoder such as hf:NAME."
        ),
    ] = "grid",
    image_option: Annotated[
        list[str] | None,
        typer.Option(help="KEY=VALUE for the image encoder, e.g. weights=FILE, size=96.", show_default=False),
    ] = None,
    text_encoder: Annotated[
        str,
        typer.Option(
            help="lsa (learned from the training products), sentence:NAME, or an encoder such as hf:NAME."
        ),
    ] = "lsa",
    published: Annotated[
        bool,
        typer.Option("--published", help="As in the thesis: τ = 1, duplicates as negatives, no dropout."),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of weights, order and draws.")] = 0,
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="KEY=VALUE for the training, e.g. epochs=10, attributes=attention, tree_distance=0.1. Repeatable.",
            show_default=False,
        ),
    ] = None,
    images: Images = None,
    reader: ReaderName = None,
    reader_option: ReaderOptions = None,
    taxonomy: TaxonomyFile = None,
    taxonomy_format: TaxonomyFormatName = None,
    unknown_paths: UnknownPaths = "error",
    attribute_form: AttributeForm = "named",
    split_by: SplitBy = None,
    split_option: SplitOption = None,
) -> None:
    """Train a model that finds products for categories; killed at any moment, the same command goes on.

    Pictures and texts go through frozen encoders once, what is trained are two heads over their rows. Products without
    a category are not trained on; those without a picture, a title or attributes are.

    Examples:

      [bold]diptych categories train shop --out runs/shop[/bold]

      [bold]diptych categories train shop --out runs/i --model clip-i --setting most-general --published[/bold]

      [bold]diptych categories train feed.csv --out runs/feed --text-encoder sentence:NAME --query path[/bold]

      [bold]diptych categories train shop --out runs/near --set tree_distance=0.1 --set attributes=attention[/bold]
    """
    from diptych.commerce.catalogue.catalogue import category_texts
    from diptych.commerce.category_to_image.features import FeatureMaker, learning_texts
    from diptych.commerce.category_to_image.runs import CategoryRun
    from diptych.commerce.category_to_image.training import train as fit
    from diptych.training.run import TrainingFolder

    chosen = _options(model, setting, query, published, seed, options)
    TrainingFolder(out).check({}, beside=(), whole=False)
    with progress(), stop_on_signal():
        catalogue, source = catalogue_from(
            data,
            images=images,
            reader=reader,
            reader_option=reader_option,
            taxonomy=taxonomy,
            taxonomy_format=taxonomy_format,
            unknown=unknown_paths,
            attribute_form=attribute_form,
            split_by=split_by,
            split_option=split_option,
        )
        learned, validated = _train_part(catalogue), validation_part(catalogue)
        maker = FeatureMaker.of(
            encoder_source(image_encoder) if "image" in chosen.modalities else None,
            encoder_source(text_encoder),
            learn_from=learning_texts(learned) if text_encoder.partition(":")[0] == "lsa" else (),
            image_options=image_options(image_option),
        )
        features = maker.products(learned, missing="none")
        nodes = range(len(catalogue.tree))
        categories = maker.categories(category_texts(catalogue.tree, nodes, chosen.query))
        validation = None if validated is None else (validated, maker.products(validated, missing="none"))
        trained = fit(learned, features, categories, chosen, out, validation=validation)
        run = CategoryRun.finish(out, trained, maker, catalogue, asdict(source))
        tested = _tested(run, catalogue)
    say_data(catalogue, source, features, maker)
    say_training(run)
    if tested is not None:
        say_tested(tested, chosen)
    next_step(["diptych", "categories", "pick", str(out), "--out", f"{out}-pictures"])


_NAMED = {"modalities": "--model", "setting": "--setting", "query": "--query", "seed": "--seed"}


def _options(
    model: str, setting: str, query: str, published: bool, seed: int, given: list[str] | None
) -> TrainOptions:
    from diptych.commerce.catalogue.catalogue import SETTINGS
    from diptych.commerce.category_to_image.evaluation.grid import TRAINED, modalities_of
    from diptych.commerce.category_to_image.options import TrainOptions

    modalities = modalities_of(model)
    if modalities is None:
        raise UnknownNameError("trained model", model, TRAINED)
    SETTINGS.get(setting)
    base = TrainOptions.published(modalities, setting) if published else TrainOptions(modalities=modalities)
    said = {"setting": setting, "query": query, "seed": seed}
    return training_options(given, _NAMED, base.model_dump() | said)


def _train_part(catalogue: Catalogue) -> Catalogue:
    """The products to train on: the split called train."""
    if "train" not in catalogue.split_sizes:
        raise UsageError(
            f"{catalogue.name} has no split called train, only {', '.join(catalogue.split_sizes)}",
            "make one with --split-by product",
        )
    return catalogue.split("train")


def _tested(run: CategoryRun, catalogue: Catalogue) -> Result | None:
    """Measures of the test split; None where there is none, or none of it has a category."""
    from diptych.commerce.catalogue.catalogue import judge
    from diptych.commerce.category_to_image.evaluation.measure import measure_ranker

    if "test" not in catalogue.split_sizes:
        return None
    part = catalogue.split("test")
    if not bool((part.place >= 0).any()):
        return None
    judged = judge(part, run.options.setting, "label", run.options.seed)
    about = {"dataset": catalogue.name, "split": "test"}
    return measure_ranker(
        run.model, run.features(part), run.category_features(judged.nodes), judged, about=about
    )
