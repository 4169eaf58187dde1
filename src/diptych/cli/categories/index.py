"""``diptych categories index``: the products of a shop, to be found by categories."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.categories.sources import OtherData, RunFolder, SplitName, with_groups
from diptych.cli.console import next_step, progress, say
from diptych.cli.sources import parse_values

if TYPE_CHECKING:
    from diptych.commerce.catalogue import Catalogue

CATEGORY = "category_run"
"""Where an index says which run its products were embedded by, and how they were read."""


@with_groups
def index(
    run: RunFolder,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where to write; RUN/index-ENGINE by default.", show_default=False),
    ] = None,
    engine: Annotated[
        str, typer.Option(help="How it is searched: exact, hnsw or another of diptych info for dense rows.")
    ] = "exact",
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", help="KEY=VALUE for the engine, e.g. ef_search=128. Repeatable.", show_default=False
        ),
    ] = None,
    split: SplitName = None,
    *,
    other: OtherData,
) -> None:
    """Index products as a run represents them; diptych search then finds them by the name of a category.

    Any words can be asked for, not only categories of the tree. Products without a picture are found by their title
    and attributes.

    Examples:

      [bold]diptych categories index runs/shop[/bold]

      [bold]diptych categories index runs/shop new-products --out shop-index --engine hnsw[/bold]
    """
    from diptych.commerce.catalogue.source import used_part
    from diptych.commerce.category_to_image.rankers import product_embeddings
    from diptych.commerce.category_to_image.runs import CategoryRun
    from diptych.core.artifact import encode
    from diptych.core.files import check_replaceable
    from diptych.index import ENGINES, build_index

    opened = CategoryRun.open(run)
    target = out or run / f"index-{engine}"
    declared, options = ENGINES.get(engine), parse_values(option, "--option")
    check_replaceable(target, "index.json")
    target.parent.mkdir(parents=True, exist_ok=True)
    with progress(), tempfile.TemporaryDirectory(prefix=".rows-", dir=target.parent) as folder:
        whole, _ = other.catalogue(opened, own_tree=True)
        catalogue = used_part(whole, split)
        rows = product_embeddings(
            opened.model,
            opened.features(catalogue),
            Path(folder) / "rows",
            data=catalogue.fingerprint,
            about={"dataset": catalogue.name, "split": split or "all", "model": opened.about["model"]},
        )
        asked = opened.model.category_rows(opened.category_features(range(min(1000, len(opened.tree)))))
        if declared.filters:
            options["records"] = _records(catalogue)
        # Categories are what the index will be asked with: recall is measured on them.
        built = build_index(rows, engine, sample=asked, **options)
        built.about[CATEGORY] = {"run": str(run.resolve()), "other": encode(other, {}), "split": split}
        built.save(target)
    say(f"{len(built):,} products of {catalogue.name}, engine {built.engine_name}, in {target}")
    if "recall" in built.about:
        recall = built.about["recall"]
        say(f"recall@{recall['k']} against exact on {recall['queries']} categories: {recall['value']:.3f}")
    name = opened.tree.paths[-1][-1] if len(opened.tree) else "what to look for"
    next_step(["diptych", "search", str(target), name, "--category"])


def _records(catalogue: Catalogue) -> list[dict[str, Any]]:
    """What searches can be restricted by: title, every category on a product's paths, whether it has a picture."""
    tree = catalogue.tree
    return [
        {
            "title": catalogue.titles[product],
            "categories": sorted(
                {
                    tree.text(int(above))
                    for node in catalogue.places_of(product)
                    for above in tree.ancestors(int(node))
                }
            ),
            "pictured": bool(catalogue.pictured[product]),
        }
        for product in range(len(catalogue))
    ]
