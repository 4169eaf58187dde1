"""``diptych data scenes``, ``products`` and ``shop-log``: generated data whose every fact is known."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from diptych.cli.console import next_step, progress, say, show
from diptych.cli.sources import OutOption, least_and_most
from diptych.core.table import Table


class GeneratedData(OutOption):
    """What all generators take."""

    seed: int = Field(0, description="The same seed gives the same bytes.")


class SceneOptions(GeneratedData):
    """What generated scenes are like."""

    train: int = Field(4000, description="Images to train on.")
    val: int = Field(300, description="Images to validate on.")
    test: int = Field(500, description="Images to test on.")
    captions: int = Field(
        5, description="Captions per image.", json_schema_extra={"flags": ["--captions", "-k"]}
    )
    size: int = Field(64, description="Side of an image, in pixels.")
    objects: str = Field("2-4", description="Objects per image, e.g. 1 or 1-3.")
    workers: int | None = Field(None, description="Processes; as many as there are CPUs.")


class ProductOptions(GeneratedData):
    """What generated products are like; shares are between 0 and 1."""

    n: int = Field(2000, description="Products.")
    levels: str = Field("2-9", description="Levels of a category path, e.g. 3 or 2-5.")
    without_picture: float = Field(0.0, description="Share of products without an image.")
    without_title: float = Field(0.0, description="Share of products without a title.")
    without_attributes: float = Field(0.0, description="Share of products without attributes.")
    without_category: float = Field(0.0, description="Share of products without a category.")
    in_two_places: float = Field(0.0, description="Share of products in two categories.")
    skew: float = Field(0.0, description="Share of products in one category, e.g. 0.5.")
    dirt: float = Field(0.0, description="Share of products with HTML in their texts.")
    size: int = Field(64, description="Side of an image, in pixels.")
    workers: int | None = Field(None, description="Processes; as many as there are CPUs.")


class ShopLogOptions(GeneratedData):
    """What a generated log is like."""

    visitors: int = Field(2000, description="Each has about 15 events in 28 days.")
    days: int = Field(28, description="From 1 October 2019 on.")
    dirt: float = Field(0.0, description="Share of the log that is spoilt in each of several ways.")
    format: Literal["csv", "parquet"] = Field("csv", description="Of its files.")


def scenes(options: SceneOptions) -> None:
    """Generate images of coloured objects with captions whose every fact is known.

    Without --out they go to the cache and are generated once. One object per image makes an object-centric
    collection.

    Examples:
        diptych data scenes --train 3000 --out scenes
        diptych data scenes --objects 1 --out objects
    """
    from diptych.data.scenes import make_scenes, read_scenes

    with progress():
        folder = make_scenes(
            options.out,
            n_train=options.train,
            n_val=options.val,
            n_test=options.test,
            seed=options.seed,
            k=options.captions,
            size=options.size,
            workers=options.workers,
            objects=least_and_most(options.objects, "--objects", "objects"),
        )
    say(read_scenes(folder).describe())
    say(f"in {folder}")
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
    with progress():
        folder = make_product_scenes(options.out, options.n, **given)
    say(read_product_scenes(folder).describe())
    truth = read_json(folder / TRUTH)
    counts, tree, accuracy = truth["counts"], truth["tree"], truth["ideal"]["accuracy"]
    say(
        f"{counts['categories with products']:,} of {tree['categories']:,} categories have products, "
        f"{counts['mean level']:.1f} levels in the mean; "
        f"{tree['categories that share a name']:,} share a name with another"
    )
    at = {(row["model"], row["level"]): f"{row['share']:.1%}" for row in accuracy}
    models = {row["model"]: " + ".join(row["modalities"]) for row in accuracy}
    rows = [(seen, at[model, 1], at[model, "most-specific"]) for model, seen in models.items()]
    title = "how often the best possible observer would know a product's category"
    show(Table.of(title, "", ("from its", "most general", "most specific"), rows))
    say(f"in {folder}; what is planted and what is true of it: {folder / TRUTH}")
    name = (
        "shop" if options.out is None else folder.name
    )  # a folder of the cache has a fingerprint for a name
    next_step(["diptych", "categories", "train", folder, "--out", f"runs/{name}"])


def shop_log(options: ShopLogOptions) -> None:
    """Generate a shop's log of visits, for diptych intent; what is planted in it stands in truth.json.

    Examples:
        diptych data shop-log --visitors 5000 --out visits
    """
    from diptych.core.reading import read_json
    from diptych.data.scenes.shop_log import TRUTH, make_shop_log

    with progress():
        folder = make_shop_log(options.out, **options.model_dump(exclude={"out"}))
    truth = read_json(folder / TRUTH)
    say(
        f"a log of {truth['events']:,} events in {truth['sessions']:,} sessions, "
        f"{_share(truth, 'purchase sessions')} with a purchase, {_share(truth, 'anonymous sessions')} anonymous"
    )
    spoilt = [(rule, f"{rows:,}") for rule, rows in truth["dirt"].items() if rows]
    if spoilt:
        show(Table.of("rows that are no events", "", ("rule", "rows"), spoilt))
    say(f"in {folder}; what is planted and what is true of it: {folder / TRUTH}")
    next_step(["diptych", "intent", "ingest", folder, "--out", "log"])


def _share(totals: dict[str, Any], what: str) -> str:
    return f"{totals[what] / totals['sessions']:.1%}"
