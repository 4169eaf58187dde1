"""``diptych categories index``: the products of a shop, to be found by categories."""

from __future__ import annotations

from pydantic import Field

from diptych.cli.categories.sources import OtherData, PartOptions, RunFolder
from diptych.cli.console import next_step, progress, say
from diptych.cli.sources import parse_values


class IndexOptions(PartOptions):
    """What is indexed, and how; written to RUN/index-ENGINE by default."""

    engine: str = Field(
        "exact",
        description="How it is searched; diptych info lists engines for dense rows.",
        json_schema_extra={"names": "diptych.index:ENGINES"},
    )
    option: list[str] = Field([], description="KEY=VALUE for the engine, e.g. ef_search=128. Repeatable.")


def index(run: RunFolder, data: OtherData, options: IndexOptions) -> None:
    """Index products as a run represents them; diptych search then finds them by the name of a category.

    Any words can be searched for, not only categories of the tree. Products without an image are found by their
    title and attributes.

    Examples:
        diptych categories index runs/shop
        diptych categories index runs/shop new-products --engine hnsw
    """
    from diptych.commerce.category_to_image.application import index_products
    from diptych.commerce.category_to_image.runs import CategoryRun
    from diptych.index.searcher import OF_PRODUCTS

    opened, engine, split = CategoryRun.open(run), options.engine, options.split
    target, settings = options.out or run / f"index-{engine}", parse_values(options.option, "--option")
    with progress():
        catalogue, _ = data.catalogue(opened, split)
        made_of = {"run": str(run.resolve()), "other": data.model_dump(mode="json"), "split": split}
        about = {OF_PRODUCTS: made_of}
        built = index_products(
            opened, catalogue, target, split or "all", engine=engine, settings=settings, about=about
        )
    say(f"{len(built):,} products of {catalogue.name}, engine {built.engine_name}, in {target}")
    if "recall" in built.about:
        recall = built.about["recall"]
        say(f"recall@{recall['k']} against exact on {recall['queries']} categories: {recall['value']:.3f}")
    name = opened.tree.paths[-1][-1] if len(opened.tree) else "what to look for"
    next_step(["diptych", "search", target, name, "--category"])
