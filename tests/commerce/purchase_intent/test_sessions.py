"""Sessions and all statistics: DuckDB and Spark against a plain oracle; one spelling of queries."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from events import canonical, write_log
from hypothesis import given, settings
from hypothesis import strategies as st
from intent_logs import random_events as visits
from odd_logs import ODD_QUERIES, events_of_shops, random_events
from session_oracle import one_spelling, pages_of, queries_of, sessions_of
from statistics_oracle import ORACLE, check_rows, statistics_of

from diptych.commerce.purchase_intent.engine import Engine, open_engine
from diptych.commerce.purchase_intent.features import FeatureOptions, make_features
from diptych.commerce.purchase_intent.options import DescribeOptions, SessionOptions
from diptych.commerce.purchase_intent.sessions import (
    TABLES,
    SessionTables,
    normalised,
    sessionise,
)
from diptych.commerce.purchase_intent.statistics import STATISTICS, Description, describe
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


Row = dict[str, Any]


def read(tables: SessionTables, name: str) -> list[Row]:
    return [row for file in tables.files(name) for row in pq.read_table(file).to_pylist()]


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: [str(value) for value in row.values()])


def check_tables(tables: SessionTables, events: list[Row], **how: Any) -> None:
    pages = tables.about["options"]["pages"]
    assert in_order(read(tables, "sessions")) == in_order(sessions_of(events, **how))
    assert in_order(read(tables, "pages")) == in_order(pages_of(events, **how, pages=pages))
    assert in_order(read(tables, "queries")) == in_order(queries_of(events, **how))


def check_statistics(description: Description, events: list[Row], how: Row, **options: Any) -> None:
    expected = statistics_of(sessions_of(events, **how), queries_of(events, **how), **options)
    assert list(description.unprotected) == sorted(expected, key=list(description.unprotected).index)
    for name, rows in expected.items():
        found = description.unprotected[name]
        check_rows(found, rows)
        assert {tuple(row) for row in found} <= {tuple(STATISTICS.get(name).columns.split())}


@settings(max_examples=3)
@given(
    events_of_shops(most=50),
    st.sampled_from(["client", "visitor", "given"]),
    st.integers(1, 3),
    st.fixed_dictionaries({"journey": st.sampled_from(["pair", "journey"]), "ddof": st.sampled_from([0, 1])}),
)
def test_duckdb_is_the_oracle(engine: Engine, events: list[Row], by: Any, buckets: int, how: Row) -> None:
    if by == "given" and not any(event["given_session"] for event in events):
        events = [event | {"given_session": "1"} for event in events]
    with tempfile.TemporaryDirectory() as folder:
        log = write_log(Path(folder) / "log", events, buckets)
        tables = sessionise(log, SessionOptions(by=by, pages=2), engine=engine)
        rows, options = canonical(events), DescribeOptions(**how)
        check_tables(tables, rows, by=by)
        check_statistics(describe(tables, engine=engine, options=options), rows, {"by": by}, **how)


def test_a_larger_log(tmp_path: Path, engine: Engine) -> None:
    for by in ("client", "visitor", "given"):
        folder = tmp_path / by
        events = random_events(1, clients=80)
        if by == "given":
            events = [event | {"given_session": str(int(event["t"]) % 3)} for event in events]
        tables = sessionise(
            write_log(folder / "log", events, buckets=3), SessionOptions(by=by), engine=engine
        )
        check_tables(tables, canonical(events), by=by)
        found = describe(tables, engine=engine)
        check_statistics(found, canonical(events), {"by": by})
        assert all(found.unprotected[name] for name in ORACLE)
        assert read(tables, "pages")


def test_spark_is_duckdb(tmp_path: Path, engine: Engine, spark: Engine) -> None:
    """Sessions, statistics, features; files in order, of odd names, one of them gone; a shared session."""
    query = {"t": 1_570_000_000, "client_id": "odd", "action": "query"}
    events = random_events(2, clients=6) + visits(7, sessions=12)
    events += [query | {"query": text} for text in ODD_QUERIES]
    events = [event | {"event_id": number} for number, event in enumerate(events)]
    log = write_log(tmp_path / "[log] {a}, *'", events, buckets=2)
    with open_engine("spark") as other:
        assert other.to_arrow(other.read(log.buckets)).num_rows == len(events)
    # The other one's end has not ended the session.
    mine, theirs = (sessionise(log, engine=one, folder=tmp_path / one.name) for one in (engine, spark))
    for name in ("sessions", "pages", "queries"):
        assert in_order(read(theirs, name)) == in_order(read(mine, name))
        assert pq.read_schema(theirs.files(name)[0]).types == pq.read_schema(mine.files(name)[0]).types
    assert theirs.about == mine.about
    # Of Spark's own tables, so that both read and write are compared.
    options, columns = DescribeOptions(journey="journey"), FeatureOptions(types=2)
    described = describe(theirs, engine=spark, options=options)
    assert described.unprotected == describe(mine, engine=engine, options=options).unprotected
    tables = [
        make_features(of, folder=tmp_path / f"{one.name}-features", options=columns, engine=one)
        for of, one in ((mine, engine), (theirs, spark))
    ]
    assert (tables[0].view.columns["orders"] > 0).any()
    assert tables[0].about == tables[1].about
    rows, others = (pq.read_table(one.folder / "sessions.parquet") for one in tables)
    assert rows.schema.types == others.schema.types
    assert rows.equals(others)
    assert {path.name for path in tables[1].folder.iterdir()} == {"features.json", "sessions.parquet"}
    with pytest.raises(DataError, match="Spark failed: .*gone"):
        spark.read([tmp_path / "gone.parquet"])
