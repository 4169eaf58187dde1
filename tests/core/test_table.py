"""The contract of a table's renderers: every cell is in every one, nothing acts, and numbers stay numbers."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from html import unescape

from rich.console import Console

from diptych.core.table import Cell, Table

ODD = '<b>&"1 | 2"</b>'
WHY = Cell("why", words=True)

TABLES = [
    Table.of("Words", "a line below", ("name", "value"), [("dogs", "1.5"), (ODD, "−2")]),
    Table("None", ("a", "b", "c", "d"), []),
    Table(
        "Numbers",
        ("row", "left", "right", "words"),
        [
            [Cell("one"), Cell("12.3", "11 to 13", 0.5, value=12.34), Cell("7", strong=True), WHY],
            [Cell("two"), Cell("–"), Cell("0.0", value=0.0), Cell(ODD, words=True)],
        ],
        groups=(("", 1), ("both", 2), ("", 1)),
        after="how & why",
    ),
]


def terminal(table: Table) -> str:
    console = Console(width=200, file=io.StringIO())
    console.print(table)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def page(table: Table) -> str:
    assert "<b>" not in table.html()
    return unescape(re.sub(r"<[^>]*>", " ", table.html()))


RENDERERS = {
    "terminal": terminal,
    "html": page,
    "csv": lambda table: "\n".join("\t".join(row) for row in csv.reader(io.StringIO(table.csv()))),
    "json": lambda table: json.dumps(json.loads(table.json()), ensure_ascii=False).replace('\\"', '"'),
    "markdown": lambda table: table.markdown().replace("\\|", "|"),
}


def test_every_renderer_has_every_cell_and_numbers_stay_numbers() -> None:
    for renderer, table in itertools.product(RENDERERS, TABLES):
        text = RENDERERS[renderer](table)
        for column in table.columns:
            assert column in text
        for cell in (cell for row in table.rows for cell in row):
            raw = cell.value is not None and renderer in ("csv", "json")
            assert (str(cell.value) if raw else cell.text) in text
            assert cell.note in text or raw
        if renderer not in ("terminal", "csv"):
            assert table.caption in text
            assert table.after in text
    rows = list(csv.reader(io.StringIO(TABLES[2].csv())))
    assert rows[1][1] == "12.34"
    assert json.loads(TABLES[2].json())["rows"][0][1] == 12.34
    acting = Table.of("x", "", ("a",), [("=1+1",), ("@x",), ("-1.5",), ("+3 %",), ("-x",)])
    rows = list(csv.reader(io.StringIO(acting.csv())))
    assert [row[0] for row in rows[1:]] == ["'=1+1", "'@x", "-1.5", "+3 %", "'-x"]
    assert Cell.number(1234.567, 1, 1200.0, 1300.04) == Cell("1,234.6", "1,200.0–1,300.0", value=1234.567)
    assert Cell.number(-0.0001, 2, -1.0, 0.0, sign="+").line == "+0.00 (-1.00 to +0.00)"
    assert Cell.number(None, 2, 0.0, 1.0) == Cell("–")
