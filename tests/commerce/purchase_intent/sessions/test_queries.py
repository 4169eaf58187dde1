from __future__ import annotations

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from odd_logs import ODD_QUERIES
from session_oracle import one_spelling

from diptych.commerce.purchase_intent.engine import open_engine
from diptych.commerce.purchase_intent.sessions.sessionise import normalised

NEWER = {
    0x1C89,
    0xA7CB,
    0xA7CC,
    0xA7CE,
    0xA7D2,
    0xA7D4,
    0xA7DA,
    0xA7DC,
    *range(0x10D50, 0x10D66),
    *range(0x16EA0, 0x16EB9),
}
"""Capitals that Unicode got after version 14: engines and Pythons know them or not."""


def spelled(texts: list[str | None]) -> list[str | None]:
    connection = ibis.duckdb.connect()
    table = connection.create_table("asked", pa.table({"n": range(len(texts)), "text": texts}), temp=True)
    found = table.select("n", text=normalised(table.text)).order_by("n")
    return list(connection.to_pyarrow(found).column("text").to_pylist())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Red Shoes", "red shoes"),
        ("  red \t\u00a0\u2003 SHOES\n", "red shoes"),
        ("İstanbul", "istanbul"),
        ("ΟΔΟΣ", "οδοσ"),
        ("Straße STRAẞE", "straße straße"),
        ("ÉCLAIR", "éclair"),
        ("tv f", "tv f"),
        ("\x0b", ""),
        ("", ""),
    ],
)
def test_one_spelling(text: str, expected: str) -> None:
    assert spelled([text]) == [expected]


def test_nothing_stays_nothing() -> None:
    assert spelled([None, "A"]) == [None, "a"]


def test_every_character_is_as_python_has_it() -> None:
    codes = [code for code in range(1, 0x20000) if not 0xD800 <= code < 0xE000 and code not in NEWER]
    found = spelled([f"A{chr(code)}{chr(code)}b {chr(code)}" for code in codes])
    expected = [one_spelling(f"A{chr(code)}{chr(code)}b {chr(code)}") for code in codes]
    different = [hex(code) for code, one, other in zip(codes, found, expected, strict=True) if one != other]
    assert different == []


def test_the_odd_ones() -> None:
    texts = [text for text in ODD_QUERIES if text is not None]
    assert spelled(texts) == [one_spelling(text) for text in texts]


def test_written_and_read_back(tmp_path) -> None:
    file = tmp_path / "texts.parquet"
    pq.write_table(pa.table({"text": list(ODD_QUERIES)}), file)
    with open_engine() as engine:
        table = engine.read([file])
        found = engine.to_arrow(table.select(text=normalised(table.text))).column("text").to_pylist()
    assert found == [None if text is None else one_spelling(text) for text in ODD_QUERIES]
