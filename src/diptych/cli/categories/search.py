"""``diptych search --category``: a category's name, or any words, against an index of products."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.cli.categories.index import CATEGORY
from diptych.cli.categories.sources import OtherData
from diptych.cli.console import next_step, progress, say, show
from diptych.cli.sparse_folder import looks_like_a_picture
from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.table import Table

if TYPE_CHECKING:
    from diptych.commerce.catalogue import Catalogue
    from diptych.data.taxonomy import CategoryTree
    from diptych.index import Index
    from diptych.report.document import Card

_NAMED = 3
"""Categories of one name that are spelt out."""


def is_of_products(index: Index) -> bool:
    """Whether ``diptych categories index`` made it."""
    return CATEGORY in index.about


def search_products(
    index: Index, folder: Path, query: str, k: int, sheet: Path | None, options: dict[str, Any]
) -> None:
    """Print the products that the index's run finds for ``query``, and draw them where a sheet is asked for.

    Where the query is a category of the products' tree, by name or path, what is found is right or wrong.
    """
    from diptych.commerce.catalogue.catalogue import category_texts
    from diptych.commerce.catalogue.source import described, used_part
    from diptych.commerce.category_to_image.runs import CategoryRun
    from diptych.encoders.embeddings import check_still_there
    from diptych.report.document import MARKS, Gallery
    from diptych.report.sheets import write_sheet

    if not is_of_products(index):
        raise UsageError(
            f"{folder} is no index of products",
            "make one: diptych categories index RUN, or leave --category out",
        )
    if looks_like_a_picture(query):
        raise UsageError(f"{query!r} is a picture; products are found by words", "give a category's name")
    about = index.about[CATEGORY]
    try:
        where, split = Path(about["run"]), about["split"]
        other = described(OtherData, about["other"], folder)
    except (KeyError, TypeError) as error:
        raise StorageError(f"{folder} does not say which run it is of: {error}", "index again") from None
    check_still_there(str(where), folder)
    with progress():
        run = CategoryRun.open(where)
        catalogue = used_part(other.catalogue(run, own_tree=True)[0], split)
        meant = _query_nodes(catalogue.tree, query)
        words = query
        if len(meant) == 1 and run.options.query == "path":  # as the run knows categories
            words = category_texts(catalogue.tree, meant, "path")[0]
        rows = run.model.category_rows(run.category_features([words]))
        hits = index.search(rows, k, encoder=run.model.fingerprint, **options)
    retrieved, places = _retrieved(next(iter(hits)), catalogue, meant)
    table = [
        (card.label, card.score, card.name, MARKS[card.state], card.text, at)
        for card, at in zip(retrieved, places, strict=True)
    ]
    title = f"products for {query!r}" + (f", asked as {words!r}" if words != query else "")
    columns = ("rank", "score", "id", "", "title", "category")
    show(Table.of(title, hits.note, columns, table))
    say(_legend(catalogue.tree, query, meant))
    seen = sum(run.splits.get(item.name) == "train" for item in retrieved)
    if meant and seen:
        say(
            f"the run was trained on {seen:,} of these {len(retrieved):,}: what is right among them flatters it"
        )
    if sheet is None:
        next_step(["diptych", "search", str(folder), query, "--category", "--sheet", "found.png"])
        return
    for name in write_sheet(sheet, title, [Gallery("", retrieved)]):
        say(f"the picture of {name} cannot be read")
    say(f"contact sheet in {sheet}")


def _query_nodes(tree: CategoryTree, query: str) -> list[int]:
    """Return the categories whose name or whole path the query is, whatever its case and spaces."""
    from diptych.data.taxonomy import SEPARATOR

    asked = tuple(" ".join(name.split()).casefold() for name in query.split(SEPARATOR.strip()))
    folded = ([" ".join(name.split()).casefold() for name in path] for path in tree.paths)
    whole = " ".join(query.split()).casefold()
    return [node for node, path in enumerate(folded) if tuple(path) == asked or path[-1] == whole]


def _legend(tree: CategoryTree, query: str, meant: list[int]) -> str:
    """Return what the marks mean."""
    if not meant:
        return f"{query!r} is no category of the tree: nothing found is right or wrong"
    texts = [tree.text(node) for node in meant[:_NAMED]]
    more = f" and {len(meant) - _NAMED:,} more" if len(meant) > _NAMED else ""
    return f"✓ sorted into {' or '.join(texts)}{more}, or below it; ✗ elsewhere; no mark: without a category"


def _retrieved(
    found: list[tuple[str, float]], catalogue: Catalogue, meant: list[int]
) -> tuple[list[Card], list[str]]:
    """Return what was found with titles and images, and the texts of its categories."""
    from diptych.report.document import Card, state_of

    tree, rows = catalogue.tree, {name: row for row, name in enumerate(catalogue.ids)}
    asked = set(meant)
    items, places = [], []
    for rank, (name, score) in enumerate(found, 1):
        if name not in rows:
            raise DataError(
                f"the index finds {name!r}, which {catalogue.name} no longer holds",
                "index the products again",
            )
        own = catalogue.places_of(rows[name]).tolist()
        above = {int(node) for place in own for node in tree.ancestors(place)}
        state = state_of(not asked.isdisjoint(above)) if asked and own else ""
        image = int(catalogue.picture_rows[rows[name]])
        picture = partial(catalogue.collection.image, image) if image >= 0 else None
        title = catalogue.titles[rows[name]]
        items.append(Card(name, picture, title, f"{rank}", state, f"{score:.3f}"))
        places.append("; ".join(tree.text(place) for place in own))
    return items, places
