"""``diptych categories fill``: a category for products without one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.categories.sources import OtherData, RunFolder, SplitName, with_groups
from diptych.cli.console import next_step, progress, say, show


@with_groups
def fill(
    run: RunFolder,
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
    *,
    other: OtherData,
) -> None:
    """Suggest a category for every product without one, as far down its path as the model is sure.

    Confidence is a soft-max over all candidates, its temperature found on the run's validation products; what it is
    worth is measured on its test products. A level's confidence is that of everything below it together.

    Examples:

      [bold]diptych categories fill runs/shop --out filled.jsonl[/bold]

      [bold]diptych categories fill runs/shop new-products --out filled.csv --threshold 0.8[/bold]

      [bold]diptych categories fill runs/shop --check --split test --out doubtful.jsonl[/bold]
    """
    from diptych.commerce.catalogue.source import used_part
    from diptych.commerce.category_to_image.application import own_products
    from diptych.commerce.category_to_image.filling.catalogue import fill_catalogue
    from diptych.commerce.category_to_image.filling.fill import check_ending
    from diptych.commerce.category_to_image.runs import CategoryRun

    opened = CategoryRun.open(run)
    target = out or run / ("checked.jsonl" if check else "filled.jsonl")
    check_ending(target)
    is_own = other.data is None
    with progress():
        whole, source = other.catalogue(opened, own_tree=False)
        catalogue = used_part(whole, split)
        filled = fill_catalogue(
            opened,
            whole if is_own else own_products(opened),
            catalogue,
            target,
            check=check,
            threshold=threshold,
            alternatives=alternatives,
            candidates=candidates,  # type: ignore[arg-type]
            calibrate_on=calibrate_on,
            is_own=is_own,
            about={"data": source, "split": split},
        )
    say(filled.line())
    if filled.reliability is None:
        say("what confidence is worth was not measured: there are no other products to test it on")
    show(*filled.tables())
    if not filled.products:
        say(f"all {len(catalogue):,} products have a category: nothing to fill")
        next_step(["diptych", "categories", "fill", run, *([] if is_own else [other.data]), "--check"])
        return
    if filled.trained_on:
        say(
            f"the run was trained on {filled.trained_on:,} of these products and agrees with them too readily; "
            "--split test has others"
        )
    left = filled.products - filled.written
    agreed = f", {left:,} that agree with their own category left out" if left else ""
    say(f"{filled.written:,} products in {target}{agreed}")
    next_step(["head", "-3", str(target)])
