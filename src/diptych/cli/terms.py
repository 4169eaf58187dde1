"""``diptych sparse terms`` and ``explain``: images and captions as terms, and what scores are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from pydantic import Field

from diptych.cli.console import next_step, progress, say, show
from diptych.cli.sources import SplitOption
from diptych.core.table import Table

_HEAD = "A folder that diptych sparse train wrote, an index of its rows, or what was embedded with it."
Head = Annotated[Path, typer.Argument(help=_HEAD, show_default=False)]
_QUERY = "A sentence, the path of an image, or an id of the split."


class SheetOptions(SplitOption):
    """Of which split, and where it is drawn."""

    sheet: Path | None = Field(None, description="Draw a .png, .jpg or .html of it.")


class TermsOptions(SheetOptions):
    """What is shown."""

    what: list[str] = Field(
        [],
        description="Sentences, paths of images, or ids of the split; images of the split without any.",
        json_schema_extra={"argument": True},
    )
    k: int = Field(10, ge=1, description="How many terms.", json_schema_extra={"flags": ["-k"]})
    count: int = Field(
        10, ge=1, description="How many images of the split.", json_schema_extra={"flags": ["-n"]}
    )


class ExplainOptions(SheetOptions):
    """What is explained."""

    k: int = Field(
        3, ge=1, description="How many of the best are explained.", json_schema_extra={"flags": ["-k"]}
    )
    item: str | None = Field(None, description="The id of one image or caption, instead of the best.")
    of: Literal["images", "texts"] | None = Field(
        None, description="What is found.", json_schema_extra={"default": "what the query is not"}
    )
    terms: int = Field(8, ge=1, description="How many terms of each.")


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

    with progress():
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

    with progress():
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
