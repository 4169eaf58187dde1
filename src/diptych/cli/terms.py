"""``diptych sparse terms`` and ``explain``: images and captions as terms, and what scores are made of."""

from __future__ import annotations

from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from pydantic import Field

from diptych.cli.console import next_step, progress, say, show
from diptych.cli.sources import SplitOption
from diptych.cli.sparse_folder import looks_like_a_picture
from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.table import Table

if TYPE_CHECKING:
    from diptych.report.document import Gallery
    from diptych.report.sparse import Bag
    from diptych.sparse import SparseEncoder

_HEAD = "A folder that diptych sparse train wrote, or an index of its rows."
Head = Annotated[Path, typer.Argument(help=_HEAD, show_default=False)]
Query = Annotated[
    str, typer.Argument(help="A sentence, the path of an image, or an id of the split.", show_default=False)
]


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
    from diptych.report.document import Gallery
    from diptych.report.sparse import OWN_TERMS, evenly

    with progress():
        reader = _Reader(sparse, options.split)
        ids = reader.rows.images.ids
        names = options.what or [ids[place] for place in evenly(len(ids), options.count)]
        cards = [reader.bag(name).card(reader.vocabulary, options.k) for name in names]
    rows = []
    for card in cards:
        found = (f"{term}{'*' if own else ''} {weight}" for term, _, weight, own in card.bars)
        rows.append((card.text if card.picture is None else card.name, ", ".join(found) or "no term at all"))
    show(Table.of("", "", ("what", f"top {options.k} terms"), rows))
    _draw(options, f"The heaviest terms, {reader.made.folder.name}", [Gallery("", cards, text=OWN_TERMS)])
    next_step(["diptych", "sparse", "explain", sparse, "what to look for"])


def explain(sparse: Head, query: Query, options: ExplainOptions) -> None:
    """Print which terms gave a match its score: a score is the sum of query weight × item weight.

    Examples:
        diptych sparse explain sparse "two dogs play in the snow" --sheet why.png
        diptych sparse explain sparse/index-images-inverted "a kayak" --item 287.jpg
    """
    from diptych.report.sparse import match_gallery
    from diptych.sparse.explain import match_table, match_terms

    with progress():
        reader = _Reader(sparse, options.split)
        vocabulary, asked = reader.vocabulary, reader.bag(query)
        kind = options.of or ("texts" if looks_like_a_picture(query) else "images")
        found = reader.best(asked, kind, options.item, options.k)
    if not found:
        say(f"nothing shares a term with {query!r}")
        return
    for place, one in enumerate(found, 1):
        shared = match_terms(asked.row, one.row, vocabulary.terms, asked.own_words(vocabulary))
        score = sum(term.contribution for term in shared)
        text = next(iter(one.captions), "no caption")
        show(match_table(f"{place}. {one.name}, score {score:.3f}: {text}", shared, options.terms))
    galleries = [match_gallery(vocabulary, asked, one, options.terms) for one in found]
    if not _draw(options, f"What scores for {query!r} are made of", galleries):
        next_step(["diptych", "sparse", "explain", sparse, query, "--sheet", "why.png"])


def _draw(options: SheetOptions, title: str, galleries: list[Gallery]) -> bool:
    """Return whether a sheet is wanted, and draw it."""
    from diptych.report.sheets import write_sheet

    if options.sheet is None:
        return False
    write_sheet(options.sheet, title, galleries)
    say(f"drawn in {options.sheet}")
    return True


class _Reader:
    """Images and captions of a split, sentences and files as bags of terms; the encoder is loaded when needed."""

    def __init__(self, folder: Path, split: str | None) -> None:
        from diptych.sparse import SparseFolder

        self.made = made = SparseFolder.of_rows(folder)
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

    def best(self, asked: Bag, kind: str, item: str | None, k: int) -> list[Bag]:
        """Return the best items for a query, or the one that is named, by exact search in the split's rows."""
        from diptych.metrics.sparse_products import sparse_top_k
        from diptych.report.sparse import Bag

        items = self.rows.images if kind == "images" else self.rows.texts
        if item is None:
            places = [place for place in sparse_top_k(asked.row, items.rows, k)[0][0].tolist() if place >= 0]
        elif item in items.ids:
            places = [list(items.ids).index(item)]
        else:
            split = self.rows.about["split"] or "all"
            raise UnknownNameError(f"id among the {kind} of split {split}", item, items.ids)
        return [Bag.of(self.rows, self.collection, kind, place) for place in places]
