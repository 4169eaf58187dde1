from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from odd_logs import ODD_QUERIES
from session_oracle import one_spelling

from diptych.commerce.purchase_intent.engine import Engine, open_engine
from diptych.commerce.purchase_intent.sessions.sessionise import normalised
from diptych.core.errors import DataError


def test_one_spelling_of_queries(tmp_path: Path, spark: Engine) -> None:
    file = tmp_path / "it's [1] *, {a}.parquet"
    pq.write_table(pa.table({"n": range(len(ODD_QUERIES)), "text": list(ODD_QUERIES)}), file)
    table = spark.read([file])
    found = spark.to_arrow(table.select("n", text=normalised(table.text)).order_by("n"))
    assert found.column("text").to_pylist() == [
        None if text is None else one_spelling(text) for text in ODD_QUERIES
    ]


def test_writes_one_file_in_order(tmp_path: Path, spark: Engine) -> None:
    file = tmp_path / "numbers.parquet"
    pq.write_table(
        pa.table({"n": pa.array(range(1000), pa.int32()), "even": [n % 2 == 0 for n in range(1000)]}), file
    )
    table = spark.read([file, file])
    with spark.held(table.filter(table.even)) as held:
        spark.write(held.order_by(held.n.desc()), tmp_path / "out.parquet")
        spark.write(held.filter(held.n < 0), tmp_path / "none.parquet")
    written = pq.read_table(tmp_path / "out.parquet")
    assert written.column("n").to_pylist() == [n for n in range(998, -1, -2) for _ in range(2)]
    assert written.schema.types == [pa.int32(), pa.bool_()]
    assert pq.read_table(tmp_path / "none.parquet").schema.names == ["n", "even"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "none.parquet",
        "numbers.parquet",
        "out.parquet",
    ]


def test_a_running_session_is_shared_and_stays(tmp_path: Path, spark: Engine) -> None:
    file = tmp_path / "one.parquet"
    pq.write_table(pa.table({"n": [1]}), file)
    with open_engine("spark") as other:
        assert other.to_arrow(other.read([file])).to_pylist() == [{"n": 1}]
    assert spark.to_arrow(spark.read([file])).to_pylist() == [{"n": 1}]


def test_what_cannot_be_read_is_said(tmp_path: Path, spark: Engine) -> None:
    with pytest.raises(DataError, match="Spark failed: .*gone"):
        spark.read([tmp_path / "gone.parquet"])
