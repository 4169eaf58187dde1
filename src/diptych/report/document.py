"""Page: sections of tables, charts and galleries, written as one HTML file that fetches nothing.

Captions, names and recipes are other people's text: the template escapes all of it, and the page forbids foreign
scripts and addresses to itself. Nothing of it needs its one script, which sorts tables.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from diptych.core.chart import Chart
from diptych.core.context import track
from diptych.core.errors import ImageError
from diptych.core.files import write_bytes
from diptych.core.table import Table
from diptych.report.figures import figure as draw
from diptych.report.pictures import PictureSource, Thumbnail, read_picture
from diptych.report.style import DARK, LIGHT, shorten

if TYPE_CHECKING:
    from jinja2 import Environment

CAPTION_LIMIT = 400
"""Characters of a caption that a page shows; a longer one is cut and its length stated."""

THUMBNAIL_SIDE = 320
"""Longest side of an image on a page, in pixels."""

MARKS = {"right": "✓", "wrong": "✗", "unknown": "·", "": ""}


def state_of(is_right: bool | None) -> str:
    """Return the state of a card: ``right``, ``wrong``, or ``unknown`` without a judgement."""
    return "unknown" if is_right is None else "right" if is_right else "wrong"


@dataclass(frozen=True)
class Card:
    """An image, a caption or both.

    Attributes:
        name: its id.
        picture: the image, or a function that reads it; None for a caption.
        text: the caption.
        label: above the text: a rank, what the card is.
        state: ``right``, ``wrong`` or ``unknown``: the frame and the sign.
        score: similarity, as printed.
        facts: further lines, by name.
        bars: (name, length as a share of the longest, number as printed, whether it stands out).
    """

    name: str
    picture: PictureSource | None = None
    text: str = ""
    label: str = ""
    state: str = ""
    score: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    bars: Sequence[tuple[str, float, str, bool]] = ()


@dataclass(frozen=True)
class Gallery:
    """Cards, and the query that they answer.

    Attributes:
        caption: a heading; empty: none.
        cards: in order.
        query: shown first.
        text: how the cards are to be read.
        anchor: where links lead.
        level: of the heading, 3 to 6.
        side: longest side of its images in pixels; below 200 they stand close.
    """

    caption: str
    cards: Sequence[Card]
    query: Card | None = None
    text: str = ""
    anchor: str = ""
    level: int = 3
    side: int = THUMBNAIL_SIDE
    kind: ClassVar[str] = "gallery"


@dataclass(frozen=True)
class Text:
    """A text of several lines as it is, opened on request."""

    caption: str
    text: str
    kind: ClassVar[str] = "text"


Block = Table | Chart | Gallery | Text


@dataclass(frozen=True)
class Headline:
    """A figure large at the top: ``Headline("rsum", "192.7", "58 × chance")``."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Section:
    """A heading, how to read what follows, and blocks; charts that follow each other stand side by side."""

    title: str
    blocks: Sequence[Block] = ()
    text: str = ""
    notes: Sequence[str] = ()
    id: str = ""

    @property
    def anchor(self) -> str:
        """Return the id of its heading."""
        return self.id or re.sub(r"\W+", "-", self.title.lower()).strip("-")

    @property
    def groups(self) -> list[tuple[str, list[Block]]]:
        """Return its blocks, those of a kind that follow each other together."""
        return [(kind, list(blocks)) for kind, blocks in groupby(self.blocks, lambda block: block.kind)]


@dataclass(frozen=True)
class Page:
    """Content of a page; empty parts are left out.

    Attributes:
        title: names the object and its data.
        summary: one sentence: what a reader takes away.
        headlines: numbers to be seen first.
        sections: in order.
        protocol: what the numbers depend on, name by name, or as one line.
        notes: what a reader of the numbers should know.
        commands: how to repeat it.
        links: other pages: (text, address).
    """

    title: str
    summary: str = ""
    headlines: Sequence[Headline] = ()
    sections: Sequence[Section] = ()
    protocol: Mapping[str, str] | str = ""
    notes: Sequence[str] = ()
    commands: Sequence[str] = ()
    links: Sequence[tuple[str, str]] = ()

    def html(self, thumbnails: Thumbnails | None = None) -> str:
        """Return the text of one self-contained HTML page.

        Images that cannot be read are shown as labelled placeholders and counted in the notes and by ``thumbnails``.
        """
        from markupsafe import Markup

        thumbnails = thumbnails or Thumbnails()
        galleries = [block for one in self.sections for block in one.blocks if block.kind == "gallery"]
        drawn = {id(block): _drawn(block, thumbnails) for block in track(galleries, "images", unit="groups")}
        note = thumbnails.note()
        script = environment().loader.get_source(environment(), "sort.js")[0]  # type: ignore[union-attr]
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        return (
            environment()
            .get_template("page.html.j2")
            .render(
                page=self,
                gallery=lambda block: drawn[id(block)],
                table=lambda block: Markup(block.html()),
                figure=lambda chart: Markup(draw(chart)),
                protocol=self.protocol if isinstance(self.protocol, Mapping) else {},
                line=self.protocol if isinstance(self.protocol, str) else "",
                notes=[*self.notes, *([note] if note else [])],
                repeated=thumbnails.repeated,
                script=Markup(script),
                digest=digest,
                light=LIGHT,
                dark=DARK,
            )
        )

    def save(self, path: Path | str, thumbnails: Thumbnails | None = None) -> Path:
        """Write the page as one HTML file, whole or not at all."""
        # a lone surrogate in a file name or caption cannot be UTF-8: it becomes "?"
        write_bytes(path, self.html(thumbnails).encode("utf-8", "replace"))
        return Path(path)


@cache
def environment() -> Environment:
    """Return the page's template with its stylesheet and script."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader("diptych.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _drawn(block: Any, thumbnails: Thumbnails) -> dict[str, Any]:
    small = block.side < 200

    def card(one: Card) -> dict[str, Any]:
        return {
            "name": shorten(one.name, CAPTION_LIMIT),
            "text": shorten(one.text, CAPTION_LIMIT),
            "label": one.label,
            "state": one.state,
            "mark": MARKS[one.state],
            "score": one.score,
            "facts": {name: shorten(words, CAPTION_LIMIT) for name, words in one.facts.items()},
            "bars": [(shorten(name, 80), f"{100 * share:.1f}", *rest) for name, share, *rest in one.bars],
            "is_picture": one.picture is not None,
            "thumbnail": one.picture and thumbnails.make(one.picture, one.name, block.side, repeated=small),
        }

    cards = [card(one) for one in block.cards]
    return {
        "cards": cards,
        "query": block.query and card(block.query),
        "is_list": not any(one["is_picture"] or one["bars"] for one in cards),
        "has_bars": any(one["bars"] for one in cards),
        "small": small,
    }


class Thumbnails:
    """Make a page's thumbnails, each image once, and count those that cannot be read."""

    def __init__(self) -> None:
        self.unreadable: dict[str, str] = {}
        self.repeated: list[Thumbnail] = []
        """Thumbnails that a page holds once, in its stylesheet; each knows its ``place`` among them."""
        self._places: dict[str, int] = {}

    def make(
        self, source: PictureSource, name: str, side: int, *, repeated: bool = False
    ) -> Thumbnail | None:
        """Return the thumbnail of ``source``, or None when it cannot be read, which is then counted."""
        if repeated and name in self._places:
            return self.repeated[self._places[name]]
        try:
            made = Thumbnail.of(read_picture(source, name), side)
        except ImageError as error:
            self.unreadable[name] = error.message
            return None
        if repeated:
            made.place = self._places[name] = len(self.repeated)
            self.repeated.append(made)
        return made

    def note(self) -> str:
        """Return one sentence about the images that could not be read; empty when all could."""
        if not self.unreadable:
            return ""
        names = list(self.unreadable)
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")
        many = "1 image" if len(names) == 1 else f"{len(names):,} images"
        return f"{many} could not be read; a labelled placeholder stands in: {shown}."
