"""Engines: DuckDB and Spark."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from diptych.commerce.logs.database import mebibytes
from diptych.commerce.purchase_intent.engine import open_engine
from diptych.core.errors import DataError, UnknownNameError, UsageError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """In a folder that looks like a pattern, and like a part of a table."""
    folder = tmp_path / "it's [1] *" / "bucket=07"
    folder.mkdir(parents=True)
    target = folder / "part {a}.parquet"
    pq.write_table(pa.table({"name": ["b", "a", None], "n": [1, 2, 3]}), target)
    return target


def test_reads_holds_and_writes(file: Path) -> None:
    with open_engine(threads=1) as engine:
        table = engine.read([file, file])
        assert table.columns == ("name", "n")  # no column made of the folder's name
        with engine.held(table.filter(table.n > 1).order_by(["n", "name"])) as held:
            expected = [{"name": "a", "n": 2}] * 2 + [{"name": None, "n": 3}] * 2
            assert engine.to_arrow(held).to_pylist() == expected
            written = file.with_name("it's [2].parquet")
            engine.write(held.order_by("n").limit(1), written)
    assert pq.read_table(written).to_pylist() == [{"name": "a", "n": 2}]


def test_windows_without_an_order_see_that_of_the_file_or_of_what_is_held(file: Path) -> None:
    import ibis

    with open_engine() as engine:
        table = engine.read([file]).mutate(name=ibis._.name.fill_null("c"))
        with engine.held(table.order_by("name")) as held:
            for rows, before in ((table, {"a": 1, "b": None, "c": 2}), (held, {"a": None, "b": 2, "c": 1})):
                found = engine.to_arrow(rows.mutate(before=rows.n.lag().over(ibis.window()))).to_pylist()
                assert {row["name"]: row["before"] for row in found} == before


def test_the_limit_is_set_and_spilled_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with open_engine(memory_limit="64 MB", threads=1) as engine:
        assert len(list(tmp_path.iterdir())) == 1
        import ibis

        numbers = ibis.range(3_000_000).unnest().name("n").as_table()
        with engine.held(numbers.order_by(ibis.desc("n"))) as held:  # 24 MB, twice while it is sorted
            assert engine.to_arrow(held.limit(2)).column("n").to_pylist() == [2_999_999, 2_999_998]
        limit = engine._connection.raw_sql("SELECT current_setting('memory_limit')").fetchall()  # type: ignore[attr-defined]
        assert limit == [("64.0 MiB",)]
    assert not list(tmp_path.iterdir())


def test_a_key_press_inside_a_query_is_one(tmp_path: Path) -> None:
    import ibis

    with open_engine(threads=1) as engine:
        connection, is_over = engine._connection.con, threading.Event()  # type: ignore[attr-defined]

        def press() -> None:
            while not is_over.wait(0.01):
                connection.interrupt()

        numbers = ibis.range(100_000).unnest().name("n").as_table()
        endless = numbers.cross_join(numbers.rename(m="n"))
        presser = threading.Thread(target=press)
        presser.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                engine.to_arrow(endless.aggregate(sum=(endless.n * endless.m).sum()))
        finally:
            is_over.set()
            presser.join()
        assert engine.to_arrow(numbers.aggregate(n=numbers.count())).to_pylist() == [{"n": 100_000}]


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(b"PAR1 not at all")
    with open_engine() as engine:
        for file in (damaged, tmp_path / "gone.parquet"):
            with pytest.raises(DataError, match="cannot be read"):
                engine.read([file])
    with pytest.raises(UnknownNameError, match="unknown engine 'presto'.*duckdb.*spark"):
        open_engine("presto")


def test_amounts() -> None:
    amounts = {"1GB": 1024, "700 mb": 700, "1.5GiB": 1536, "10k": 1, "2097152": 2}
    assert {text: mebibytes(text) for text in amounts} == amounts
    for text in ("", "much", "0GB", "-1GB", "1 GB; DROP", "80%"):
        with pytest.raises(UsageError, match="memory limit"):
            open_engine(memory_limit=text)
