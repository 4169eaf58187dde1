"""``diptych data scenes``, ``products`` and ``shop-log``: generated data whose every fact is known."""

from __future__ import annotations

from typing import Literal

from diptych.cli.console import next_step, show
from diptych.cli.sources import OutOption, least_and_most
from diptych.core.options import parameter
from diptych.core.reading import read_json
from diptych.core.table import Table
from diptych.data.scenes import make_product_scenes, make_scenes, read_product_scenes, read_scenes
from diptych.data.scenes.products import TRUTH
from diptych.data.scenes.shop_log import make_shop_log


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
