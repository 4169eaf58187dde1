"""``diptych categories fill``: a category for products without one."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from diptych.cli.categories.sources import OtherData, PartOptions, RunFolder
from diptych.cli.console import next_step, progress, say, show


class FillOptions(PartOptions):
    """What is suggested, and how sure it has to be."""

    check: bool = Field(False, description="Also products whose own category is not the one suggested.")
    threshold: float = Field(0.5, ge=0, le=1, description="Confidence below which a path is cut.")
    alternatives: int = Field(3, ge=0, description="Likeliest categories to name.")
    candidates: Literal["specific", "all"] = Field(
        "specific", description="specific: leaves, and categories that hold products."
    )
    calibrate_on: str | None = Field(
        None,
        description="The split of the run's products that confidence is calibrated on.",
        json_schema_extra={"default": "its validation split"},
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
    from diptych.commerce.catalogue.source import used_part
    from diptych.commerce.category_to_image.application import own_products
    from diptych.commerce.category_to_image.filling.catalogue import fill_catalogue
    from diptych.commerce.category_to_image.filling.fill import check_ending
    from diptych.commerce.category_to_image.runs import CategoryRun

    opened, is_own = CategoryRun.open(run), data.data is None
    target = options.out or run / ("checked.jsonl" if options.check else "filled.jsonl")
    check_ending(target)
    with progress():
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
    show(*filled.tables())
    for note in (filled.line(), *filled.notes()):
        say(note)
    if not filled.products:
        say(f"all {len(catalogue):,} products have a category: nothing to fill")
        next_step(["diptych", "categories", "fill", run, *([] if is_own else [data.data]), "--check"])
        return
    say(f"{filled.written:,} products in {target}")
    next_step(["head", "-3", target])
