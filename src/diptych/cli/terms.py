"""``diptych sparse terms`` and ``explain``: images and captions as terms, and what scores are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from diptych.cli.console import next_step, say, show
from diptych.cli.sources import SplitOption
from diptych.core.options import parameter
from diptych.core.table import Table

_HEAD = "A folder that diptych sparse train wrote, an index of its rows, or what was embedded with it."
Head = Annotated[Path, typer.Argument(help=_HEAD, show_default=False)]
_QUERY = "A sentence, the path of an image, or an id of the split."


class SheetOptions(SplitOption):
    """Of which split, and where it is drawn."""

    sheet: Path | None = parameter(None, "Draw a .png, .jpg or .html of it.")


class TermsOptions(SheetOptions):
    """What is shown."""

    what: list[str] = parameter(
        [], "Sentences, paths of images, or ids of the split; images of the split without any.", argument=True
    )
    k: int = parameter(10, "How many terms.", "-k", ge=1)
    count: int = parameter(10, "How many images of the split.", "-n", ge=1)


class ExplainOptions(SheetOptions):
    """What is explained."""

    k: int = parameter(3, "How many of the best are explained.", "-k", ge=1)
    item: str | None = parameter(None, "The id of one image or caption, instead of the best.")
    of: Literal["images", "texts"] | None = parameter(None, "What is found.", default="what the query is not")
    terms: int = parameter(8, "How many terms of each.", ge=1)


def terms(sparse: Head, options: TermsOptions) -> None:
    """Print the heaviest terms of images and captions, and draw them.

    Terms that the caption, or one of the image's captions, contains have an asterisk: the others are expansion.

    Examples:
        diptych sparse terms runs/flickr8k/sparse --sheet terms.png
        diptych sparse terms sparse "two dogs play in the snow" holiday.jpg -k 20
    """
    from diptych.report.sheets import write_sheet
    from diptych.report.sparse import evenly, term_gallery
    from diptych.sparse.explain import BagReader

    reader = BagReader(sparse, options.split)
    ids = reader.rows.images.ids
    names = options.what or [ids[place] for place in evenly(len(ids), options.count)]
    gallery = term_gallery(reader.vocabulary, [reader.bag(name) for name in names], options.k)
    rows = []
    for card in gallery.cards:
        found = ", ".join(f"{term}{'*' if own else ''} {weight}" for term, _, weight, own in card.bars)
        rows.append((card.text if card.picture is None else card.name, found or "no term at all"))
    show(Table.of("", "", ("what", f"top {options.k} terms"), rows))
    if options.sheet is not None:
        write_sheet(options.sheet, f"The heaviest terms, {sparse.name}", [gallery])
        say(f"drawn in {options.sheet}")
    next_step(["diptych", "sparse", "explain", sparse, "what to look for"])


def explain(
    sparse: Head,
    query: Annotated[str, typer.Argument(help=_QUERY, show_default=False)],
    options: ExplainOptions,
) -> None:
    """Print which terms gave a match its score: a score is the sum of query weight × item weight.

    Examples:
        diptych sparse explain sparse "two dogs play in the snow" --sheet why.png
        diptych sparse explain sparse/index-images-inverted "a kayak" --item 287.jpg
    """
    from diptych.report.sheets import write_sheet
    from diptych.report.sparse import match_gallery
    from diptych.sparse.explain import BagReader, Match

    reader = BagReader(sparse, options.split)
    asked = reader.bag(query)
    found = reader.best(asked, options.of, options.k, options.item)
    for place, one in enumerate(found, 1):
        match = Match.of(reader.vocabulary, asked, one, options.terms)
        text = next(iter(one.captions), "no caption")
        show(match.table(f"{place}. {one.name}, score {match.score:.3f}: {text}"))
    if not found:
        say(f"nothing shares a term with {query!r}")
    elif options.sheet is None:
        next_step(["diptych", "sparse", "explain", sparse, query, "--sheet", "why.png"])
    else:
        galleries = [match_gallery(reader.vocabulary, asked, one, options.terms) for one in found]
        write_sheet(options.sheet, f"What scores for {query!r} are made of", galleries)
        say(f"drawn in {options.sheet}")
