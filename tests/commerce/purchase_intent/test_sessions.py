"""Sessions of events against plain Python, and one spelling of queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from events import write_log
from session_oracle import one_spelling

from diptych.commerce.purchase_intent.engine import Engine, open_engine
from diptych.commerce.purchase_intent.sessions import (
    TABLES,
    SessionOptions,
    SessionTables,
    normalised,
    sessionise,
)
from diptych.core.errors import DataError, UsageError


def rows(tables: SessionTables, name: str = "sessions") -> list[dict[str, Any]]:
    found = [row for file in tables.files(name) for row in pq.read_table(file).to_pylist()]
    return sorted(found, key=lambda row: (row["session_id"], row.get("position", 0), row.get("query", "")))


def sessions(
    folder: Path, engine: Engine, events: list[dict[str, Any]], **options: Any
) -> list[dict[str, Any]]:
    return rows(sessionise(write_log(folder / "log", events), SessionOptions(**options), engine=engine))


def test_exactly_half_an_hour_is_one_session(tmp_path: Path, engine: Engine) -> None:
    events = [{"t": 0}, {"t": 1800.0}, {"t": 3600.0 + 1e-6}]
    found = sessions(tmp_path, engine, events)
    ends = [(row["session_id"], row["n_events"], row["end_us"]) for row in found]
    assert ends == [(0, 2, 1_800_000_000), (2, 1, 3_600_000_001)]


def test_given_sessions_have_to_be_given(tmp_path: Path, engine: Engine) -> None:
    with pytest.raises(UsageError, match="brings no sessions of its own"):
        sessions(tmp_path, engine, [{"t": 0}], by="given")
    assert not list((tmp_path / "log" / "sessions").glob("given*"))


def test_many_files_are_the_same_as_one(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = {"action": "query", "query": "q"}
    events = [query | {"t": t * 700.0, "client_id": f"c{t % 11}"} for t in range(100)]
    right = rows(sessionise(write_log(tmp_path / "one", events), engine=engine))
    log = write_log(tmp_path / "many", events, buckets=7)
    for at_once, parts in ((1, len(log.buckets)), (50, 2)):
        monkeypatch.setattr(type(engine), "rows_at_once", at_once)
        tables = sessionise(log, engine=engine, folder=tmp_path / str(at_once))
        assert len(tables.files("sessions")) == parts
        assert rows(tables) == right
        assert len(rows(tables, "queries")) == 100


def test_the_same_bytes_whatever_the_threads(tmp_path: Path) -> None:
    query = {"action": "query", "query": "q"}
    events = [query | {"t": t * 900.0, "client_id": f"c{t % 300}"} for t in range(3000)]
    log = write_log(tmp_path / "log", events)
    written = []
    for threads in (1, 4):
        with open_engine(threads=threads) as engine:
            tables = sessionise(log, engine=engine, folder=tmp_path / str(threads))
        written.append([path.read_bytes() for path in sorted(tables.folder.rglob("*")) if path.is_file()])
    assert written[0] == written[1]


def test_columns_are_as_declared(tmp_path: Path, engine: Engine) -> None:
    empty = write_log(tmp_path / "empty", [])
    for log in (empty, write_log(tmp_path / "log", [{"t": 0}])):
        tables = sessionise(log, engine=engine)
        for name, columns in TABLES.items():
            schema = pq.read_schema(tables.files(name)[0])
            assert [(field.name, str(field.type)) for field in schema] == list(columns.items())
        assert tables.about["counts"]["sessions"] == len(rows(tables)) == log.n_events
    empty.buckets[0].unlink()
    with pytest.raises(DataError, match="holds no events"):
        sessionise(empty, engine=engine, folder=tmp_path / "gone")


NEWER = {0x1C89, 0xA7CB, 0xA7CC, 0xA7CE, 0xA7D2, 0xA7D4, 0xA7DA, 0xA7DC}
NEWER |= {*range(0x10D50, 0x10D66), *range(0x16EA0, 0x16EB9)}
"""Capitals that Unicode got after version 14: engines and Pythons know them or not."""


def spelled(texts: list[str | None]) -> list[str | None]:
    connection = ibis.duckdb.connect()
    table = connection.create_table("texts", pa.table({"n": range(len(texts)), "text": texts}), temp=True)
    found = table.select("n", text=normalised(table.text)).order_by("n")
    return list(connection.to_pyarrow(found).column("text").to_pylist())


def test_one_spelling() -> None:
    """Of white space, of letters that are two, and of sigma at the end, which Python has another way."""
    texts = ["  red \t\u00a0\u2003 SHOES\n", "İstanbul", "ΟΔΟΣ", "Straße STRAẞE", "ÉCLAIR", "\x0b", ""]
    assert spelled(texts) == ["red shoes", "istanbul", "οδοσ", "straße straße", "éclair", "", ""]


def test_every_character_is_as_python_has_it() -> None:
    codes = [code for code in range(1, 0x20000) if not 0xD800 <= code < 0xE000 and code not in NEWER]
    found = spelled([f"A{chr(code)}{chr(code)}b {chr(code)}" for code in codes])
    expected = [one_spelling(f"A{chr(code)}{chr(code)}b {chr(code)}") for code in codes]
    different = [hex(code) for code, one, other in zip(codes, found, expected, strict=True) if one != other]
    assert different == []
