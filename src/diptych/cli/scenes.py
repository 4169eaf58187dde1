"""``diptych scenes``: generate the embedded dataset, a shop's products, or its log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from diptych.cli.console import next_step, print_table, progress, say
from diptych.cli.sources import OutFolder, least_and_most
from diptych.core.errors import UsageError

LOG_OPTIONS = ("visitors", "days", "dirt", "file_format")
"""Options of ``diptych scenes`` that say something of a log."""


def shop_log_scenes(
    out: Path | None, *, visitors: int, days: int, seed: int, dirt: float, file_format: str
) -> None:
    """Make a shop log, and say what is in it and what comes next."""
    from diptych.core.reading import read_json
    from diptych.data.scenes.shop_log import TRUTH, make_shop_log

    with progress():
        folder = make_shop_log(out, visitors=visitors, days=days, seed=seed, dirt=dirt, format=file_format)
    truth = read_json(folder / TRUTH)
    say(
        f"a log of {truth['events']:,} events in {truth['sessions']:,} sessions, "
        f"{_part(truth, 'purchase sessions')} with a purchase, {_part(truth, 'anonymous sessions')} anonymous"
    )
    spoilt = [(rule, f"{rows:,}") for rule, rows in truth["dirt"].items() if rows]
    if spoilt:
        print_table("rows that are none", ["rule", "rows"], spoilt, numbers=["rows"])
    say(f"in {folder}; what is planted and what is true of it: {folder / TRUTH}")
    next_step(["diptych", "intent", "ingest", folder, "--out", "log"])


def _part(totals: dict[str, Any], what: str) -> str:
    return f"{totals[what] / totals['sessions']:.1%}"


PRODUCT_OPTIONS = (
    "number",
    "levels",
    "without_pictures",
    "without_titles",
    "without_attributes",
    "without_categories",
    "in_two_places",
    "skew",
    "size",
    "dirt",
    "workers",
)
"""Options of ``diptych scenes`` that say something of products."""


def product_scenes(out: Path | None, *, number: int, levels: str | None, **options: Any) -> None:
    """Make products, and say what they are, what can be told of them, and what comes next."""
    from diptych.core.reading import read_json
    from diptych.data.scenes import make_product_scenes, read_product_scenes
    from diptych.data.scenes.products import TRUTH

    if levels is not None:
        options["levels"] = least_and_most(levels, "--levels", "levels")
    with progress():
        folder = make_product_scenes(out, number, **options)
    say(read_product_scenes(folder).describe())
    truth = read_json(folder / TRUTH)
    counts, tree = truth["counts"], truth["tree"]
    say(
        f"{counts['categories with products']:,} of {tree['categories']:,} categories have products, "
        f"{counts['mean level']:.1f} levels in the mean; "
        f"{tree['categories that share a name']:,} share a name with another"
    )
    at = {(row["model"], row["level"]): f"{row['share']:.1%}" for row in truth["ideal"]["accuracy"]}
    models = {row["model"]: " + ".join(row["modalities"]) for row in truth["ideal"]["accuracy"]}
    rows = [(seen, at[model, 1], at[model, "most-specific"]) for model, seen in models.items()]
    print_table(
        "how often the best possible observer would know a product's category",
        ["who sees its", "most general", "most specific"],
        rows,
        numbers=["most general", "most specific"],
    )
    say(f"in {folder}; what is planted and what is true of it: {folder / TRUTH}")
    name = "shop" if out is None else folder.name  # a folder of the cache has a fingerprint for a name
    next_step(["diptych", "categories", "train", folder, "--out", f"runs/{name}"])


_PICTURE_OPTIONS = ("train", "val", "test", "captions", "size", "objects", "workers")
_KINDS = {
    "pictures": ("", _PICTURE_OPTIONS),
    "a log": ("--shop-log", LOG_OPTIONS),
    "products": ("--products", PRODUCT_OPTIONS),
}
"""What can be made, by which flag, and which options are of it."""


def scenes(
    context: typer.Context,
    out: OutFolder = None,
    train: Annotated[int, typer.Option(help="Pictures to train on.")] = 4000,
    val: Annotated[int, typer.Option(help="Pictures to validate on.")] = 300,
    test: Annotated[int, typer.Option(help="Pictures to test on.")] = 500,
    captions: Annotated[int, typer.Option("--captions", "-k", help="Captions per picture.")] = 5,
    size: Annotated[int, typer.Option(help="Side of a picture, in pixels.")] = 64,
    objects: Annotated[
        str | None,
        typer.Option(help="Objects per picture, e.g. 1 or 1-3; 2-4 when not given.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    workers: Annotated[
        int | None, typer.Option(help="Processes; as many as there are processors.", show_default=False)
    ] = None,
    shop_log: Annotated[
        bool, typer.Option("--shop-log", help="Not pictures: the log of a shop, for diptych intent.")
    ] = False,
    products: Annotated[
        bool,
        typer.Option("--products", help="Not pictures alone: a shop's products, for diptych categories."),
    ] = False,
    number: Annotated[int, typer.Option("--n", help="Products.")] = 2000,
    levels: Annotated[
        str | None,
        typer.Option(
            help="Levels of a category path, e.g. 3 or 2-5; 2-9 when not given.", show_default=False
        ),
    ] = None,
    without_pictures: Annotated[float, typer.Option(help="Share of products without a picture.")] = 0.0,
    without_titles: Annotated[float, typer.Option(help="Share of products without a title.")] = 0.0,
    without_attributes: Annotated[float, typer.Option(help="Share of products without attributes.")] = 0.0,
    without_categories: Annotated[float, typer.Option(help="Share of products without a category.")] = 0.0,
    in_two_places: Annotated[float, typer.Option(help="Share of products in two categories.")] = 0.0,
    skew: Annotated[float, typer.Option(help="Share of products in one category, e.g. 0.5.")] = 0.0,
    visitors: Annotated[int, typer.Option(help="Of the log; each has about 15 events in 28 days.")] = 2000,
    days: Annotated[int, typer.Option(help="Of the log, from 1 October 2019 on.")] = 28,
    dirt: Annotated[
        float,
        typer.Option(
            help="Share of the log that is spoilt in each of several ways, or of products with HTML in their texts."
        ),
    ] = 0.0,
    file_format: Annotated[str, typer.Option("--format", help="Of the log: csv or parquet.")] = "csv",
) -> None:
    """Generate pictures of coloured objects with captions whose every fact is known, products of a shop, or its log.

    Without --out they go to the cache and are made once. One object per picture makes an object-centric
    collection. Products have a picture, a title, attributes and a category path. Of products and of a log, what is
    planted in them and what is true of them stands in their truth.json.

    Examples:

      [bold]diptych scenes --train 3000 --out scenes[/bold]

      [bold]diptych scenes --objects 1 --out objects[/bold]

      [bold]diptych scenes --products --out shop[/bold]

      [bold]diptych scenes --products --n 500 --levels 2-4 --without-categories 0.1 --out shop[/bold]

      [bold]diptych scenes --shop-log --visitors 5000 --out visits[/bold]
    """
    _check_kind(context, _kind_of(products, shop_log))
    if shop_log:
        shop_log_scenes(out, visitors=visitors, days=days, seed=seed, dirt=dirt, file_format=file_format)
        return
    if products:
        product_scenes(
            out,
            number=number,
            levels=levels,
            seed=seed,
            size=size,
            without_picture=without_pictures,
            without_title=without_titles,
            without_attributes=without_attributes,
            without_category=without_categories,
            in_two_places=in_two_places,
            skew=skew,
            dirt=dirt,
            workers=workers,
        )
        return
    from diptych.data.scenes import make_scenes, read_scenes

    with progress():
        folder = make_scenes(
            out,
            n_train=train,
            n_val=val,
            n_test=test,
            seed=seed,
            k=captions,
            size=size,
            workers=workers,
            **({} if objects is None else {"objects": least_and_most(objects, "--objects", "objects")}),
        )
    say(read_scenes(folder).describe())
    say(f"in {folder}")
    next_step(["diptych", "train", "scenes", "--data", folder])


def _kind_of(products: bool, shop_log: bool) -> str:
    """Which of :data:`_KINDS` is made."""
    if products and shop_log:
        raise UsageError("--products and --shop-log are two datasets", "give one of them")
    return "products" if products else "a log" if shop_log else "pictures"


def _check_kind(context: typer.Context, kind: str) -> None:
    """See that nothing is said of a kind of scenes that is not made."""
    own_flag, own = _KINDS[kind]
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in own or source is None or source.name != "COMMANDLINE":
            continue
        others = {name: flag for name, (flag, options) in _KINDS.items() if parameter.name in options}
        if others:
            flags = " or ".join(flag for flag in others.values() if flag)
            fix = f" or {own_flag}" if own_flag else f", or give {flags} too"
            raise UsageError(
                f"{parameter.opts[0]} is of {' and '.join(others)}, and {kind} would be made",
                f"leave out {parameter.opts[0]}{fix}",
            )
