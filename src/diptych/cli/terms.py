"""``diptych sparse terms``: what a picture or a caption is as a bag of terms."""

from __future__ import annotations

from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console import next_step, progress, say, show
from diptych.cli.sources import Split
from diptych.cli.sparse_folder import SparseFolder, looks_like_a_picture
from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.table import Table

if TYPE_CHECKING:
    from diptych.report.sparse import Bag
    from diptych.sparse import SparseEncoder


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
    sheet: Annotated[
        Path | None, typer.Option(help="Draw them into a .png, .jpg or .html.", show_default=False)
    ] = None,
) -> None:
    """Print the heaviest terms of pictures and captions, and draw them.

    Terms that the caption, or one of the image's captions, contains have an asterisk: the others are expansion.

    Examples:

      [bold]diptych sparse terms runs/flickr8k/sparse --sheet terms.png[/bold]

      [bold]diptych sparse terms runs/flickr8k/sparse "two dogs play in the snow" holiday.jpg -k 20[/bold]
    """
    from diptych.report.document import Gallery
    from diptych.report.sheets import write_sheet
    from diptych.report.sparse import OWN_TERMS, evenly

    made = SparseFolder.open(sparse)
    with progress():
        reader = _Reader(made, split)
        places = evenly(len(reader.rows.images), count)
        bags = [reader.bag(name) for name in what or [reader.rows.images.ids[place] for place in places]]
        cards = [bag.card(reader.vocabulary, k) for bag in bags]
    rows = []
    for card in cards:
        found = (f"{term}{'*' if own else ''} {weight}" for term, _, weight, own in card.bars)
        rows.append((card.text if card.picture is None else card.name, ", ".join(found) or "no term at all"))
    show(Table.of("", "", ("what", f"top {k} terms"), rows))
    if sheet is not None:
        write_sheet(sheet, f"The heaviest terms, {made.folder.name}", [Gallery("", cards, text=OWN_TERMS)])
        say(f"drawn in {sheet}")
    next_step(
        ["diptych", "sparse", "explain", sparse, "what to look for"],
        *([] if sheet else ["--sheet terms.png"]),
    )


class _Reader:
    """Images and captions of a split, sentences and files as bags of terms; the encoder is loaded when needed."""

    def __init__(self, made: SparseFolder, split: str | None) -> None:
        self.made = made
        self.vocabulary, self.rows = made.sparsifier().vocabulary, made.rows(split)
        self.collection = made.collection(split)

    @cached_property
    def encoder(self) -> SparseEncoder:
        return self.made.encoder()

    def bag(self, name: str) -> Bag:
        """Return the bag of an id of the split, of a file, or of a sentence."""
        from diptych.data.images import read_image
        from diptych.report.sparse import Bag

        if not name.strip():
            raise UsageError("one of the texts is empty", "give a sentence, a path or an id")
        for kind, items in (("images", self.rows.images), ("texts", self.rows.texts)):
            if name in items.ids:
                return Bag.of(self.rows, self.collection, kind, list(items.ids).index(name))
        if looks_like_a_picture(name):
            picture = partial(read_image, Path(name))
            return Bag(name, self.encoder.encode_images([picture()]), picture=picture)
        return Bag(name, self.encoder.encode_texts([name]), [name])


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
        Path | None, typer.Option(help="Draw the matches into a .png, .jpg or .html.", show_default=False)
    ] = None,
) -> None:
    """Say which terms gave a match its score: a score is the sum of query weight × item weight.

    Examples:

      [bold]diptych sparse explain runs/flickr8k/sparse "two dogs play in the snow" --sheet why.png[/bold]

      [bold]diptych sparse explain runs/flickr8k/sparse/index-images-inverted "a red kayak" --item 2873188959.jpg[/bold]
    """
    from diptych.report.sheets import write_sheet
    from diptych.report.sparse import Bag, match_gallery
    from diptych.sparse.explain import match_table, match_terms

    if of not in (None, "images", "texts"):
        raise UsageError(f"--of {of!r}", "images or texts")
    made = SparseFolder.of(sparse)
    with progress():
        reader = _Reader(made, split)
        asked = reader.bag(query)
        kind = of or ("texts" if looks_like_a_picture(query) else "images")
        found = [
            Bag.of(reader.rows, reader.collection, kind, at) for at in _best(reader, asked, kind, item, k)
        ]
    if not found:
        say(f"nothing shares a term with {query!r}")
    for place, one in enumerate(found, 1):
        terms = match_terms(asked.row, one.row, reader.vocabulary.terms, asked.own_words(reader.vocabulary))
        score = sum(term.contribution for term in terms)
        text = next(iter(one.captions), "no caption")
        show(match_table(f"{place}. {one.name}, score {score:.3f}: {text}", terms, shown))
    if sheet is not None and found:
        galleries = [match_gallery(reader.vocabulary, asked, one, shown) for one in found]
        write_sheet(sheet, f"What scores for {query!r} are made of", galleries)
        say(f"drawn in {sheet}")
    elif found:
        next_step(["diptych", "sparse", "explain", sparse, query, "--sheet", "why.png"])


def _best(reader: _Reader, asked: Bag, kind: str, item: str | None, k: int) -> list[int]:
    """The places of the best items for a query, or of the one that is named, by exact search in the split's rows."""
    from diptych.metrics.sparse_products import sparse_top_k

    items = reader.rows.images if kind == "images" else reader.rows.texts
    if item is None:
        return [place for place in sparse_top_k(asked.row, items.rows, k)[0][0].tolist() if place >= 0]
    if item not in items.ids:
        raise UnknownNameError(
            f"id among the {kind} of split {reader.rows.about['split'] or 'all'}", item, items.ids
        )
    return [list(items.ids).index(item)]
