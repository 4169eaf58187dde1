"""``diptych categories index``: the products of a shop, to be found by categories."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from diptych.cli.categories.sources import OtherData, PartOptions, RunFolder
from diptych.cli.console import next_step, progress, say
from diptych.cli.search import OF_PRODUCTS
from diptych.cli.sources import parse_values

if TYPE_CHECKING:
    from diptych.commerce.catalogue import Catalogue


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
    from diptych.commerce.catalogue.source import used_part
    from diptych.commerce.category_to_image.rankers import product_embeddings
    from diptych.commerce.category_to_image.runs import CategoryRun
    from diptych.core.files import check_replaceable
    from diptych.index import ENGINES, build_index

    opened, engine, split = CategoryRun.open(run), options.engine, options.split
    target = options.out or run / f"index-{engine}"
    declared, settings = ENGINES.get(engine), parse_values(options.option, "--option")
    check_replaceable(target, "index.json")
    target.parent.mkdir(parents=True, exist_ok=True)
    with progress(), tempfile.TemporaryDirectory(prefix=".rows-", dir=target.parent) as folder:
        whole, _ = data.catalogue(opened, own_tree=True)
        catalogue = used_part(whole, split)
        rows = product_embeddings(
            opened.model,
            opened.features(catalogue),
            Path(folder) / "rows",
            data=catalogue.fingerprint,
            about={"dataset": catalogue.name, "split": split or "all", "model": opened.about["model"]},
        )
        queries = opened.model.category_rows(opened.category_features(range(min(1000, len(opened.tree)))))
        if declared.filters:
            settings["records"] = _records(catalogue)
        # Categories are what the index will be queried with: recall is measured on them.
        built = build_index(rows, engine, sample=queries, **settings)
        other = data.model_dump(mode="json")
        built.about[OF_PRODUCTS] = {"run": str(run.resolve()), "other": other, "split": split}
        built.save(target)
    say(f"{len(built):,} products of {catalogue.name}, engine {built.engine_name}, in {target}")
    if "recall" in built.about:
        recall = built.about["recall"]
        say(f"recall@{recall['k']} against exact on {recall['queries']} categories: {recall['value']:.3f}")
    name = opened.tree.paths[-1][-1] if len(opened.tree) else "what to look for"
    next_step(["diptych", "search", target, name, "--category"])


def _records(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return what searches can be restricted by: title, all categories above, whether there is an image."""
    tree, records = catalogue.tree, []
    for product, title in enumerate(catalogue.titles):
        places = catalogue.places_of(product).tolist()
        above = {tree.text(int(node)) for place in places for node in tree.ancestors(place)}
        pictured = bool(catalogue.pictured[product])
        records.append({"title": title, "categories": sorted(above), "pictured": pictured})
    return records
