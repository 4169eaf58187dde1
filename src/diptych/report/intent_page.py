"""A page as plain pieces: sections of findings, figures and tables, and the one template that writes them.

Whoever has something to say about purchase intent makes sections; nobody but the template knows HTML.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import ClassVar

from diptych.core.files import write_bytes
from diptych.report.intent_series import DARK, LIGHT


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Attributes:
        text: what it says.
        note: smaller, below: an interval, a reason.
        shade: in [0, 1]: how strong its ground is.
        colour: of the ground: a name of :data:`diptych.report.intent_series.LIGHT`.
        words: whether it is read, not compared: to the left, and broken into lines.
        strong: whether it stands out, as the best of its column.
    """

    text: str
    note: str = ""
    shade: float = 0.0
    colour: str = "blue"
    words: bool = False
    strong: bool = False


@dataclass(frozen=True)
class Table:
    """A table; the first cell of each row is its head.

    Attributes:
        caption: what it is.
        columns: their heads.
        rows: as many cells each.
        groups: heads above the heads: (text, how many columns).
        after: a line below.
        folded: whether it opens on request, for tables that few will read.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    groups: Sequence[tuple[str, int]] = ()
    after: str = ""
    folded: bool = False
    kind: ClassVar[str] = "table"

    @property
    def narrow(self) -> bool:
        """Whether it would be lost in the width of a page."""
        return len(self.columns) <= 3 and not any(cell.words for row in self.rows for cell in row)

    @property
    def starts(self) -> list[int]:
        """The columns that begin a group."""
        return list(accumulate(span for _, span in self.groups))[:-1]


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
class Headline:
    """A number to be seen first."""

    label: str
    value: str
    note: str = ""


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


def render_page(page: Page) -> str:
    """The text of one self-contained HTML page; everything but figures is escaped."""
    from markupsafe import Markup

    from diptych.report.templating import templates

    template = templates().get_template("intent.html.j2")
    return template.render(page=page, drawn=Markup, light=LIGHT, dark=DARK)


def write_page(path: Path | str, page: Page) -> Path:
    """Write a page as one HTML file, whole or not at all."""
    write_bytes(path, render_page(page).encode("utf-8", "replace"))
    return Path(path)
