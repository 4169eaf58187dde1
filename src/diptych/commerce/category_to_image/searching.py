"""Indexes of products."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.category_to_image.run import CategoryRun, OtherData, PartOptions
from diptych.core.files import check_replaceable
from diptych.core.options import parameter, parse_values
from diptych.index import ENGINES, build_index
from diptych.index.engine import OF_PRODUCTS

_SAMPLE = 1000


class IndexOptions(PartOptions):
    """Options of an index of products; written to RUN/index-ENGINE by default."""

    engine: str = parameter(
        "exact", "The engine; diptych info engines lists them.", names="diptych.index:ENGINES"
    )
    option: list[str] = parameter([], "KEY=VALUE for the engine, e.g. ef_search=128. Repeatable.")


def index_products(run: CategoryRun, data: OtherData, options: IndexOptions, folder: Path) -> list[str]:
    """Build and save an index of products; return lines about it. Recall is measured on categories, as queries are."""
    engine, split = ENGINES.get(options.engine), options.split
    settings, catalogue = parse_values(options.option, "--option"), data.of(run, split)
    check_replaceable(folder, "index.json")
    if engine.filters:
        settings["records"] = product_records(catalogue)
    about = {"dataset": catalogue.name, "split": split or "all", "model": run.about["model"]}
    sample = run.category_rows(run.texts(run.tree)[:_SAMPLE])
    with run.embeddings(catalogue, **about) as embedded:
        built = build_index(embedded, engine.name, sample=sample, **settings)
        other = data.model_dump(mode="json")
        built.about[OF_PRODUCTS] = {"run": str(run.folder.resolve()), "other": other, "split": split}
        built.save(folder)
    lines = [f"{len(built):,} products of {catalogue.name}, engine {built.engine_name}, in {folder}"]
    if recall := built.about.get("recall"):
        lines.append("recall@{k} against exact on {queries} categories: {value:.3f}".format(**recall))
    return lines


def product_records(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return what searches can be restricted by: title, all categories above, whether there is an image."""
    tree, records = catalogue.tree, []
    for product, title in enumerate(catalogue.titles):
        above = {int(node) for place in catalogue.places_of(product) for node in tree.ancestors(place)}
        pictured = bool(catalogue.pictured[product])
        records.append({"title": title, "categories": sorted(map(tree.text, above)), "pictured": pictured})
    return records
