"""Table: what every result shows, rendered for the terminal, HTML, CSV, JSON and Markdown."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar

from diptych.core.extras import require
from diptych.core.files import write_rows

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import Console, ConsoleOptions
    from rich.table import Table as RichTable
    from rich.text import Text

_LONG = 40  # characters of a cell that is broken into lines
_NARROW = 3  # columns at most of a table that would be lost in the width of a page
_NUMERIC = re.compile(r"[-−+±<>~]?\s?\d|–$|nan$|✓|✗")
_ACTING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    return _ACTING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


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
        link: the address of a page that the text leads to.
    """

    text: str
    note: str = ""
    shade: float = 0.0
    colour: str = "blue"
    words: bool = False
    strong: bool = False
    value: float | None = None
    link: str = ""

    @classmethod
    def number(
        cls,
        value: float | None,
        digits: int = 1,
        low: float | None = None,
        high: float | None = None,
        sign: str = "",
        **look: Any,
    ) -> Cell:
        """Return a number, with its interval as the note; a dash for None. ``sign``: ``+`` for a difference."""
        if value is None:
            return cls("–")

        def text(number: float) -> str:
            return f"{round(number, digits) + 0.0:{sign},.{digits}f}"  # 0.0: no -0.0

        between = " to " if sign else "–"
        note = "" if low is None or high is None else f"{text(low)}{between}{text(high)}"
        return cls(text(value), note, value=value, **look)

    @property
    def line(self) -> str:
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
        """Return a table of words and numbers as they are printed; columns with long texts are read, not compared."""
        texts = [list(row) for row in rows]
        words = [any(len(text) > _LONG for text in column) for column in zip(*texts, strict=True)]
        cells = [[Cell(text, words=word) for text, word in zip(row, words, strict=True)] for row in texts]
        return cls(caption, tuple(columns), cells, after=after)

    @property
    def texts(self) -> list[tuple[str, ...]]:
        return [tuple(cell.text for cell in row) for row in self.rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RichTable | Text]:
        """Fit the terminal: notes next to their numbers, or below them, or the columns in several tables."""
        from rich.text import Text

        parts = [list(range(len(self.columns)))]
        for below in (False, True):
            if self._width(parts[0], below, console, options) <= options.max_width:
                break
        else:
            parts = [[0]]
            for place in range(1, len(self.columns)):
                wider = [*parts[-1], place]
                if len(parts[-1]) > 1 and self._width(wider, True, console, options) > options.max_width:
                    parts.append([0, place])
                else:
                    parts[-1] = wider
        for number, places in enumerate(parts):
            yield self._rich(places, below, "" if number else self.caption)
        if self.after:
            yield Text(harmless(self.after), style="dim")

    def _width(self, places: Sequence[int], below: bool, console: Console, options: ConsoleOptions) -> int:
        from rich.measure import Measurement

        table = self._rich(places, below, "")
        for column, place in zip(table.columns, places, strict=True):  # words may be broken down to this
            column.max_width = None if place in self._numbers else 24
        return Measurement.get(console, options.update(max_width=10_000), table).maximum

    @property
    def _numbers(self) -> list[int]:
        return [
            place
            for place in range(len(self.columns))
            if self.rows
            and all(not row[place].words and _NUMERIC.match(row[place].text or "–") for row in self.rows)
        ]

    def _rich(self, places: Sequence[int], below: bool, title: str) -> RichTable:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(title=Text(harmless(title)), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        known = self._numbers
        for place in places:
            is_number = place in known
            justify: Any = "right" if is_number else "left"
            table.add_column(harmless(self._head(place)), justify=justify, overflow="fold", no_wrap=is_number)
        for row in self.rows:
            lines = [f"{cell.text}\n{cell.note}" if below and cell.note else cell.line for cell in row]
            table.add_row(
                *(Text(harmless(lines[place]), style="bold" if row[place].strong else "") for place in places)
            )
        return table

    def _head(self, place: int) -> str:
        over = [text for text, span in self.groups for _ in range(span)]
        return f"{over[place]}\n{self.columns[place]}" if over and over[place] else self.columns[place]

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
        is_narrow = len(self.columns) <= _NARROW and not any(cell.words for row in self.rows for cell in row)
        lines = [
            f'<div class="scroll" role="region" aria-label="{escape(self.caption)}" tabindex="0">',
            f'<table class="{"sortable" if len(self.rows) > 2 else ""}{" narrow" * is_narrow}">',
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
        return "\n".join(lines) + (f'\n<p class="after">{escape(self.after)}</p>' if self.after else "")

    def _of_column(self, place: int) -> str:
        if any(row[place].words for row in self.rows):
            return ' class="words"'
        return ' class="first"' if place in list(accumulate(span for _, span in self.groups))[:-1] else ""

    def _html_row(self, row: Sequence[Cell]) -> str:
        first = f'<th scope="row"{self._of_column(0)} dir="auto"{_value(row[0])}>{_text(row[0])}</th>'
        return first + "".join(
            f"<td{self._of_column(place)}{_value(cell)}{_ground(cell)}>{_text(cell)}</td>"
            for place, cell in enumerate(row[1:], 1)
        )

    def __str__(self) -> str:
        return rendered([self])

    def _repr_html_(self) -> str:
        return self.html()

    def to_pandas(self) -> DataFrame:
        """Return a pandas DataFrame: numbers in full where the table has them, else the printed texts.

        In a column of numbers what is missing is NaN.
        """
        numbers = {place for row in self.rows for place, cell in enumerate(row) if cell.value is not None}

        def content(place: int, cell: Cell) -> str | float:
            return math.nan if place in numbers and cell.text in ("–", "") else _exact(cell)

        rows = [[content(*one) for one in enumerate(row)] for row in self.rows]
        heads = [self._head(place).replace("\n", " ") for place in range(len(self.columns))]
        frame: DataFrame = require("pandas", purpose="DataFrames").DataFrame(rows, columns=heads)
        return frame

    def csv(self) -> str:
        """Return comma-separated values; text that a spreadsheet would compute begins with an apostrophe."""
        file = io.StringIO()
        write_rows(file, self.columns, (map(_exact, row) for row in self.rows))
        return file.getvalue()

    def content(self) -> dict[str, Any]:
        """Return caption, columns, rows and the line below, JSON-able; numbers with their notes apart."""
        rows = [
            [_exact(cell) if math.isfinite(cell.value or 0) else cell.line for cell in row]
            for row in self.rows
        ]
        content: dict[str, Any] = {"caption": self.caption, "columns": list(self.columns)}
        content |= {"rows": rows, "after": self.after}
        if any(cell.note and cell.value is not None for row in self.rows for cell in row):
            content["notes"] = [[cell.note for cell in row] for row in self.rows]
        return content

    def json(self) -> str:
        return json.dumps(self.content(), ensure_ascii=False, allow_nan=False)

    def markdown(self) -> str:
        def line(cells: Iterable[str]) -> str:
            return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

        lines = [f"**{self.caption}**", "", line(self.columns), line("---" for _ in self.columns)]
        lines += [line(cell.line for cell in row) for row in self.rows]
        return "\n".join([*lines, *(["", self.after] if self.after else [])]) + "\n"


def _exact(cell: Cell) -> str | float:
    return cell.line if cell.value is None else cell.value


def _text(cell: Cell) -> str:
    text = f"<strong>{escape(cell.text)}</strong>" if cell.strong else escape(cell.text)
    text = f'<a href="{escape(cell.link)}">{text}</a>' if cell.link else text
    return text + (f' <span class="note">{escape(cell.note)}</span>' if cell.note else "")


def _value(cell: Cell) -> str:
    return "" if cell.value is None else f' data-value="{cell.value!r}"'


def _ground(cell: Cell) -> str:
    if not cell.shade:
        return ""
    share = round(40 * cell.shade, 1)
    return f' style="background: color-mix(in srgb, var(--{escape(cell.colour)}) {share}%, transparent)"'


def rendered(shown: Iterable[Table | str]) -> str:
    """Return tables and lines as the terminal shows them, without colours."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=110, color_system=None, highlight=False, soft_wrap=True)
    for one in shown:
        console.print(one, markup=False)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().rstrip()


class Tabular:
    """Base of results: whatever offers tables (and charts) prints, and shows itself in a notebook.

    ``print(result)`` gives the tables of the terminal, a notebook shows them as HTML with the charts, and
    :meth:`to_pandas` gives one as a DataFrame.
    """

    drawn: ClassVar[Callable[[Any], str] | None] = None  # its charts as HTML, where what draws them is loaded

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        # Instead of what a dataclass would print: every array.
        if "tables" in cls.__dict__ and "__repr__" not in cls.__dict__:
            cls.__repr__ = Tabular.__repr__  # type: ignore[method-assign]

    def tables(self) -> Sequence[Table]:
        """Return what is shown as tables."""
        raise NotImplementedError

    def charts(self) -> Sequence[Any]:
        """Return what is shown as charts."""
        return ()

    def lines(self) -> Sequence[str]:
        """Return the lines below the tables: how they are read, and what the numbers depend on."""
        return ()

    def table(self, number: int = 0) -> Table:
        """Return one of the tables, the first by default."""
        return self.tables()[number]

    def to_pandas(self, number: int = 0) -> DataFrame:
        """Return one of the tables as a pandas DataFrame."""
        return self.table(number).to_pandas()

    def __str__(self) -> str:
        return rendered([*(table for table in self.tables() if not table.folded), *self.lines()])

    def describe(self) -> str:
        """Return what it holds, in one line."""
        return "; ".join(f"{one.caption} ({len(one.rows)} rows)" for one in self.tables()[:3]) or "empty"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.describe()}>"

    def _repr_html_(self) -> str:
        tables = [table.html() for table in self.tables() if not table.folded]
        tables += [f'<p class="after">{escape(line)}</p>' for line in self.lines()]
        drawn = type(self).drawn
        return "\n".join(tables if drawn is None else [drawn(self), *tables])
