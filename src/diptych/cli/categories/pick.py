"""``diptych categories pick``: the best pictures for every category of a tree."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from diptych.cli.categories.sources import OtherData, RunFolder, SplitName, with_groups
from diptych.cli.console import next_step, progress, say, show


@with_groups
def pick(
    run: RunFolder,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A folder; RUN/picks by default.", show_default=False)
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Pictures per category.")] = 8,
    among: Annotated[
        str,
        typer.Option(
            help="all: any product's picture; members: only of products sorted into it or below it."
        ),
    ] = "all",
    distinct: Annotated[
        list[str] | None,
        typer.Option(
            help="content: files of the same bytes count as one picture; title: nor one title twice. Repeatable.",
            show_default=False,
        ),
    ] = None,
    sheet: Annotated[bool, typer.Option(help="Draw the tree's contact sheet.")] = True,
    side: Annotated[int, typer.Option(min=16, max=640, help="Longest side of its pictures, pixels.")] = 112,
    split: SplitName = None,
    *,
    other: OtherData,
) -> None:
    """Pick the best k pictures for every category: picks.json, and the tree with its pictures as tree.html.

    Categories are those of the products' tree (the run's where none of them has a category), whether the run has seen
    them or not; scores are exact, equal ones in
    the order of the products. A product without a picture is never picked, and one picture never twice in a category.

    Examples:

      [bold]diptych categories pick runs/shop[/bold]

      [bold]diptych categories pick runs/shop new-products --taxonomy taxonomy.txt -k 12 --out picks[/bold]

      [bold]diptych categories pick runs/shop --among members --distinct content --distinct title[/bold]
    """
    from diptych.commerce.catalogue.source import used_part
    from diptych.commerce.category_to_image.application import pick_about, pick_with
    from diptych.commerce.category_to_image.picking import PICKS
    from diptych.commerce.category_to_image.runs import CategoryRun
    from diptych.commerce.category_to_image.tables import pick_tables, pick_warnings
    from diptych.core.files import check_replaceable
    from diptych.report.categories import remove_tree_pages, write_tree_pages

    opened, target = CategoryRun.open(run), out or run / "picks"
    check_replaceable(target, PICKS)
    unreadable: dict[str, str] = {}
    with progress():
        whole, source = other.catalogue(opened, own_tree=True)
        catalogue = used_part(whole, split)
        about = pick_about(opened, catalogue, source, split, own=other.data is None)
        for warning in pick_warnings(about, among):
            say(warning)
        picks = pick_with(opened, catalogue, target, k, among, distinct or (), about)  # type: ignore[arg-type]
        remove_tree_pages(target)  # they show what was picked before
        file = picks.save(target)
        if sheet:
            _, unreadable = write_tree_pages(picks, target, side=side)
    show(*pick_tables(picks))
    for name, why in list(unreadable.items())[:5]:
        say(f"{name}: {why}")
    if len(unreadable) > 5:
        say(f"and {len(unreadable) - 5:,} more images that cannot be read")
    say(f"{len(picks.products):,} images for {len(picks):,} categories in {file}")
    next_step(["open", str(target / "tree.html")] if sheet else ["less", str(file)])
