"""``diptych search --category``: a category's name, or any words, against an index of products."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.cli.categories.index import CATEGORY
from diptych.cli.categories.used import OtherData, used_part
from diptych.cli.console import next_step, print_table, say
from diptych.cli.progress import progress
from diptych.cli.queries import looks_like_a_picture
from diptych.cli.sources import check_still_there
from diptych.core.errors import DataError, StorageError, UsageError

if TYPE_CHECKING:
    from diptych.commerce.catalogue import Catalogue
    from diptych.index import Index
    from diptych.report import Retrieved

__all__ = ["is_of_products", "search_products"]


def is_of_products(index: Index) -> bool:
    """Whether ``diptych categories index`` made it."""
    return CATEGORY in index.about


def search_products(
    index: Index, folder: Path, query: str, k: int, sheet: Path | None, options: dict[str, Any]
) -> None:
    """Print the products that the index's run finds for ``query``, and draw them where a sheet is asked for.

    Where the query is a category of the products' tree, by name or path, what is found is right or wrong.

    Raises:
        UsageError: the index is not one of products, the query is a picture, or the run is gone.
        DataError: a product is found that the data no longer holds.
    """
    from diptych.commerce.category_to_image.runs import CategoryRun
    from diptych.report import write_contact_sheet

    if not is_of_products(index):
        raise UsageError(
            f"{folder} is no index of products",
            "make one: diptych categories index RUN, or leave --category out",
        )
    if looks_like_a_picture(query):
        raise UsageError(f"{query!r} is a picture; products are found by words", "give a category's name")
    said = index.about[CATEGORY]
    try:
        where, other, split = Path(said["run"]), OtherData.from_dict(said["other"]), said["split"]
    except (KeyError, TypeError) as error:
        raise StorageError(f"{folder} does not say which run it is of: {error}", "index again") from None
    check_still_there(str(where), folder)
    with progress():
        run = CategoryRun.open(where)
        rows = run.model.category_rows(run.category_features([query]))
        hits = index.search(rows, k, encoder=run.model.fingerprint, **options)
        catalogue = used_part(other.catalogue(run, own_tree=True)[0], split)
    retrieved, places = _retrieved(next(iter(hits)), catalogue, query)
    table = [
        (
            str(place),
            f"{item.score:.3f}",
            item.name,
            {True: "✓", False: "✗", None: ""}[item.is_right],
            item.caption,
            at,
        )
        for place, (item, at) in enumerate(zip(retrieved, places, strict=True), 1)
    ]
    columns = ("rank", "score", "id", "", "title", "category")
    print_table(f"products for {query!r}", columns, table, numbers=("rank", "score"), caption=hits.note)
    if sheet is None:
        next_step(shlex.join(["diptych", "search", str(folder), query, "--category", "--sheet", "found.png"]))
        return
    for name in write_contact_sheet(sheet, query, retrieved):
        say(f"the picture of {name} cannot be read")
    say(f"contact sheet in {sheet}")


def _retrieved(
    found: list[tuple[str, float]], catalogue: Catalogue, query: str
) -> tuple[list[Retrieved], list[str]]:
    """What was found with titles and pictures, and the texts of its categories."""
    from diptych.report import Retrieved

    tree, rows = catalogue.tree, {name: row for row, name in enumerate(catalogue.ids)}
    asked = {
        node
        for node, path in enumerate(tree.paths)
        if query.casefold() in (path[-1].casefold(), tree.text(node).casefold())
    }
    items, places = [], []
    for name, score in found:
        if name not in rows:
            raise DataError(
                f"the index finds {name!r}, which {catalogue.name} no longer holds",
                "index the products again",
            )
        own = catalogue.places_of(rows[name]).tolist()
        above = {int(node) for place in own for node in tree.ancestors(place)}
        picture = int(catalogue.picture_rows[rows[name]])
        items.append(
            Retrieved(
                name,
                score,
                is_right=not asked.isdisjoint(above) if asked and own else None,
                caption=catalogue.titles[rows[name]],
                picture=partial(catalogue.collection.image, picture) if picture >= 0 else None,
            )
        )
        places.append("; ".join(tree.text(place) for place in own))
    return items, places
