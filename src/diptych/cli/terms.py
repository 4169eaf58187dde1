"""``diptych sparse terms``: what a picture or a caption is as a bag of terms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diptych.cli.console import next_step, print_table, progress, say
from diptych.cli.sources import Split
from diptych.cli.sparse_folder import SparseFolder, looks_like_a_picture
from diptych.core.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from diptych.data.collection import Collection
    from diptych.report.pictures import PictureSource
    from diptych.report.terms import Match, TermCard
    from diptych.sparse import SparsifiedCollection, TermVocabulary


def terms(
    sparse: Annotated[
        Path, typer.Argument(help="A folder that diptych sparse train wrote.", show_default=False)
    ],
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help="Sentences, paths of pictures, or ids of the split; pictures of the split without any.",
            show_default=False,
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many terms.")] = 10,
    count: Annotated[int, typer.Option("-n", min=1, help="How many pictures of the split.")] = 10,
    split: Split = None,
    sheet: Annotated[Path | None, typer.Option(help="Draw them into a .png.", show_default=False)] = None,
) -> None:
    """Print the heaviest terms of pictures and captions, and draw them.

    A caption's own terms are marked with an asterisk: the others are expansion.

    Examples:

      [bold]diptych sparse terms runs/flickr8k/sparse --sheet terms.png[/bold]

      [bold]diptych sparse terms runs/flickr8k/sparse "two dogs play in the snow" holiday.jpg -k 20[/bold]
    """
    from diptych.report.terms import write_terms_sheet

    made = SparseFolder.open(sparse)
    with progress():
        cards = list(_cards(made, what or [], split, k, count))
    rows = []
    for card in cards:
        found = (f"{one.term}{'*' if one.own else ''} {one.weight:.2f}" for one in card.terms)
        what_it_is = card.caption if card.picture is None else card.name
        rows.append((what_it_is, ", ".join(found) or "no term at all"))
    print_table("", ("what", f"top {k} terms"), rows)
    if sheet is not None:
        write_terms_sheet(sheet, f"The heaviest terms, {made.folder.name}", cards)
        say(f"drawn in {sheet}")
    next_step(
        ["diptych", "sparse", "explain", sparse, "what to look for"],
        *([] if sheet else ["--sheet terms.png"]),
    )


def _cards(made: SparseFolder, what: list[str], split: str | None, k: int, count: int) -> Iterator[TermCard]:
    """What is named, each in its turn, or pictures of the split; the encoder is loaded when it is needed."""
    from diptych.data.images import read_image

    vocabulary, rows, collection = made.sparsifier().vocabulary, made.rows(split), made.collection(split)
    if not what:
        for place in evenly(rows.images.ids, count):
            yield picture_card(vocabulary, rows, collection, place, k)
        return
    pictures = {name: place for place, name in enumerate(rows.images.ids)}
    captions = {name: place for place, name in enumerate(rows.texts.ids)}
    encoder = None
    for name in what:
        if not name.strip():
            raise UsageError("one of the texts is empty", "give a sentence, a path or an id")
        if name in pictures:
            yield picture_card(vocabulary, rows, collection, pictures[name], k)
        elif name in captions:
            yield caption_card(vocabulary, rows, collection, captions[name], k)
        else:
            encoder = encoder or made.encoder()
            if looks_like_a_picture(name):
                row = encoder.encode_images([read_image(Path(name))])
                yield row_card(vocabulary, row, k, name=name, picture=partial(read_image, Path(name)))
            else:
                yield row_card(vocabulary, encoder.encode_texts([name]), k, name=name, caption=name)


def row_card(
    vocabulary: TermVocabulary,
    row: csr_array,
    k: int,
    *,
    name: str,
    caption: str | None = None,
    about: str = "",
    picture: PictureSource | None = None,
) -> TermCard:
    """The k heaviest terms of one row.

    Args:
        row: (1, |V|).
    """
    from diptych.report.terms import TermCard, WeightedTerm
    from diptych.sparse import marked_terms

    own = None if caption is None else vocabulary.caption_terms([caption])
    words = [] if caption is None else _words(vocabulary, caption)
    marked = marked_terms(row, own, vocabulary.terms, k, vocabulary.special, words) if k else []
    terms = [WeightedTerm(*one) for one in marked]
    return TermCard(name, terms, caption=about if caption is None else caption, picture=picture)


def picture_card(
    vocabulary: TermVocabulary, rows: SparsifiedCollection, collection: Collection, place: int, k: int
) -> TermCard:
    """The picture in row ``place`` of a split, with the first of its captions below it."""
    return row_card(
        vocabulary,
        rows.images.rows[[place]],
        k,
        name=rows.images.ids[place],
        about=next(iter(collection.captions_of(place)), ""),
        picture=partial(collection.image, place),
    )


def caption_card(
    vocabulary: TermVocabulary, rows: SparsifiedCollection, collection: Collection, place: int, k: int
) -> TermCard:
    """The caption in row ``place`` of a split."""
    row = rows.texts.rows[[place]]
    return row_card(vocabulary, row, k, name=rows.texts.ids[place], caption=collection.captions[place])


def match_of(
    vocabulary: TermVocabulary,
    query: TermCard,
    query_row: csr_array,
    item: TermCard,
    item_row: csr_array,
    caption: str | None,
) -> Match:
    """What the score of a query and an item is made of; pieces of one word of ``caption`` put together."""
    from diptych.report.terms import Match, MatchTerm
    from diptych.sparse import explain_match, in_words, readable

    found = explain_match(query_row, item_row, vocabulary.terms)
    score = sum(one.contribution for one in found)
    if any(one.contribution < 0 for one in found):
        raise UsageError("a weight is negative", "explanations are of rows that a head made")
    if caption is not None:
        found = in_words(found, _words(vocabulary, caption))
    terms = [MatchTerm(readable(one.term), one.query, one.item, one.contribution) for one in found]
    return Match(query, item, terms, score)


def _words(vocabulary: TermVocabulary, caption: str) -> list[tuple[str, list[str]]]:
    return [
        (word, [vocabulary.terms[column] for column in columns])
        for word, columns in vocabulary.words_of(caption)
    ]


def evenly(sequence: Sequence[Any] | int, count: int) -> Iterator[int]:
    """At most ``count`` places of so many, evenly spaced."""
    size = sequence if isinstance(sequence, int) else len(sequence)
    taken = min(count, size)
    yield from (place * size // taken for place in range(taken))


def explain(
    sparse: Annotated[
        Path,
        typer.Argument(
            help="A folder that diptych sparse train wrote, or an index of its rows.", show_default=False
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

      [bold]diptych sparse explain runs/flickr8k/sparse "two dogs play in the snow" --sheet why.png[/bold]

      [bold]diptych sparse explain runs/flickr8k/sparse/index-images-inverted "a red kayak" --item 2873188959.jpg[/bold]
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
        next_step(["diptych", "sparse", "explain", sparse, query, "--sheet", "why.png"])


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
