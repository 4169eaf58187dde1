"""Damaged files: every line is an event or is counted, whatever stands in the others."""

from __future__ import annotations

import gzip
import json
import random
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from imported import dropped_of, events_of, import_text
from refusals import refused

from diptych.commerce.logs import ColumnMapping, ingest
from diptych.core.errors import DataError

T = "2019-10-01T00:00:00Z"


def queries(tmp_path: Path, content: bytes, name: str = "events.csv") -> tuple[list[str | None], int]:
    log = import_text(tmp_path, content, name)
    assert log.about["rows_read"] == log.n_events + sum(dropped_of(log).values())
    assert set(dropped_of(log)) <= {"unreadable row"}
    return [event["query"] for event in events_of(log)], dropped_of(log).get("unreadable row", 0)


def test_damaged_lines_are_counted_and_the_others_are_read(tmp_path: Path) -> None:
    lines = [
        *(b"  ", b"", b"time,client,query", b"T,a,plain"),
        *(b"T,a", b"T,a,b,c", b'T,a,"never closed', b'T,a,"closed"too early'),  # too few, too many
        *(b'T,a,"with, a comma"', b'T,a,"with ""marks"""', b'"T","a", "blanks around" ', b'T,a,5" screen'),
        *(b"", b"   ", b"T,a,\xff\xfe", b"T,a,nu\0l", b"\0\0\0\0", b"\x01"),  # the third is no UTF-8
        *(b"T,a," + b"x" * 3_000_000, b'T,a,"a line', b'break"'),
        "T,a,é last without an end".encode(),
    ]
    found, unreadable = queries(
        tmp_path, b"\n".join(lines).replace(b"T,", T.encode() + b",").replace(b'"T"', f'"{T}"'.encode())
    )
    assert found == [
        *("plain", "with, a comma", 'with "marks"', "blanks around"),
        *('5" screen', "é last without an end"),
    ]
    assert unreadable == 11


def test_ends_of_lines_may_differ(tmp_path: Path) -> None:
    cases: Any = [(b"\r\n",), (b"\n",), (b"\r",), (b"\n", b"\r\n"), (b"\r\n", b"\n")]
    for ends in cases:
        lines = [b"time,client,query", *(f"{T},a,q{number}".encode() for number in range(6))]
        content = b"".join(line + ends[number % len(ends)] for number, line in enumerate(lines))
        assert queries(tmp_path, b"\xef\xbb\xbf" + content) == ([f"q{number}" for number in range(6)], 0)


def test_no_line_is_lost_where_one_block_of_the_reader_ends_and_the_next_begins(tmp_path: Path) -> None:
    wide = "é€😀" * 3_000
    lines = [f"{T},a,{number},{wide[number % 7 :]}" for number in range(1_300)]  # 35 MB: more than a block
    content = "\n".join(["time,client,query,unused", *lines])
    assert queries(tmp_path, content.encode()) == ([str(number) for number in range(1_300)], 0)


def test_json_lines(tmp_path: Path) -> None:
    lines = [
        {"time": 1569888000, "user": {"client": "a", "id": 7}, "query": 'é " , \\'},
        {"user": {"client": "a"}, "time": 1569888000.5, "query": None, "price": 1.5},
    ]
    content = "\n".join([*map(json.dumps, lines), "", "{broken", "[1]", "null", json.dumps({"time": [1]})])
    mapping = ColumnMapping(
        columns={
            "time": "time",
            "client": "user.client",
            "visitor": "user.id",
            "query": "query",
            "price": "price",
        }
    )
    log = import_text(tmp_path, content, "events.jsonl", mapping=mapping)
    events, columns = events_of(log), ("event_id", "visitor_id", "action", "query", "price")
    assert [event["t_us"] % 1_000_000 for event in events] == [0, 500_000]
    told = [tuple(event[column] for column in columns) for event in events]
    assert told == [(0, "7", "query", 'é " , \\', None), (1, None, "page", None, 1.5)]
    assert dropped_of(log) == {"unreadable row": 3, "unreadable time": 1}


def test_parquet_has_times_and_numbers_of_its_own(tmp_path: Path) -> None:
    moment = datetime(2019, 10, 1, 2, 0, 0, 123456)
    table = pa.table(
        {
            "naive": pa.array([moment, None], pa.timestamp("us")),
            "zoned": pa.array(
                [moment.replace(tzinfo=UTC), moment.replace(tzinfo=UTC)], pa.timestamp("ns", "Asia/Tokyo")
            ),
            "day": pa.array([date(2019, 10, 1)] * 2),
            "odd \"name'; --": pa.array([1, 2**53 + 1], pa.int64()),
            "bytes": pa.array([b"x", b"y"], pa.binary()),
            "yes": pa.array([True, False]),
        }
    )
    pq.write_table(table, tmp_path / "events.parquet")

    def times(column: str) -> list[int]:
        columns = {"time": column, "client": "odd \"name'; --", "page_type": "bytes", "purchase": "yes"}
        options = {"mapping": ColumnMapping(columns=columns), "times_in": "Europe/Amsterdam"}
        found = events_of(ingest(tmp_path / "events.parquet", tmp_path / column, **options))
        assert [found[0][name] for name in ("client_id", "page_type", "is_purchase")] == ["1", "x", True]
        assert found[-1]["client_id"] == ("1" if column == "naive" else "9007199254740993")
        return [event["t_us"] for event in found]

    assert times("naive") == [1_569_888_000_123_456]
    assert times("zoned") == [1_569_895_200_123_456] * 2
    assert times("day") == [1_569_880_800_000_000] * 2


def test_a_file_that_is_none_is_said_so(tmp_path: Path) -> None:
    cases: Any = [
        ("empty.csv", b"", "is empty"),
        ("blank.csv", b"\n  \n", "blank lines"),
        ("header.csv", b"time,client\n", "no event is left of 0 rows"),
        ("bad.csv", b"time,client\nx\x1b,a\n", r"unreadable time: 1 \['x.x1b'\]"),
        ("utf16.csv", "time,client\n".encode("utf-16"), "no UTF-8 text"),
        ("latin.csv", b"time,client,\xe9\n", "no UTF-8 text"),
        ("binary.csv", b"\0\1\2\3", "no UTF-8 text"),
        ("list.json", b'[{"time": 1}]', "JSON list"),
        ("cut.csv.gz", gzip.compress(b"time,client\n" + T.encode() + b",a\n", mtime=0)[:-9], "is corrupt"),
        ("bad.parquet", b"PAR1xxxxPAR1", "no whole Parquet"),
    ]
    for name, content, says in cases:
        refused(DataError, says, import_text, tmp_path, content, name)
        assert not (tmp_path / f"{name}.log").exists()


def test_a_gzipped_file_that_is_damaged_far_behind_its_beginning(tmp_path: Path) -> None:
    cases: Any = ["cut", "check sum"]
    for damage in cases:
        draws = random.Random(0)
        rows = "\n".join(f"{T},{draws.random()}" for _ in range(60_000))
        content = gzip.compress(f"time,client\n{rows}".encode())
        damaged = content[: len(content) // 2] if damage == "cut" else content[:-8] + bytes(8)
        refused(DataError, r"events\.csv\.gz is corrupt", import_text, tmp_path, damaged, "events.csv.gz")
