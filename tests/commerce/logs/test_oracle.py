"""The whole import against one in plain Python, on dirty rows and in all kinds of files."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from imported import dropped_of
from plain_import import plain_import

from diptych.commerce.logs import Cleaning, ingest

COUNTRIES, DEVICES, MOST = ("BE", "NL"), ("pc", "smartphone", "unknown"), 6
SINCE = "2019-10-01"

LIKELY = {
    "time": "2019-10-27 02:30:00",
    "client": "a",
    "visitor": None,
    "session": None,
    "device": "pc",
    "channel": None,
    "country": "NL",
    "action": "view",
    "page_type": None,
    "query": None,
    "item": None,
    "price": None,
    "purchase": None,
    "agent": None,
}
UNLIKELY = {
    "time": [
        *("2019-10-27T00:30:00Z", "2019-10-27 02:30:00+02:00", "2019-10-26 23:59:59.999999 UTC"),
        *("2020-03-29 02:30:00", "1572136200", "1572136200.25", "1572136200250", "2019-10-01"),
        *("2019-09-30T21:59:59Z", "2200-01-01T00:00:00Z", "1970-01-01T00:00:10Z", "yesterday", None),
    ],
    "client": ["b", " b\t", "ü", "null", None],
    "visitor": ["7", "8", "NaN"],
    "session": ["s1"],
    "device": ["Desktop", "mobile", "tablet", "toaster", None],
    "channel": ["Paid", "direct"],
    "country": ["be", "DE", "Holland", None],
    "action": ["PAGE", "search", "cart", "remove", "buy", "zoom", None],
    "page_type": ["home", 'a "b", c'],
    "query": ["Red  shoes", 'naïve; 5" tv'],
    "item": ["1", "-"],
    "price": ["9.5", "9,5", "inf"],
    "purchase": ["0", "Yes"],
    "agent": ["Firefox", "Googlebot/2.1", "CUBOT NOVA"],
}
COLUMNS = list(LIKELY)
ROW = st.fixed_dictionaries(
    {name: st.sampled_from([LIKELY[name]] * 3 * len(odd) + odd) for name, odd in UNLIKELY.items()}
)
ALONE = LIKELY | {"client": "alone"}
SEVERAL = [LIKELY | {"price": str(number)} for number in range(MOST)]


def write(folder: Path, kind: str, rows: list[dict[str, Any] | None]) -> Path:
    if kind == "parquet":
        table = pa.Table.from_pylist(
            [row for row in rows if row is not None], pa.schema([(c, pa.string()) for c in COLUMNS])
        )
        pq.write_table(table, folder / "log.parquet")
        return folder / "log.parquet"
    if kind == "json":
        lines = [
            "{broken" if row is None else json.dumps(row, ensure_ascii=row["client"] == "a") for row in rows
        ]
        (folder / "log.jsonl").write_text("\n".join(lines))
        return folder / "log.jsonl"
    text = io.StringIO()
    table = csv.writer(text, delimiter=";" if kind == "semicolons" else ",", lineterminator="\r\n")
    table.writerow(COLUMNS)
    for row in rows:
        if row is None:
            text.write("of,another;width\r\n")
        else:
            table.writerow([row[column] for column in COLUMNS])
    content = text.getvalue().encode()
    file = folder / ("log.csv.gz" if kind == "gzip" else "log.csv")
    file.write_bytes(gzip.compress(content) if kind == "gzip" else content)
    return file


@pytest.mark.parametrize("kind", ["csv", "semicolons", "gzip", "json", "parquet"])
@settings(max_examples=1, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.none() | ROW, min_size=60, max_size=120))
def test_an_import_is_what_plain_python(kind: str, rows: list[dict[str, Any] | None], tmp_path: Path) -> None:
    rows = [*SEVERAL, *(row for row in rows if row is not None or kind != "parquet"), ALONE]
    kept, dropped = plain_import(
        rows,
        zone="America/New_York",
        times_in="Europe/Amsterdam",
        since_us=1_569_902_400_000_000,
        countries=COUNTRIES,
        devices=DEVICES,
        most_events=MOST,
    )
    log = ingest(
        write(tmp_path, kind, rows),
        tmp_path / "log",
        zone="America/New_York",
        times_in="Europe/Amsterdam",
        cleaning=Cleaning(since=SINCE, countries=COUNTRIES, devices=DEVICES, most_events=MOST),
    )
    assert [row for file in log.buckets for row in pq.ParquetFile(file).read().to_pylist()] == kept
    assert dropped_of(log) == dict(dropped)
    assert log.about["rows_read"] == len(rows) == log.n_events + sum(dropped.values())
