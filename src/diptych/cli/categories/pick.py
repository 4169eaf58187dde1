"""``diptych categories pick``: the best pictures for every category of a tree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.categories.sources import (
    OtherData,
    OtherProducts,
    RunFolder,
    SplitName,
    TaxonomyFile,
    TaxonomyFormatName,
    UnknownPaths,
    rows_for,
    trained_on,
    used_part,
)
from diptych.cli.console import next_step, print_table, progress, say
from diptych.cli.sources import Images, ReaderName, ReaderOptions

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.picking import Picks


def pick(
    run: RunFolder,
    data: OtherProducts = None,
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
    images: Images = None,
    reader: ReaderName = None,
    reader_option: ReaderOptions = None,
    taxonomy: TaxonomyFile = None,
    taxonomy_format: TaxonomyFormatName = None,
    unknown_paths: UnknownPaths = "error",
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
    from diptych.commerce.catalogue.catalogue import category_texts
    from diptych.commerce.category_to_image.picking import PICKS, pick_rows
    from diptych.commerce.category_to_image.runs import CategoryRun
    from diptych.core.files import check_replaceable
    from diptych.report.categories_tree import remove_tree_sheet, write_tree_sheet

    opened = CategoryRun.open(run)
    target = out or run / "picks"
    check_replaceable(target, PICKS)
    unreadable: dict[str, str] = {}
    with progress():
        other = OtherData(data, images, reader, reader_option, taxonomy, taxonomy_format, unknown_paths)
        whole, source = other.catalogue(opened, own_tree=True)
        catalogue = used_part(whole, split)
        texts = category_texts(catalogue.tree, range(len(catalogue.tree)), opened.options.query)
        categories = opened.model.category_rows(opened.category_features(texts))
        about: dict[str, Any] = {
            "ranker": opened.model.describe(),
            "model": opened.about["model"],
            "fingerprint": opened.about["fingerprint"],
            "run": str(run.resolve()),
            "data": source,
            "split": split,
            "trained_on": trained_on(opened, catalogue, own=data is None),
        }
        with rows_for(opened, opened.model, catalogue, target) as rows:
            picks = pick_rows(
                categories,
                rows,
                catalogue,
                k,
                texts=texts,
                among=among,  # type: ignore[arg-type]
                distinct=tuple(distinct or ()),  # type: ignore[arg-type]
                about=about,
            )
        remove_tree_sheet(target)  # it shows what was picked before
        file = picks.save(target)
        if sheet:
            _, unreadable = write_tree_sheet(picks, target, side=side)
    _show(picks, split)
    if among == "all" and about["trained_on"]:
        say(
            f"the run was trained on {about['trained_on']:,} of these products, so found flatters it; "
            "--split test has others"
        )
    if among == "all" and opened.options.setting != "all":
        say(
            f"the run was trained on {opened.options.setting} categories alone; pictures for every level are found "
            "better by one of diptych categories train … --setting all --set resample=true"
        )
    for name, why in list(unreadable.items())[:5]:
        say(f"{name}: {why}")
    if len(unreadable) > 5:
        say(f"and {len(unreadable) - 5:,} more pictures that cannot be read")
    say(f"{len(picks.products):,} pictures for {len(picks):,} categories in {file}")
    next_step(["open", str(target / "tree.html")] if sheet else ["less", str(file)])


def _show(picks: Picks, split: str | None) -> None:
    """What was picked, by level of the tree."""
    import numpy as np

    tree = picks.catalogue.tree
    owner = np.repeat(tree.depth[picks.nodes], np.diff(picks.start))
    rows = []
    found = picks.among == "all"  # among members everything is found that can be
    columns = ("level", "categories", "pictures", *(["found"] if found else []), "without a picture")
    for depth in range(1, int(tree.depth.max(initial=0)) + 1):
        here = tree.depth[picks.nodes] == depth
        right = picks.right[owner == depth]
        could = int(np.minimum(picks.there[here], picks.k).sum())
        share = f"{100 * int((right == 1).sum()) / could:.1f} %" if could else "–"
        empty = int((np.diff(picks.start)[here] == 0).sum())
        shares = [share] if found else []
        rows.append((str(depth), f"{int(here.sum()):,}", f"{len(right):,}", *shares, f"{empty:,}"))
    print_table(
        f"pictures of {len(picks.catalogue):,} products{f' of split {split}' if split else ''}",
        columns,
        rows,
        numbers=columns,
        caption=f"found: of the products sorted into a category or below it that could be among its {picks.k}; level 1 "
        "is the most general"
        if found
        else "pictures of products sorted into a category or below it; level 1 is the most general",
    )
