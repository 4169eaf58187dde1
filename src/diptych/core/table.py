"""Table: what every result shows, rendered for the terminal, HTML, CSV, JSON and Markdown."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar

from diptych.core.files import write_rows

if TYPE_CHECKING:
    from rich.table import Table as RichTable

_NARROW = 3  # columns at most of a table that would be lost in the width of a page


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Attributes:
        text: what it says.
        note: smaller, below: an interval, a reason.
        shade: in [0, 1]: how strong its ground is.
        colour: of the ground: a name of a page's palette.
        words: whether it is read, not compared: to the left, and broken into lines.
        strong: whether it stands out, as the best of its column.
        value: the number behind the text, where there is one; JSON has it in full.
    """

    text: str
    note: str = ""
    shade: float = 0.0
    colour: str = "blue"
    words: bool = False
    strong: bool = False
    value: float | None = None

    @property
    def line(self) -> str:
        """Text and note in one line."""
        return f"{self.text} ({self.note})" if self.note else self.text


@dataclass(frozen=True)
class Table:
    """A table; the first cell of each row is its head.

    Attributes:
        caption: what it is.
        columns: their heads.
        rows: as many cells each.
        groups: heads above the heads: (text, how many columns).
        after: a line below: how it is to be read.
        folded: whether a page opens it on request.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    groups: Sequence[tuple[str, int]] = ()
    after: str = ""
    folded: bool = False
    kind: ClassVar[str] = "table"

    @classmethod
    def of(cls, caption: str, after: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
        """Return a table of words and numbers as they are printed."""
        return cls(caption, tuple(columns), [[Cell(text) for text in row] for row in rows], after=after)

    @property
    def texts(self) -> list[tuple[str, ...]]:
        """The cells' texts, row by row."""
        return [tuple(cell.text for cell in row) for row in self.rows]

    @property
    def narrow(self) -> bool:
        """Whether it would be lost in the width of a page."""
        return len(self.columns) <= _NARROW and not any(cell.words for row in self.rows for cell in row)

    @property
    def starts(self) -> list[int]:
        """The columns that begin a group."""
        return list(accumulate(span for _, span in self.groups))[:-1]

    def rich(self, numbers: Sequence[str] = (), title: str | None = None) -> RichTable:
        """Return it for a terminal; columns in ``numbers`` are aligned to the right and never broken."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table as RichTable
        from rich.text import Text

        caption = self.caption if title is None else title
        table = RichTable(title=Text(caption), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        for column in self.columns:
            is_number = column in numbers
            justify: Any = "right" if is_number else "left"
            table.add_column(column, justify=justify, overflow="fold", no_wrap=is_number)
        for row in self.rows:
            table.add_row(*(Text(cell.line) for cell in row))
        return table

    def html(self) -> str:
        """Return a ``<table>`` in a region that scrolls, with the line below; everything is escaped."""
        head = "".join(
            f'<th scope="col"{self._of_column(place)}>{escape(name)}</th>'
            for place, name in enumerate(self.columns)
        )
        groups = "".join(
            f'<th scope="colgroup" colspan="{span}">{escape(text)}</th>'
            if text
            else f'<td colspan="{span}"></td>'
            for text, span in self.groups
        )
        lines = [
            f'<div class="scroll" role="region" aria-label="{escape(self.caption)}" tabindex="0">',
            '<table class="narrow">' if self.narrow else "<table>",
            f"  <caption>{escape(self.caption)}</caption>",
            "  <thead>",
            *([f'    <tr class="groups">{groups}</tr>'] if groups else []),
            f"    <tr>{head}</tr>",
            "  </thead>",
            "  <tbody>",
            *(f"    <tr>{self._html_row(row)}</tr>" for row in self.rows),
            "  </tbody>",
            "</table>",
            "</div>",
        ]
        return "\n".join(lines) + (f'\n<p class="measures">{escape(self.after)}</p>' if self.after else "")

    def _of_column(self, place: int) -> str:
        if self.rows and self.rows[0][place].words:
            return ' class="words"'
        return ' class="first"' if place in self.starts else ""

    def _html_row(self, row: Sequence[Cell]) -> str:
        first = f'<th scope="row" dir="auto">{escape(row[0].text)}{_note(row[0])}</th>'
        return first + "".join(
            f"<td{self._of_column(place)}{_ground(cell)}>"
            f"{f'<strong>{escape(cell.text)}</strong>' if cell.strong else escape(cell.text)}{_note(cell)}</td>"
            for place, cell in enumerate(row[1:], 1)
        )

    def csv(self) -> str:
        """Return comma-separated values; text that a spreadsheet would compute begins with an apostrophe."""
        file = io.StringIO()
        rows = ([cell.line if cell.value is None else cell.value for cell in row] for row in self.rows)
        write_rows(file, self.columns, rows)
        return file.getvalue()

    def json(self) -> str:
        """Return an object of caption, columns, rows and the line below; numbers where cells have them."""
        rows = [[cell.line if cell.value is None else cell.value for cell in row] for row in self.rows]
        content = {"caption": self.caption, "columns": list(self.columns), "rows": rows, "after": self.after}
        return json.dumps(content, ensure_ascii=False, allow_nan=False)

    def markdown(self) -> str:
        """Return a pipe table with its caption above."""

        def line(cells: Iterable[str]) -> str:
            return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

        lines = [f"**{self.caption}**", "", line(self.columns), line("---" for _ in self.columns)]
        lines += [line(cell.line for cell in row) for row in self.rows]
        return "\n".join([*lines, *(["", self.after] if self.after else [])]) + "\n"


def _note(cell: Cell) -> str:
    return f'<span class="interval">{escape(cell.note)}</span>' if cell.note else ""


def _ground(cell: Cell) -> str:
    if not cell.shade:
        return ""
    share = round(40 * cell.shade, 1)
    return f' style="background: color-mix(in srgb, var(--{escape(cell.colour)}) {share}%, transparent)"'
