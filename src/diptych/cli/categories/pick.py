"""``diptych categories pick``: the best images for every category of a tree."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from diptych.cli.categories.sources import OtherData, PartOptions, RunFolder
from diptych.cli.console import next_step, progress, say, show


class PickOptions(PartOptions):
    """Which images are picked, and how they are shown; written to RUN/picks by default."""

    k: int = Field(8, ge=1, description="Images per category.", json_schema_extra={"flags": ["-k"]})
    among: Literal["all", "members"] = Field("all", description="members: only of products in it or below.")
    distinct: list[str] = Field(
        [],
        description="content or title: equal ones are picked once. Repeatable.",
    )
    sheet: bool = Field(True, description="Write the tree's contact sheet.")
    side: int = Field(112, ge=16, le=640, description="Longest side of its images, in pixels.")


def pick(run: RunFolder, data: OtherData, options: PickOptions) -> None:
    """Pick the best k images for every category: picks.json, and the tree with its images as tree.html.

    Categories are those of the products' tree, or of the run's where no product has a category. Scores are exact;
    a product without an image is never picked, and no image twice in a category.

    Examples:
        diptych categories pick runs/shop
        diptych categories pick runs/shop new-products -k 12 --out picks
        diptych categories pick runs/shop --among members --distinct content
    """
    from diptych.commerce.category_to_image.application import pick_about, pick_with
    from diptych.commerce.category_to_image.picking import PICKS
    from diptych.commerce.category_to_image.runs import CategoryRun
    from diptych.commerce.category_to_image.tables import pick_tables, pick_warnings
    from diptych.core.files import check_replaceable
    from diptych.report.categories import remove_tree_pages, write_tree_pages

    opened, target = CategoryRun.open(run), options.out or run / "picks"
    check_replaceable(target, PICKS)
    unreadable: dict[str, str] = {}
    with progress():
        catalogue, source = data.catalogue(opened, options.split)
        about = pick_about(opened, catalogue, source, options.split, own=data.data is None)
        for warning in pick_warnings(about, options.among):
            say(warning)
        picks = pick_with(opened, catalogue, target, options.k, options.among, options.distinct, about)  # type: ignore[arg-type]
        remove_tree_pages(target)  # they show what was picked before
        file = picks.save(target)
        if options.sheet:
            _, unreadable = write_tree_pages(picks, target, side=options.side)
    show(*pick_tables(picks))
    for name, why in list(unreadable.items())[:5]:
        say(f"{name}: {why}")
    if len(unreadable) > 5:
        say(f"and {len(unreadable) - 5:,} more images that cannot be read")
    say(f"{len(picks.products):,} images for {len(picks):,} categories in {file}")
    next_step(["open", target / "tree.html"] if options.sheet else ["less", file])
