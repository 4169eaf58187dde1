"""``diptych categories``: images for every category of a tree, and categories for products without one."""

from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.console import next_step, show, stop_on_signal
from diptych.commerce import downloads
from diptych.commerce.category_to_image.features import EncoderSpec
from diptych.commerce.category_to_image.filling import FillOptions, fill_catalogue, fill_shown
from diptych.commerce.category_to_image.picking import IndexOptions, PickOptions, index_products, pick_images
from diptych.commerce.category_to_image.run import (
    CategoryRun,
    EvaluateOptions,
    OtherData,
    TrainHeads,
    evaluate_catalogue,
    train_catalogue,
)
from diptych.commerce.product_data import ProductData, TreeOptions, describe_tree
from diptych.core.files import write_json
from diptych.report.categories import TREE_PAGE, evaluation_page, write_picks

_CATEGORIES = ("diptych", "categories")
_RUN = "A folder that diptych categories train wrote."
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help=_RUN, show_default=False)]


def train(products: ProductData, encoders: EncoderSpec, options: TrainHeads) -> None:
    """Train a model that finds products for categories; after any interruption, the same command resumes.

    Images and texts are encoded once; two heads over their rows are trained.

    Examples:
        diptych categories train shop --out runs/shop
        diptych categories train shop --out runs/i --model clip-i --published
        diptych categories train shop --out a --query path --set tree_distance=0.1
    """
    with stop_on_signal():
        shown = train_catalogue(products, encoders, options)
    show(*shown)
    next_step([*_CATEGORIES, "pick", options.out, "--out", f"{options.out}-pictures"])


def evaluate(products: ProductData, encoders: EncoderSpec, options: EvaluateOptions) -> None:
    """Train and measure models of categories and products: tables and a page.

    After any interruption the same command resumes. A finished folder may grow by models, settings and seeds.

    Examples:
        diptych categories evaluate shop --out evaluation
        diptych categories evaluate shop --out few --model bm25,clip-i --seeds 5 -j4
        diptych categories evaluate new-products --out held-out --run runs/shop
    """
    with stop_on_signal():
        found, test = evaluate_catalogue(products, encoders, options)
        page = evaluation_page(found, test).save(options.out / "report.html")
    show(*(table for table in found.tables() if not table.folded))
    show(*(f"left out: {name}: {reason}" for name, reason in found.about["left_out"].items()), found.line())
    show(f"every value in {options.out}; page {page.stat().st_size / 1e6:.1f} MB, no other files needed")
    next_step(["open", page])


def pick(run: RunFolder, data: OtherData, options: PickOptions) -> None:
    """Pick the best k images for every category: picks.json, and the tree with its images as tree.html.

    Categories are those of the products' tree, or of the run's where no product has a category.

    Examples:
        diptych categories pick runs/shop
        diptych categories pick runs/shop new-products -k 12 --out picks
        diptych categories pick runs/shop --among members --distinct content
    """
    target = options.out or run / "picks"
    picks = pick_images(CategoryRun.open(run), data, options, target)
    lines = write_picks(picks, target, options.side if options.sheet else None)
    show(*picks.warnings(), *picks.tables(), *lines)
    next_step(["open", target / TREE_PAGE] if options.sheet else ["less", target / "picks.json"])


def fill(run: RunFolder, data: OtherData, options: FillOptions) -> None:
    """Suggest a category for every product without one, as far down its path as the model is sure.

    Confidence is calibrated on the run's validation products and measured on its test products. Results go to a .jsonl
    or .csv file; RUN/filled.jsonl by default, RUN/checked.jsonl with --check.

    Examples:
        diptych categories fill runs/shop --out filled.jsonl
        diptych categories fill runs/shop new-products --threshold 0.8
        diptych categories fill runs/shop --check --split test --out doubtful.csv
    """
    summary, file = fill_catalogue(CategoryRun.open(run), data, options)
    show(*fill_shown(summary, file))
    again = [*_CATEGORIES, "fill", run, *([data.data] if data.data else []), "--check"]
    next_step(["head", "-3", file] if summary["products"] else again)


def index(run: RunFolder, data: OtherData, options: IndexOptions) -> None:
    """Index products as a run represents them; diptych search then finds them by a category's name, or any words.

    Examples:
        diptych categories index runs/shop
        diptych categories index runs/shop new-products --engine hnsw
    """
    opened, target = CategoryRun.open(run), options.out or run / f"index-{options.engine}"
    show(*index_products(opened, data, options, target))
    next_step(["diptych", "search", target, opened.tree.paths[-1][-1], "--category"])


def tree(options: TreeOptions) -> None:
    """Describe a category tree: levels and widths, names in several places, products per category.

    A file of categories is Google's or Shopify's, a path per line, or a table of ids and parents; of a dataset of
    products it is the tree that they are sorted into. --out writes JSON.

    Examples:
        diptych categories tree taxonomy-with-ids.en-US.txt
        diptych categories tree categories.csv --option orphans=root
        diptych categories tree shop --taxonomy categories.txt --out tree.json
    """
    shown, content = describe_tree(options)
    show(*shown)
    if options.out is not None:
        write_json(options.out, content)
        show(f"written to {options.out}")
    data = ["shop", "--taxonomy", options.data] if options.is_file else [options.data]
    next_step([*_CATEGORIES, "train", *data, "--out", "runs/shop"])


def download(options: downloads.FetchOptions) -> None:
    """Fetch the images of a dataset that ships only their addresses, politely.

    One connection, and one request per second to each host; a host that fails three times in a row is left for
    another call. Images are decoded before they are kept. After any interruption the same command resumes;
    downloads.jsonl in the folder holds what came and why the rest did not. Hosts are called directly, without a proxy.

    Examples:
        diptych categories download metadata_us_Shoes.json.gz -o images --contact ME
        diptych categories download images.csv -o images --contact ME --retry-failed
    """
    data, out = options.data, options.out
    with stop_on_signal():
        done = downloads.download(options)
    show(*done.tables())
    again = [*_CATEGORIES, "download", data, "-o", out, "--contact", options.contact]
    listed = "shop" if options.is_list else data
    if done.left:
        next_step(again)
    elif done.failures:
        next_step([*again, "--retry-failed"])
    else:
        next_step([*_CATEGORIES, "train", listed, "--images", out, "--out", "runs/shop"])
