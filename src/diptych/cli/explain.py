"""``diptych explain``: why something was found, term by term."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console import next_step, print_table, progress, say
from diptych.cli.sources import Split
from diptych.cli.sparse_folder import SparseFolder, looks_like_a_picture
from diptych.cli.term_cards import caption_card, match_of, picture_card, row_card
from diptych.core.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from diptych.report.terms import Match


def explain(
    sparse: Annotated[
        Path,
        typer.Argument(
            help="A folder that diptych sparsify wrote, or an index of its rows.", show_default=False
        ),
    ],
    query: Annotated[
        str,
        typer.Argument(help="A sentence, the path of a picture, or an id of the split.", show_default=False),
    ],
    k: Annotated[int, typer.Option("-k", min=1, help="How many of the best are explained.")] = 3,
    item: Annotated[
        str | None,
        typer.Option(
            help="The id of one picture or caption to explain instead of the best.", show_default=False
        ),
    ] = None,
    of: Annotated[
        str | None,
        typer.Option(help="images or texts; what the query is not, when not given.", show_default=False),
    ] = None,
    shown: Annotated[int, typer.Option("--terms", min=1, help="How many terms of each.")] = 8,
    split: Split = None,
    sheet: Annotated[
        Path | None, typer.Option(help="Draw the first match into a .png.", show_default=False)
    ] = None,
) -> None:
    """Say which terms gave a match its score: a score is the sum of query weight × item weight.

    Examples:

      [bold]diptych explain runs/flickr8k/sparse "two dogs play in the snow" --sheet why.png[/bold]

      [bold]diptych explain runs/flickr8k/sparse/index-images-inverted "a red kayak" --item 2873188959.jpg[/bold]
    """
    from diptych.report.terms import write_match_sheet

    made = SparseFolder.of(sparse)
    with progress():
        matches = _matches(made, query, k, item, _side(query, of), split)
    if not matches:
        say(f"nothing shares a term with {query!r}")
    for place, match in enumerate(matches, 1):
        rows = [
            (
                one.term,
                f"{one.query:.2f}",
                f"{one.item:.2f}",
                f"{one.contribution:.3f}",
                _share(one.contribution, match),
            )
            for one in match.terms[:shown]
        ]
        rest = match.terms[shown:]
        if rest:
            left = sum(one.contribution for one in rest)
            rows.append((f"{len(rest)} more", "", "", f"{left:.3f}", _share(left, match)))
        columns = ("term", "query", "item", "gives", "of the score")
        about = f"{place}. {match.item.name}, score {match.score:.3f}: {match.item.caption}"
        print_table(about, columns, rows, numbers=columns[1:])
    if sheet is not None and matches:
        write_match_sheet(sheet, matches[0], shown=shown)
        say(f"drawn in {sheet}")
    elif matches:
        next_step(["diptych", "explain", sparse, query, "--sheet", "why.png"])


def _share(part: float, match: Match) -> str:
    return f"{100 * part / match.score:.0f} %" if match.score else "–"


def _side(query: str, of: str | None) -> str:
    if of not in (None, "images", "texts"):
        raise UsageError(f"--of {of!r}", "images or texts")
    if not query.strip():
        raise UsageError("the query is empty", "give a sentence or the path of a picture")
    return of or ("texts" if looks_like_a_picture(query) else "images")


def _matches(
    made: SparseFolder, query: str, k: int, item: str | None, of: str, split: str | None
) -> list[Match]:
    """The best items for a query, or the one that is named, by exact search in the split's rows."""
    from diptych.data.images import read_image
    from diptych.metrics.sparse_products import sparse_top_k

    vocabulary, rows, collection = made.sparsifier().vocabulary, made.rows(split), made.collection(split)
    items = rows.images if of == "images" else rows.texts
    caption: str | None = None
    if query in rows.texts.ids:
        place = list(rows.texts.ids).index(query)
        asked, caption = rows.texts.rows[[place]], collection.captions[place]
        card = caption_card(vocabulary, rows, collection, place, 0)
    elif query in rows.images.ids:
        place = list(rows.images.ids).index(query)
        asked, card = rows.images.rows[[place]], picture_card(vocabulary, rows, collection, place, 0)
    elif looks_like_a_picture(query):
        picture = partial(read_image, Path(query))
        asked = made.encoder().encode_images([picture()])
        card = row_card(vocabulary, asked, 0, name=query, picture=picture)
    else:
        asked, caption = made.encoder().encode_texts([query]), query
        card = row_card(vocabulary, asked, 0, name=query, caption=query)
    if item is None:
        found, _ = sparse_top_k(asked, items.rows, k)
        places = [place for place in found[0].tolist() if place >= 0]
    elif item in items.ids:
        places = [list(items.ids).index(item)]
    else:
        raise UnknownNameError(f"id among the {of} of split {split or made.split}", item, items.ids)
    make = picture_card if of == "images" else caption_card
    return [
        match_of(
            vocabulary,
            card,
            asked,
            make(vocabulary, rows, collection, place, 0),
            items.rows[[place]],
            caption,
        )
        for place in places
    ]
