"""``diptych categories``: images for every category of a tree, and categories for products without one."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import model_validator

from diptych.cli.categories.sources import (
    SETTINGS,
    TAXONOMIES,
    EncoderSpec,
    HeadOptions,
    OtherData,
    PartOptions,
    ProductData,
    RunFolder,
    SortedData,
)
from diptych.cli.console import next_step, show, stop_on_signal
from diptych.cli.sources import DataSource, OutOption, TargetOption, parse_values
from diptych.commerce.catalogue.catalogue import products_per_category
from diptych.commerce.catalogue.source import product_tables, used_part
from diptych.commerce.category_to_image.application import (
    evaluate_catalogue,
    evaluate_run,
    index_products,
    measure_run,
    own_products,
    pick_about,
    pick_with,
    train_run,
    training_lines,
)
from diptych.commerce.category_to_image.evaluation.grid import trained_options
from diptych.commerce.category_to_image.filling.catalogue import fill_catalogue
from diptych.commerce.category_to_image.filling.fill import check_ending
from diptych.commerce.category_to_image.picking import PICKS
from diptych.commerce.category_to_image.runs import CategoryRun
from diptych.commerce.category_to_image.tables import (
    evaluation_tables,
    pick_tables,
    pick_warnings,
    run_tables,
)
from diptych.core.errors import UsageError
from diptych.core.files import check_replaceable, write_json
from diptych.core.options import command_line, parameter
from diptych.data.downloads import DownloadOptions, addresses_in, download_pictures, is_list
from diptych.data.readers import has_own_format
from diptych.data.taxonomy import read_taxonomy, recognised_format
from diptych.data.taxonomy.tree import shape_of, tree_content
from diptych.index.searcher import OF_PRODUCTS
from diptych.metrics.bootstrap import Bootstrap
from diptych.report.categories import evaluation_page, remove_tree_pages, write_tree_pages

_CATEGORIES = ("diptych", "categories")


class TrainHeads(HeadOptions):
    """What is trained, and where it is written."""

    model: str = parameter("clip-ita", "clip- and what it reads: i(mage), t(itle), a(ttributes).")
    setting: str = parameter(
        "most-specific",
        "A product's category: most-specific, most-general, or all (one drawn).",
        names=SETTINGS,
    )
    seed: int = parameter(0, "Of weights, order and draws.", ge=0)


def train(products: ProductData, encoders: EncoderSpec, options: TrainHeads) -> None:
    """Train a model that finds products for categories; after any interruption, the same command resumes.

    Images and texts are encoded once; two heads over their rows are trained. Products without a category are not
    trained on.

    Examples:
        diptych categories train shop --out runs/shop
        diptych categories train shop --out runs/i --model clip-i --published
        diptych categories train feed.csv --out runs/feed --query path
        diptych categories train shop --out runs/near --set tree_distance=0.1
    """
    from diptych.training.run import TrainingFolder

    base = trained_options(options.model, options.setting, options.published).model_dump()
    chosen = options.training(base | options.model_dump(include={"query", "seed"}), "--seed")
    out = options.out
    TrainingFolder(out).check({}, beside=(), whole=False)
    with stop_on_signal():
        catalogue, source = products.read_products()
        maker = encoders.maker(catalogue, chosen.modalities)
        run, features = train_run(catalogue, asdict(source), maker, chosen, out)
        tested = measure_run(run, catalogue)
    show(*training_lines(run, catalogue, features), *run_tables(run, tested))
    next_step([*_CATEGORIES, "pick", out, "--out", f"{out}-pictures"])


class EvaluateOptions(HeadOptions):
    """Which models are measured, and how."""

    model: list[str] = parameter(
        [], "bm25, clip, sentence, clip-i … clip-ita. Repeatable.", default="all possible"
    )
    setting: list[str] = parameter(
        [], "all, most-general, most-specific. Repeatable.", names=SETTINGS, default="all three"
    )
    seeds: int = parameter(3, "Trainings of each model.", ge=1)
    run: Path | None = parameter(None, "Measure a run on the products that it has not seen.")
    relevance: Literal["label", "path"] = parameter("label", "path: the categories above are right, too.")
    samples: int = parameter(1000, "Bootstrap resamples for 95 % intervals; 0 for none.", ge=0)
    judged_seed: int = parameter(0, "Of categories drawn in the setting all.", ge=0)
    jobs: int = parameter(1, "Processes; the numbers do not depend on it.", "--jobs", "-j", ge=1)

    @model_validator(mode="after")
    def _exclusive(self) -> Self:
        if self.published and self.set_:
            raise UsageError("--published trains as in the thesis", "leave out --set, or --published")
        fitting = ("model", "query", "published", "set_", "seeds", "jobs")
        fields = type(self).model_fields
        if self.run is not None and any(getattr(self, name) != fields[name].default for name in fitting):
            raise UsageError("a run is measured as it is", "leave out what makes or trains models")
        return self


def evaluate(products: ProductData, encoders: EncoderSpec, options: EvaluateOptions) -> None:
    """Train and measure models of categories and products: tables and a page.

    After any interruption the same command resumes. A finished folder may grow by models, settings and seeds.

    Examples:
        diptych categories evaluate shop --out evaluation
        diptych categories evaluate shop --out thesis --published --seeds 5 -j 4
        diptych categories evaluate shop --out few --model bm25,clip-i
        diptych categories evaluate new-products --out held-out --run runs/shop
    """
    run, out = options.run, options.out
    if run is not None and encoders != EncoderSpec():
        raise UsageError("a run is measured as it is", "leave out the encoders")
    with stop_on_signal():
        catalogue, source = products.read_products()
        common: dict[str, Any] = {
            "settings": _names(options.setting),
            **options.model_dump(include={"relevance", "judged_seed"}),
            "bootstrap": Bootstrap(options.samples),
            "about": {
                "source": asdict(source),
                "encoders asked for": encoders.given if run is None else [],
            },
        }
        if run is not None:
            found, test = evaluate_run(CategoryRun.open(run), catalogue, out, **common)
        else:
            found, test = evaluate_catalogue(
                catalogue,
                encoders.maker(catalogue),
                out,
                models=_names(options.model),
                seeds=tuple(range(options.seeds)),
                options=options.training({}, "--seeds") if options.set_ else None,
                **options.model_dump(include={"query", "published", "jobs"}),
                **common,
            )
        page = evaluation_page(found, test).save(out / "report.html")
    show(*(table for part in evaluation_tables(found).values() for table in part if not table.folded))
    show(*(f"left out: {name}: {reason}" for name, reason in found.left_out.items()), found.line())
    show(f"every value in {out}; page {page.stat().st_size / 1e6:.1f} MB, no other files needed")
    next_step(["open", page])


def _names(given: list[str]) -> list[str] | None:
    """Return the names of an option that may be repeated or have commas; None when it was not given."""
    return [name for text in given for name in text.split(",") if name] if given else None


class PickOptions(PartOptions):
    """Which images are picked, and how they are shown; written to RUN/picks by default."""

    k: int = parameter(8, "Images per category.", "-k", ge=1)
    among: Literal["all", "members"] = parameter("all", "members: only of products in it or below.")
    distinct: list[str] = parameter([], "content or title: equal ones are picked once. Repeatable.")
    sheet: bool = parameter(True, "Write the tree's contact sheet.")
    side: int = parameter(112, "Longest side of its images, in pixels.", ge=16, le=640)


def pick(run: RunFolder, data: OtherData, options: PickOptions) -> None:
    """Pick the best k images for every category: picks.json, and the tree with its images as tree.html.

    Categories are those of the products' tree, or of the run's where no product has a category. Scores are exact;
    a product without an image is never picked, and no image twice in a category.

    Examples:
        diptych categories pick runs/shop
        diptych categories pick runs/shop new-products -k 12 --out picks
        diptych categories pick runs/shop --among members --distinct content
    """
    opened, target = CategoryRun.open(run), options.out or run / "picks"
    check_replaceable(target, PICKS)
    catalogue, source = data.catalogue(opened, options.split)
    about = pick_about(opened, catalogue, source, options.split, own=data.data is None)
    show(*pick_warnings(about, options.among))
    picks = pick_with(opened, catalogue, target, options.k, options.among, options.distinct, about)  # type: ignore[arg-type]
    remove_tree_pages(target)  # they show what was picked before
    file = picks.save(target)
    unreadable = write_tree_pages(picks, target, side=options.side)[1] if options.sheet else {}
    show(*pick_tables(picks), *(f"{name}: {why}" for name, why in list(unreadable.items())[:5]))
    if len(unreadable) > 5:
        show(f"and {len(unreadable) - 5:,} more images that cannot be read")
    show(f"{len(picks.products):,} images for {len(picks):,} categories in {file}")
    next_step(["open", target / "tree.html"] if options.sheet else ["less", file])


class FillOptions(PartOptions):
    """What is suggested, and how sure it has to be."""

    check: bool = parameter(False, "Also products whose own category is not the one suggested.")
    threshold: float = parameter(0.5, "Confidence below which a path is cut.", ge=0, le=1)
    alternatives: int = parameter(3, "Likeliest categories to name.", ge=0)
    candidates: Literal["specific", "all"] = parameter(
        "specific", "specific: leaves, and categories that hold products."
    )
    calibrate_on: str | None = parameter(
        None,
        "The split of the run's products that confidence is calibrated on.",
        default="its validation split",
    )


def fill(run: RunFolder, data: OtherData, options: FillOptions) -> None:
    """Suggest a category for every product without one, as far down its path as the model is sure.

    Confidence is a soft-max over all candidates, calibrated on the run's validation products and measured on its test
    products. Results go to a .jsonl or .csv file; RUN/filled.jsonl by default, RUN/checked.jsonl with --check.

    Examples:
        diptych categories fill runs/shop --out filled.jsonl
        diptych categories fill runs/shop new-products --threshold 0.8
        diptych categories fill runs/shop --check --split test --out doubtful.csv
    """
    opened, is_own = CategoryRun.open(run), data.data is None
    target = options.out or run / ("checked.jsonl" if options.check else "filled.jsonl")
    check_ending(target)
    whole, source = data.catalogue(opened, own_tree=False)
    catalogue = used_part(whole, options.split)
    filled = fill_catalogue(
        opened,
        whole if is_own else own_products(opened),
        catalogue,
        target,
        is_own=is_own,
        about={"data": source, "split": options.split},
        **options.model_dump(exclude={"split", "out"}),
    )
    show(*filled.tables(), filled.line(), *filled.notes())
    if filled.products:
        show(f"{filled.written:,} products in {target}")
        next_step(["head", "-3", target])
    else:
        show(f"all {len(catalogue):,} products have a category: nothing to fill")
        next_step([*_CATEGORIES, "fill", run, *([] if is_own else [data.data]), "--check"])


class IndexOptions(PartOptions):
    """What is indexed, and how; written to RUN/index-ENGINE by default."""

    engine: str = parameter(
        "exact",
        "How it is searched; diptych info lists engines for dense rows.",
        names="diptych.index:ENGINES",
    )
    option: list[str] = parameter([], "KEY=VALUE for the engine, e.g. ef_search=128. Repeatable.")


def index(run: RunFolder, data: OtherData, options: IndexOptions) -> None:
    """Index products as a run represents them; diptych search then finds them by the name of a category.

    Any words can be searched for, not only categories of the tree. Products without an image are found by their
    title and attributes.

    Examples:
        diptych categories index runs/shop
        diptych categories index runs/shop new-products --engine hnsw
    """
    opened, engine, split = CategoryRun.open(run), options.engine, options.split
    target, settings = options.out or run / f"index-{engine}", parse_values(options.option, "--option")
    catalogue, _ = data.catalogue(opened, split)
    about = {OF_PRODUCTS: {"run": str(run.resolve()), "other": data.model_dump(mode="json"), "split": split}}
    built = index_products(
        opened, catalogue, target, split or "all", engine=engine, settings=settings, about=about
    )
    show(f"{len(built):,} products of {catalogue.name}, engine {built.engine_name}, in {target}")
    if "recall" in built.about:
        recall = built.about["recall"]
        show(f"recall@{recall['k']} against exact on {recall['queries']} categories: {recall['value']:.3f}")
    name = opened.tree.paths[-1][-1] if len(opened.tree) else "what to look for"
    next_step(["diptych", "search", target, name, "--category"])


class TreeOptions(SortedData, OutOption):
    """What is described; --out writes the tree as JSON."""

    data: Path = parameter(
        ..., "A taxonomy's file, or a dataset of products.", argument=True, metavar="FILE|DATA"
    )
    format: str | None = parameter(None, "The file's format, where it is not recognised.", names=TAXONOMIES)
    option: list[str] = parameter([], "KEY=VALUE for the format, e.g. orphans=root. Repeatable.")

    @property
    def is_file(self) -> bool:
        """Whether it is a taxonomy's file; a feed has paths as well, and is no list of them."""
        of_products = any(getattr(self, one) for one in ("images", "reader", "reader_option", "taxonomy"))
        of_file = bool(self.format or self.option)
        if of_products and of_file:
            message = "--format and --option are of a taxonomy's file, the other options of products"
            raise UsageError(message, "give one kind")
        if of_products or of_file:
            return of_file
        return not has_own_format(self.data) and bool(recognised_format(self.data))


def tree(options: TreeOptions) -> None:
    """Describe a category tree: levels and widths, names in several places, products per category.

    A file of categories is Google's or Shopify's, a path per line, or a table of ids and parents; what had to be mended
    in it is listed. Of a dataset of products it is the tree that they are sorted into. --out writes JSON.

    Examples:
        diptych categories tree taxonomy-with-ids.en-US.txt
        diptych categories tree categories.csv --option orphans=root
        diptych categories tree shop --taxonomy categories.txt --out tree.json
    """
    more: list[Any] = []  # what is known of products: tables and notes
    counts: dict[str, Any] = {}
    data: list[Any] = ["DATA", "--taxonomy", options.data]
    if options.is_file:
        made = read_taxonomy(options.data, options.format, **parse_values(options.option, "--option"))
        about: dict[str, Any] = {"name": made.name, "version": made.version, "language": made.language}
        shown, categories, notes = made.describe(), made.tree, made.notes
    else:
        catalogue = options.source(split_by="given").catalogue()  # a tree needs no test products
        about = {"name": catalogue.name, "products": len(catalogue)}
        shown, categories, notes = catalogue.describe(), catalogue.tree, catalogue.notes
        counts["products"], counts["products_with_those_below"] = products_per_category(catalogue)
        tables, sizes = product_tables(catalogue)
        more, data = [*tables, *sizes], [options.data]
    shape = shape_of(categories)
    show(shown, *shape.tables())
    if shape.only_children:
        show(f"{shape.only_children:,} categories have no siblings: their level sorts nothing")
    show(*(f"note: {note}" for note in notes), *more)
    if options.out is not None:
        write_json(options.out, about | tree_content(categories, notes, counts))
        show(f"written to {options.out}")
    next_step([*_CATEGORIES, "train", *data, "--out", "runs/shop"])


class FetchOptions(DataSource, TargetOption):
    """Which images are fetched, how politely, and how far."""

    data: Path = parameter(
        ...,
        "A dataset whose records have addresses, or a CSV file of ids and addresses.",
        argument=True,
        metavar="DATA",
    )
    out: Path = parameter(..., "Folder of images: new, or of an earlier call.", "--out", "-o")
    contact: str = parameter(
        ..., "Your mail address or web page, sent to every host.", envvar="DIPTYCH_CONTACT"
    )
    rate: float = parameter(1.0, "Requests per second and host.")
    connections: int = parameter(1, "At once, to one host.", ge=1)
    limit: int | None = parameter(None, "Try at most so many addresses now.", ge=1)
    retry_failed: bool = parameter(False, "Try those again that failed in an earlier call.")
    ignore_robots: bool = parameter(False, "Ignore robots.txt: on your own hosts only.")
    allow_private: bool = parameter(False, "Follow addresses into private networks.")
    attempts: int = parameter(4, "Per image, before it counts as failed.", ge=1)
    max_bytes: int = parameter(30_000_000, "An image's largest file.", ge=1)


def download(options: FetchOptions) -> None:
    """Fetch the images of a dataset that ships only their addresses, politely.

    One connection and one request per second to each host; robots.txt and Retry-After are respected. Images are
    decoded before they are kept. After any interruption the same command resumes; downloads.jsonl in the folder holds
    what came and why the rest did not. Hosts are called directly, without a proxy.

    Examples:
        diptych categories download metadata_us_Shoes.json.gz -o images --contact ME
        diptych categories download images.csv -o images --contact ME --limit 100
        diptych categories download images.csv -o images --contact ME --retry-failed
    """
    data, out, contact = options.data, options.out, options.contact
    given = {"contact", "rate", "connections", "allow_private", "attempts", "max_bytes"}
    politeness = DownloadOptions(**options.model_dump(include=given), robots=not options.ignore_robots)
    with stop_on_signal():
        wanted = addresses_in(data, options.reader, **options.reader_options())
        done = download_pictures(
            wanted, out, politeness, limit=options.limit, retry_failed=options.retry_failed
        )
    show(done.line(), *done.tables())
    again = command_line([*_CATEGORIES, "download", data, "-o", out, "--contact", contact])
    if done.left:
        next_step(f"{again}  # to resume")
    elif done.failures:
        next_step(f"{again} --retry-failed  # to try the failed ones again")
    else:
        dataset = "DATA" if options.reader is None and is_list(data) else data
        next_step([*_CATEGORIES, "train", dataset, "--images", out, "--out", "runs/shop"])
