"""``diptych categories``: pictures for the nodes of a category tree, categories for products."""

from __future__ import annotations

import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.categories.evaluate import evaluate
from diptych.cli.categories.index import index
from diptych.cli.categories.pick import pick
from diptych.cli.categories.sources import (
    OtherData,
    OtherProducts,
    RunFolder,
    SplitName,
    TaxonomyFile,
    TaxonomyFormatName,
    UnknownPaths,
    known_to,
    own_products,
    rows_for,
    trained_on,
    used_part,
    validation_split,
)
from diptych.cli.categories.train import train
from diptych.cli.categories.tree import tree
from diptych.cli.console import next_step, print_table, progress, say, stop_on_signal
from diptych.cli.sources import Images, ReaderName, ReaderOptions, parse_values
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.commerce.catalogue import Catalogue
    from diptych.commerce.category_to_image.filling import Calibration, Filler, Reliability
    from diptych.commerce.category_to_image.runs import CategoryRun
    from diptych.data.downloads import Downloads, Wanted


def fill(
    run: RunFolder,
    data: OtherProducts = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="A file, .jsonl or .csv; RUN/filled.jsonl by default, RUN/checked.jsonl with --check.",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="All products: also those whose own category is not the one suggested."),
    ] = False,
    threshold: Annotated[
        float, typer.Option(min=0, max=1, help="A path is cut where its confidence falls below it.")
    ] = 0.5,
    alternatives: Annotated[int, typer.Option(min=0, help="Likeliest categories to name.")] = 3,
    candidates: Annotated[
        str,
        typer.Option(
            help="specific: categories without children and those that products are sorted into; all: every one."
        ),
    ] = "specific",
    calibrate_on: Annotated[
        str | None,
        typer.Option(
            help="The run's products that its confidence is calibrated on; its validation split by default.",
            show_default=False,
        ),
    ] = None,
    split: SplitName = None,
    images: Images = None,
    reader: ReaderName = None,
    reader_option: ReaderOptions = None,
    taxonomy: TaxonomyFile = None,
    taxonomy_format: TaxonomyFormatName = None,
    unknown_paths: UnknownPaths = "error",
) -> None:
    """Suggest a category for every product without one, as far down its path as the model is sure.

    Confidence is a soft-max over all candidates, its temperature found on the run's validation products; what it is
    worth is measured on its test products. A level's confidence is that of everything below it together.

    Examples:

      [bold]diptych categories fill runs/shop --out filled.jsonl[/bold]

      [bold]diptych categories fill runs/shop new-products --out filled.csv --threshold 0.8[/bold]

      [bold]diptych categories fill runs/shop --check --split test --out doubtful.jsonl[/bold]
    """
    import numpy as np

    from diptych.commerce.category_to_image.filling.fill import check_ending, write_filled
    from diptych.commerce.category_to_image.runs import CategoryRun

    opened = CategoryRun.open(run)
    target = out or run / ("checked.jsonl" if check else "filled.jsonl")
    check_ending(target)
    with progress():
        other = OtherData(data, images, reader, reader_option, taxonomy, taxonomy_format, unknown_paths)
        whole, source = other.catalogue(opened, own_tree=False)
        catalogue = used_part(whole, split)
        own = whole if data is None else own_products(opened)
        calibrating = _calibrating(own, calibrate_on)
        first = _filler(opened, own, candidates, 1.0, threshold, alternatives)
        filler, calibration, reliability = _calibrated(opened, own, first, calibrating, target)
        if catalogue.tree.fingerprint != own.tree.fingerprint:  # another tree, the same confidence in scores
            filler = _filler(opened, catalogue, candidates, calibration.temperature, threshold, alternatives)
        wanted = np.arange(len(catalogue)) if check else np.flatnonzero(catalogue.place < 0)
        part = catalogue.subset(wanted)
        about: dict[str, Any] = {
            "run": str(run.resolve()),
            "model": opened.about["model"],
            "fingerprint": opened.about["fingerprint"],
            "data": source,
            "split": split,
            "trained_on": trained_on(opened, part, own=data is None),
            "candidates": {"kind": candidates, "categories": len(filler.candidates)},
            "threshold": threshold,
            "calibration": {**asdict(calibration), "split": calibrating},
            "reliability": None if reliability is None else asdict(reliability),
            "measured on": "the run's own tree" if filler.tree is not own.tree else "the same tree",
            "notes": list(catalogue.notes),
        }
        if not len(part):
            counts = write_filled([], target, about)
        else:
            with rows_for(opened, opened.model, part, target) as rows:
                filled = filler.fill(rows, part, np.arange(len(part)), known_to(opened, part))
                counts = write_filled(filled, target, about, leave_out=("agrees",) if check else ())
    _show(counts, calibration, reliability, calibrating)
    if not len(part):
        say(f"all {len(catalogue):,} products have a category: nothing to fill")
        next_step(
            shlex.join(["diptych", "categories", "fill", str(run), *([str(data)] if data else []), "--check"])
        )
        return
    if about["trained_on"]:
        say(
            f"the run was trained on {about['trained_on']:,} of these products and agrees with them too readily; "
            "--split test has others"
        )
    left = counts.get("agrees", 0) if check else 0
    say(
        f"{len(part) - left:,} products in {target}"
        + (f", {left:,} that agree with their own category left out" if left else "")
    )
    next_step(["head", "-3", str(target)])


def _calibrating(own: Catalogue, named: str | None) -> str:
    """The split that confidence is calibrated on."""
    name = named or validation_split(own)
    if name is None or name not in own.split_sizes:
        raise UsageError(
            f"the run has no {named or 'validation'} products to calibrate on, only {', '.join(own.split_sizes)}",
            "name others that it was not trained on: --calibrate-on test",
        )
    if name == "train":
        raise UsageError(
            "calibrated on products that it was trained on, a model thinks too much of itself",
            "calibrate on others: --calibrate-on test",
        )
    return name


def _filler(
    run: CategoryRun, catalogue: Catalogue, kind: str, temperature: float, threshold: float, alternatives: int
) -> Filler:
    """What suggests categories of the catalogue's tree."""
    from diptych.commerce.catalogue.catalogue import category_texts
    from diptych.commerce.category_to_image.filling import Filler, candidate_nodes

    nodes = candidate_nodes(catalogue, kind)  # type: ignore[arg-type]
    texts = category_texts(catalogue.tree, nodes, run.options.query)
    categories = run.model.category_rows(run.category_features(texts))
    return Filler(catalogue.tree, nodes, categories, temperature, threshold, alternatives)


def _calibrated(
    run: CategoryRun, own: Catalogue, filler: Filler, split: str, beside: Path
) -> tuple[Filler, Calibration, Reliability | None]:
    """The same with its temperature, and what it is worth on test products, where there are others."""
    from diptych.commerce.category_to_image.filling import calibrate, reliability_of

    part = own.split(split)
    with rows_for(run, run.model, part, beside) as rows:
        calibration = calibrate(rows, filler.categories, filler.candidates, part)
    ready = replace(filler, temperature=calibration.temperature)
    if split == "test" or "test" not in own.split_sizes or not bool((own.split("test").place >= 0).any()):
        return ready, calibration, None
    test = own.split("test")
    with rows_for(run, run.model, test, beside) as rows:
        return ready, calibration, reliability_of(ready, rows, test)


def _show(
    counts: dict[str, int], calibration: Calibration, reliability: Reliability | None, split: str
) -> None:
    from diptych.commerce.category_to_image.filling.fill import VERDICTS

    say(
        f"temperature {calibration.temperature:.4g}, found on {calibration.products:,} products of split {split}: "
        f"loss {calibration.loss:.3f} nats, a uniform guess has {calibration.chance:.3f}"
    )
    if reliability is None:
        say("what confidence is worth was not measured: there are no other products to test it on")
    else:
        _show_reliability(reliability)
    rows = [(name, f"{count:,}", VERDICTS[name]) for name, count in counts.items()]  # type: ignore[index]
    if rows:
        print_table("suggestions", ("verdict", "products", "meaning"), rows, numbers=("products",))


def _show_reliability(reliability: Reliability) -> None:
    rows = [
        (
            f"level {one.level}" if one.level else "whole path",
            f"{one.products:,}",
            f"{100 * one.confidence:.1f} %",
            f"{100 * one.accuracy:.1f} %",
            f"{one.error:.3f}",
        )
        for one in (*reliability.levels, reliability.whole)
    ]
    kept = sum(count for levels, count, _ in reliability.cut if levels)
    numbers = ("products", "confidence", "right", "calibration error")
    print_table(
        f"what it is worth on {reliability.products:,} test products",
        ("", *numbers),
        rows,
        numbers=numbers,
        caption=f"{kept:,} of them get at least one level at the threshold of {reliability.threshold:g}; calibration "
        "error: mean distance of confidence from accuracy over 15 bins",
    )


_SHOWN = 5


def download(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="A dataset whose records say where pictures are, or a CSV file with the columns id and address.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="Folder of pictures: new, or of an earlier call.", show_default=False
        ),
    ],
    contact: Annotated[
        str,
        typer.Option(
            help="Your mail address or web page, sent to every host, so that whoever runs it can reach you.",
            envvar="DIPTYCH_CONTACT",
            show_default=False,
        ),
    ],
    rate: Annotated[float, typer.Option(help="Requests per second and host.")] = 1.0,
    connections: Annotated[int, typer.Option(min=1, help="At once, to one host.")] = 1,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Try at most so many addresses now.", show_default=False)
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try those again that failed in an earlier call.")
    ] = False,
    robots: Annotated[
        bool,
        typer.Option(
            "--robots/--ignore-robots", help="Keep to robots.txt; ignore it only on your own hosts."
        ),
    ] = True,
    allow_private: Annotated[
        bool,
        typer.Option("--allow-private", help="Follow addresses into private networks, such as your own."),
    ] = False,
    attempts: Annotated[int, typer.Option(min=1, help="Per picture, before it counts as failed.")] = 4,
    max_bytes: Annotated[int, typer.Option(min=1, help="A picture's largest file.")] = 30_000_000,
    reader: ReaderName = None,
    reader_option: ReaderOptions = None,
) -> None:
    """Fetch the pictures of a dataset that ships only their addresses, politely.

    One connection and one request per second to each host, robots.txt and Retry-After kept to. What comes is decoded
    before it is kept. Killed at any moment, the same command goes on where it stopped; downloads.jsonl in the folder
    says what came and why the rest did not. Hosts are called directly, without a proxy.

    Examples:

      [bold]diptych categories download metadata_us_Electronics.json.gz --out images --contact me@example.org[/bold]

      [bold]diptych categories download pictures.csv --out images --contact me@example.org --limit 100[/bold]

      [bold]diptych categories download pictures.csv --out images --contact me@example.org --retry-failed[/bold]
    """
    from diptych.data.downloads import DownloadOptions, download_pictures
    from diptych.data.downloads.options import is_list

    options = DownloadOptions(
        contact=contact,
        rate=rate,
        connections=connections,
        robots=robots,
        allow_private=allow_private,
        attempts=attempts,
        max_bytes=max_bytes,
    )
    with progress(), stop_on_signal():
        wanted = _wanted(data, reader, reader_option)
        done = download_pictures(wanted, out, options, limit=limit, retry_failed=retry_failed)
    _print(done)
    if done.left:
        next_step(_again("to go on", data, out, contact))
    elif done.failures:
        next_step(_again("to try the failed ones again", data, out, contact, "--retry-failed"))
    else:
        dataset = "DATA" if reader is None and not reader_option and is_list(data) else data
        next_step(["diptych", "categories", "train", dataset, "--images", out, "--out", "runs/shop"])


def _again(why: str, data: Path, out: Path, contact: str, *more: str) -> str:
    parts = ["diptych", "categories", "download", str(data), "--out", str(out), "--contact", contact, *more]
    return f"{' '.join(map(shlex.quote, parts))}  # {why}"


def _wanted(data: Path, reader: str | None, reader_option: list[str] | None) -> list[Wanted]:
    from diptych.data import read_collection
    from diptych.data.downloads import read_wanted, wanted_of
    from diptych.data.downloads.options import is_list

    if reader is None and not reader_option and is_list(data):
        return read_wanted(data)
    return wanted_of(read_collection(data, reader, **parse_values(reader_option, "--reader-option")))


def _print(done: Downloads) -> None:
    say(
        f"{done.there:,} of {done.wanted:,} pictures are in {done.folder}, {done.fetched:,} of them fetched now; "
        f"{len(done.failures):,} failed, {done.left:,} not tried yet"
    )
    if done.failures:
        rows = []
        for kind, count in done.reasons.items():
            some = [one for one in done.failures if one["kind"] == kind][:_SHOWN]
            rows.append(
                (kind, f"{count:,}", str(some[0]["error"]), ", ".join(str(one["id"]) for one in some))
            )
        print_table(
            "failed", ("kind", "pictures", "the first one's reason", "ids"), rows, numbers=("pictures",)
        )
    if done.given_up:
        print_table("hosts left for another time", ("host", "why"), sorted(done.given_up.items()))


categories = typer.Typer(
    name="categories",
    help="Category-to-image: pictures for every node of a category tree, categories for products without one.",
    epilog="Begin with: diptych data products --out shop, then diptych categories train shop --out runs/shop",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

categories.command("train")(train)
categories.command("tree")(tree)
categories.command("download")(download)
categories.command("evaluate")(evaluate)
categories.command("pick")(pick)
categories.command("fill")(fill)
categories.command("index")(index)
