"""``diptych terms``: what a picture or a caption is as a bag of terms."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diptych.cli.console import next_step, print_table, progress, say
from diptych.cli.sources import Split
from diptych.cli.sparse_folder import SparseFolder, looks_like_a_picture
from diptych.cli.term_cards import caption_card, evenly, picture_card, row_card
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.report.terms import TermCard


def terms(
    sparse: Annotated[Path, typer.Argument(help="A folder that diptych sparsify wrote.", show_default=False)],
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

      [bold]diptych terms runs/flickr8k/sparse --sheet terms.png[/bold]

      [bold]diptych terms runs/flickr8k/sparse "two dogs play in the snow" holiday.jpg -k 20[/bold]
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
    next_step(["diptych", "explain", sparse, "what to look for"], *([] if sheet else ["--sheet terms.png"]))


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
