"""Pages of people's behaviour: sections, colours, what may be shown, and how numbers are written.

A page is handed on; the CSV files of a description stay with whoever made it and hold every number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from diptych.core.table import Table
from diptych.report.drawing import INK
from diptych.report.page import LIGHT, Headline


@dataclass(frozen=True)
class Series:
    """How one line is drawn.

    Attributes:
        name: of its colour on the page.
        marker: as Matplotlib calls it.
        glyph: the same in words' legends.
        dash: of the line.
    """

    name: str
    marker: str
    glyph: str
    dash: str = "-"

    @property
    def colour(self) -> str:
        """On light paper."""
        return LIGHT[self.name] if self.name != "ink" else INK


SERIES = (
    Series("blue", "o", "●"),
    Series("orange", "s", "■"),
    Series("green", "^", "▲"),
    Series("purple", "D", "◆"),
    Series("olive", "v", "▼"),
    Series("ink", "x", "✕"),
)


def series(place: int) -> Series:
    """The way of the ``place``-th line; from the seventh on the same again, dashed."""
    one = SERIES[place % len(SERIES)]
    return one if place < len(SERIES) else Series(one.name, one.marker, f"{one.glyph}╌", "--")


@dataclass(frozen=True)
class Legend:
    """What lines and bars mean: (colour, glyph, words) each."""

    entries: Sequence[tuple[str, str, str]]
    kind: ClassVar[str] = "legend"


@dataclass(frozen=True)
class Panels:
    """Figures side by side, below each other where there is no room.

    Attributes:
        figures: ``<svg>`` elements.
        narrow: rem below which a figure does not shrink before the next one goes below it.
        after: a line below.
    """

    figures: Sequence[str]
    narrow: float = 19.0
    after: str = ""
    kind: ClassVar[str] = "panels"


@dataclass(frozen=True)
class Text:
    """A text as it is, which opens on request.

    Attributes:
        caption: what it is.
        text: of several lines.
    """

    caption: str
    text: str
    kind: ClassVar[str] = "text"


Block = Table | Legend | Panels | Text


@dataclass(frozen=True)
class Section:
    """One section.

    Attributes:
        name: of its anchor.
        title: of it.
        findings: sentences that a reader takes away, each computed.
        protocol: how the numbers come about.
        blocks: tables, legends and panels in order.
        notes: what else has to be said.
    """

    name: str
    title: str
    findings: Sequence[str] = ()
    protocol: str = ""
    blocks: Sequence[Block] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Page:
    """One page.

    Attributes:
        title: its name.
        subtitle: of what it is.
        headlines: numbers to be seen first.
        sections: in order.
        facts: the protocol, name by name.
        notes: below the facts.
        commands: how to make it again, or to use it.
        commands_title: which of both.
    """

    title: str
    subtitle: str
    headlines: Sequence[Headline] = ()
    sections: Sequence[Section] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    commands: Sequence[str] = ()
    commands_title: str = "Again"
