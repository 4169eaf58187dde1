"""``diptych data scenes``, ``products``, ``shop-log`` and ``shortcuts``: generated data whose every fact is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from pydantic import model_validator

from diptych.analysis.shortcuts import ShortcutOptions
from diptych.cli.console import next_step, show
from diptych.cli.sources import DataSpec, OutOption, least_and_most
from diptych.core.errors import UsageError
from diptych.core.options import parameter
from diptych.core.table import Table

if TYPE_CHECKING:
    from diptych.analysis.shortcuts import Shortcuts
    from diptych.data.collection import Collection
    from diptych.report.document import Card

_WIDTH, _NARROWEST = 1000, 200  # pixels: of a sheet, about, and of an image that is enlarged
_FEW_SCENES = {"n_train": 40, "n_val": 10, "n_test": 10}


class GeneratedData(OutOption):
    """What all generators take."""

    seed: int = parameter(0, "The same seed gives the same bytes.")


class GeneratedImages(GeneratedData):
    """What generators of images take."""

    size: int = parameter(64, "Side of an image, in pixels.")
    workers: int | None = parameter(None, "Processes; as many as there are CPUs.")


class SceneOptions(GeneratedImages):
    """What generated scenes are like."""

    train: int = parameter(4000, "Images to train on.")
    val: int = parameter(300, "Images to validate on.")
    test: int = parameter(500, "Images to test on.")
    captions: int = parameter(5, "Captions per image.", "--captions", "-k")
    objects: str = parameter("2-4", "Objects per image, e.g. 1 or 1-3.")


class ProductOptions(GeneratedImages):
    """What generated products are like; shares are between 0 and 1."""

    n: int = parameter(2000, "Products.")
    levels: str = parameter("2-9", "Levels of a category path, e.g. 3 or 2-5.")
    without_picture: float = parameter(0.0, "Share of products without an image.")
    without_title: float = parameter(0.0, "Share of products without a title.")
    without_attributes: float = parameter(0.0, "Share of products without attributes.")
    without_category: float = parameter(0.0, "Share of products without a category.")
    in_two_places: float = parameter(0.0, "Share of products in two categories.")
    skew: float = parameter(0.0, "Share of products in one category, e.g. 0.5.")
    dirt: float = parameter(0.0, "Share of products with HTML in their texts.")


class ShopLogOptions(GeneratedData):
    """What a generated log is like."""

    visitors: int = parameter(2000, "Each has about 15 events in 28 days.")
    days: int = parameter(28, "From 1 October 2019 on.")
    dirt: float = parameter(0.0, "Share of the log that is spoilt in each of several ways.")
    format: Literal["csv", "parquet"] = parameter("csv", "Of its files.")


def scenes(options: SceneOptions) -> None:
    """Generate images of coloured objects with captions whose every fact is known.

    Without --out they go to the cache and are generated once. One object per image makes an object-centric
    collection.

    Examples:
        diptych data scenes --train 3000 --out scenes
        diptych data scenes --objects 1 --out objects
    """
    from diptych.data.scenes import make_scenes, read_scenes

    sizes = {"n_train": options.train, "n_val": options.val, "n_test": options.test, "k": options.captions}
    objects = least_and_most(options.objects, "--objects", "objects")
    same = options.model_dump(include={"seed", "size", "workers"})
    folder = make_scenes(options.out, objects=objects, **sizes, **same)
    show(read_scenes(folder).describe(), f"in {folder}")
    next_step(["diptych", "train", "scenes", "--data", folder])


def products(options: ProductOptions) -> None:
    """Generate a shop's products: image, title, attributes and category path, for diptych categories.

    What is planted in them, and how often the best possible observer could know a category, stands in truth.json.

    Examples:
        diptych data products --out shop
        diptych data products --n 500 --levels 2-4 --without-category 0.1 --out shop
    """
    from diptych.core.reading import read_json
    from diptych.data.scenes import make_product_scenes, read_product_scenes
    from diptych.data.scenes.products import TRUTH

    given = options.model_dump(exclude={"out", "n"})
    given["levels"] = least_and_most(options.levels, "--levels", "levels")
    folder = make_product_scenes(options.out, options.n, **given)
    truth = read_json(folder / TRUTH)
    counts, tree, accuracy = truth["counts"], truth["tree"], truth["ideal"]["accuracy"]
    at = {(row["model"], row["level"]): f"{row['share']:.1%}" for row in accuracy}
    models = {row["model"]: " + ".join(row["modalities"]) for row in accuracy}
    rows = [(seen, at[model, 1], at[model, "most-specific"]) for model, seen in models.items()]
    title = "how often the best possible observer would know a product's category"
    show(
        read_product_scenes(folder).describe(),
        f"{counts['categories with products']:,} of {tree['categories']:,} categories have products, "
        f"{counts['mean level']:.1f} levels in the mean; "
        f"{tree['categories that share a name']:,} share a name with another",
        Table.of(title, "", ("from its", "most general", "most specific"), rows),
        f"in {folder}; what is planted and what is true of it: {folder / TRUTH}",
    )
    name = "shop" if options.out is None else folder.name  # in the cache its name is a fingerprint
    next_step(["diptych", "categories", "train", folder, "--out", f"runs/{name}"])


def shop_log(options: ShopLogOptions) -> None:
    """Generate a shop's log of visits, for diptych intent; what is planted in it stands in truth.json.

    Examples:
        diptych data shop-log --visitors 5000 --out visits
    """
    from diptych.core.reading import read_json
    from diptych.data.scenes.shop_log import TRUTH, make_shop_log

    folder = make_shop_log(options.out, **options.model_dump(exclude={"out"}))
    truth = read_json(folder / TRUTH)
    bought, anonymous = (
        f"{truth[what] / truth['sessions']:.1%}" for what in ("purchase sessions", "anonymous sessions")
    )
    spoilt = [(rule, f"{rows:,}") for rule, rows in truth["dirt"].items() if rows]
    show(
        f"a log of {truth['events']:,} events in {truth['sessions']:,} sessions, "
        f"{bought} with a purchase, {anonymous} anonymous",
        *([Table.of("rows that are no events", "", ("rule", "rows"), spoilt)] if spoilt else []),
        f"in {folder}; what is planted and what is true of it: {folder / TRUTH}",
    )
    next_step(["diptych", "intent", "ingest", folder, "--out", "log"])


class SheetOptions(ShortcutOptions, DataSpec):
    """Which shortcuts are shown, on which images."""

    data: Path | None = parameter(None, "A dataset: folder or file.", argument=True, metavar="DATA")
    scenes: bool = parameter(False, "A few generated scenes instead.")
    seed: int = parameter(0, "Of everything that is drawn.", ge=0)
    size: int = parameter(224, "Side of the image that a tower receives.", ge=8)
    split: str = parameter("train", "The part of the data to show.")
    epoch: int | None = parameter(
        None, "Show numbers as this epoch of training has them, not as evaluation.", ge=1
    )
    pictures: int = parameter(4, "How many images to show.", "--pictures", "-n", ge=1)
    out: Path = parameter(Path("shortcuts.png"), "The PNG to write.", "--out", "-o")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.scenes == (self.data is not None):
            raise UsageError("one source of images is needed", "give a dataset, or --scenes")
        return self


def shortcuts(options: SheetOptions) -> None:
    """Show a few images and captions with synthetic shortcuts: numbers as digits on both.

    Setups: unique numbers on images and captions, on captions or images alone, bits drawn at every access, a number
    per caption, or none.

    Examples:
        diptych data shortcuts flickr8k --digits mnist.npz --out sheet.png
        diptych data shortcuts --scenes --setup bits --bits 8 --epoch 1
    """
    from diptych.analysis.shortcuts import Shortcuts
    from diptych.report.document import Gallery
    from diptych.report.sheets import write_sheet
    from diptych.training.recipe import collection_of
    from diptych.training.sections import Data

    size, chosen = options.size, options.model_dump(include=set(ShortcutOptions.model_fields))
    section = {"scenes": _FEW_SCENES} if options.scenes else options.section(None)
    whole = collection_of(Data.model_validate(section))
    made = Shortcuts.of(ShortcutOptions(**chosen), whole, Data().train, options.seed)
    made.check_fit(size, size)
    cards = _cards(made, whole.split(options.split), options)
    title, columns = f"{whole.name}, {options.split}; {made.line()}", max(1, _WIDTH // max(size, _NARROWEST))
    write_sheet(options.out, title, [Gallery("", cards)], columns, _NARROWEST, exact=True)
    show(*(f"{card.name}: {card.text.splitlines()[0] if card.text else 'no captions'}" for card in cards))
    show(made.line(), f"drawn in {options.out}")
    words = [] if options.data is None else ["--data", options.data]
    for key, field in ShortcutOptions.model_fields.items():
        value = chosen[key]
        if key == "setup" or value != field.default:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            words += ["--set", f"shortcuts.{key}={text}"]
    next_step(["diptych", "train", "RECIPE", *words])


def _cards(made: Shortcuts, part: Collection, options: SheetOptions) -> list[Card]:
    """Return images from all over ``part``, prepared, with the shortcuts of an epoch or of evaluation."""
    import numpy as np
    from PIL import Image

    from diptych.analysis.shortcuts import with_ending
    from diptych.data.batches import Batch
    from diptych.data.images import pasted, split_overlay
    from diptych.encoders.preprocessing import Preprocessing
    from diptych.report.document import Card

    part = part.subset(
        np.linspace(0, part.n_images - 1, min(options.pictures, part.n_images)).astype(np.int64)
    )
    shown = made.injected(part)
    overlays = [split_overlay(shown.item(row))[1] for row in range(part.n_images)]
    captions = list(shown.captions)
    if (epoch := options.epoch) is not None:
        batch = Batch(np.arange(part.n_images), np.arange(part.n_captions), part.caption_image)
        given = made.training(part, batch, epoch - 1)  # which counts from 0
        overlays = given.overlays
        captions = [with_ending(*pair) for pair in zip(part.captions, given.endings, strict=True)]
    size = options.size  # the usual share of the shorter side: 224 of 256 pixels
    preprocessing = Preprocessing(size=size, resize=max(size, size * 8 // 7))
    most = None if made.options.setup == "per-caption" else 1
    cards = []
    for row, overlay in enumerate(overlays):
        pixels = preprocessing.central(part.image(row))
        picture = Image.fromarray(pixels if overlay is None else pasted(pixels, overlay))
        first, stop = part.caption_start[row : row + 2]
        name = part.image_ids[row]
        cards.append(Card(name, picture, "\n".join(captions[first:stop][:most]), name))
    return cards
