"""Sessions and all statistics: DuckDB and Spark against a plain oracle."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from events import canonical, write_log
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_logs import ODD_QUERIES, events_of_shops, random_events
from session_oracle import pages_of, queries_of, sessions_of
from statistics_oracle import ORACLE, check_rows, statistics_of

from diptych.commerce.purchase_intent.described import Description, describe
from diptych.commerce.purchase_intent.engine import Engine
from diptych.commerce.purchase_intent.options import DescribeOptions, SessionOptions
from diptych.commerce.purchase_intent.sessions import SessionTables, sessionise
from diptych.commerce.purchase_intent.statistics import STATISTICS

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


@settings(max_examples=4)
@given(
    events_of_shops(most=60),
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


@pytest.mark.parametrize("by", ["client", "visitor", "given"])
def test_a_larger_log(tmp_path: Path, engine: Engine, by: Any) -> None:
    events = random_events(1, clients=80)
    if by == "given":
        events = [event | {"given_session": str(int(event["t"]) % 3)} for event in events]
    tables = sessionise(write_log(tmp_path / "log", events, buckets=3), SessionOptions(by=by), engine=engine)
    check_tables(tables, canonical(events), by=by)
    found = describe(tables, engine=engine)
    check_statistics(found, canonical(events), {"by": by})
    assert all(found.unprotected[name] for name in ORACLE)
    assert read(tables, "pages")


def test_spark_is_duckdb(tmp_path: Path, engine: Engine, spark: Engine) -> None:
    asked = {"t": 1_570_000_000, "client_id": "odd", "action": "query"}
    events = random_events(2, clients=10)
    events += [asked | {"query": text, "event_id": len(events) + n} for n, text in enumerate(ODD_QUERIES)]
    log = write_log(tmp_path / "[log]", events, buckets=2)
    tables = sessionise(log, engine=engine, folder=tmp_path / "duckdb")
    options = DescribeOptions(journey="journey")
    theirs = sessionise(log, engine=spark, folder=tmp_path / "spark")
    for name in ("sessions", "pages", "queries"):
        assert in_order(read(theirs, name)) == in_order(read(tables, name))
        assert pq.read_schema(theirs.files(name)[0]).types == pq.read_schema(tables.files(name)[0]).types
    assert theirs.about == tables.about
    check_tables(theirs, canonical(events))
    # Of Spark's own tables, so that both read and write are compared.
    described = describe(theirs, engine=spark, options=options)
    assert described.unprotected == describe(tables, engine=engine, options=options).unprotected
