"""Imports: the contract of a log, and the whole of it against one in plain Python."""

from __future__ import annotations

import csv
import gzip
import io
import json
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from imported import dropped_of, events_of, import_text
from plain_import import plain_import
from refusals import refused

from diptych.commerce.logs import Cleaning, ingest
from diptych.commerce.logs.database import open_database
from diptych.commerce.logs.log import COLUMNS
from diptych.core.errors import DiptychError, StorageError, UsageError

CONTENT = "time,client,visitor,action\n" + "".join(
    f"2019-10-{1 + n % 28:02d}T{n % 24:02d}:00:00Z,c{n * 7919 % 97},{n % 5 or ''},{('page', 'add', 'buy')[n % 3]}\n"
    for n in range(3000)
)


def test_columns_are_those_of_the_contract_in_order_and_sorted(tmp_path: Path) -> None:
    log = import_text(tmp_path, CONTENT, buckets=3, zone="Europe/Amsterdam")
    for file in log.buckets:
        schema = pq.ParquetFile(file).schema_arrow
        assert {field.name: str(field.type) for field in schema} == COLUMNS
        rows = pq.ParquetFile(file).read(["client_id", "t_us", "event_id"]).to_pylist()
        assert [tuple(row.values()) for row in rows] == sorted(tuple(row.values()) for row in rows)
    assert sorted(event["event_id"] for event in events_of(log)) == list(range(3000))


def test_bytes_do_not_depend_on_threads_nor_events_on_buckets(tmp_path: Path) -> None:
    one, four, spread = (
        import_text(tmp_path, CONTENT, file, threads=threads, buckets=buckets, memory_limit=limit, name="log")
        for file, threads, buckets, limit in (
            ("1.csv", 1, 2, None),
            ("4.csv", 4, 2, "200MB"),
            ("b.csv", 2, 7, None),
        )
    )
    assert [file.read_bytes() for file in one.buckets] == [file.read_bytes() for file in four.buckets]
    assert events_of(one) == events_of(spread)
    about = [{**log.about, "sources": [], "buckets": 0} for log in (one, four, spread)]
    assert about[0] == about[1] == about[2]


def test_a_fingerprint_is_of_the_files_and_of_what_was_asked(tmp_path: Path) -> None:
    first = import_text(tmp_path, CONTENT)
    assert import_text(tmp_path, CONTENT, "renamed.csv", name="x", buckets=2).fingerprint == first.fingerprint
    others = [
        import_text(tmp_path, CONTENT + "2019-10-01,z,,page\n"),
        import_text(tmp_path, CONTENT, zone="Asia/Tokyo"),
        import_text(tmp_path, CONTENT, times_in="Asia/Tokyo"),
        import_text(tmp_path, CONTENT, cleaning=Cleaning(duplicates=True)),
    ]
    assert len({first.fingerprint, *(log.fingerprint for log in others)}) == 5


def test_names_of_files_and_folders_are_no_patterns(tmp_path: Path) -> None:
    odd = tmp_path / "a=1" / "we[i]rd*'s {x}?"
    odd.mkdir(parents=True)
    (odd / "e[12]*.csv").write_text("time,client\n2019-10-01,right\n")
    (odd / "e1.csv").write_text("time,client\n2019-10-01,wrong\n")
    log = ingest(odd / "e[12]*.csv", odd / "log [0-9]*", buckets=2)
    assert [event["client_id"] for event in events_of(log)] == ["right"]
    (tmp_path / "link.csv").symlink_to(odd / "e1.csv")
    linked = ingest(tmp_path / "link.csv", tmp_path / "log")
    assert linked.about["sources"][0]["file"] == "link.csv"


def test_the_database_reaches_nothing_but_the_files_that_were_given(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    (tmp_path / "given.csv").write_text("a\n1\n")
    (tmp_path / "work").mkdir()
    with open_database(
        [tmp_path / "given.csv"], tmp_path / "work", times_in="UTC", memory_limit=None, threads=None
    ) as database:
        assert database.rows(f"SELECT * FROM read_csv('{tmp_path}/given.csv')") == [(1,)]
        for forbidden in (
            f"SELECT * FROM read_csv('{tmp_path}/secret.csv')",
            f"SELECT * FROM read_text('{tmp_path}/work/../secret.csv')",
            f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
            "SET enable_external_access = true",
            "INSTALL httpfs",
        ):
            with pytest.raises(DiptychError):
                database.rows(forbidden)


def test_only_a_log_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "events.csv.log").mkdir()
    (tmp_path / "events.csv.log" / "letter.txt").write_text("dear")
    refused(UsageError, "holds other things", import_text, tmp_path, CONTENT)
    (tmp_path / "events.csv.log" / "log.json").write_text("{}")
    with pytest.raises(UsageError, match="would be replaced"):
        ingest(tmp_path / "events.csv.log" / "letter.txt", tmp_path / "events.csv.log")
    refused(UsageError, "no file is given", ingest, [], tmp_path / "log")


def test_too_little_memory_is_said(tmp_path: Path) -> None:
    refused(
        StorageError, r"does not suffice.*--memory-limit", import_text, tmp_path, CONTENT, memory_limit="1MB"
    )


FIRST = date(2019, 10, 1)


def test_every_odd_log_of_the_list_is_imported_and_said(tmp_path: Path) -> None:
    """Unsorted, duplicated, overlapping and clock-skewed events, null visitors, unknown devices, a busy client, empty
    days, no purchase."""
    minutes = [f"{minute // 60:02d}:{minute % 60:02d}" for minute in range(24 * 60)]
    lines = [f"2019-10-01T{minute}:00Z,keen,,pc,NL,1" for minute in minutes[::-1]]  # unsorted
    lines += lines[:3]  # duplicated
    lines += [
        f"2019-10-01T12:00:{at:02d}Z,s{at},null,toaster,Holland,9.9.9" for at in range(30)
    ]  # overlapping
    lines += [f"2019-10-05T00:00:0{who}" for who in ("0Z,shared,7,,NL,", "1Z,shared,8,,NL,", "1Z,,8,,NL,")]
    lines += ["2031-01-01T00:00:00Z,s1,,pc,NL,"]  # a clock that is ahead
    log = import_text(tmp_path, "\n".join(["time,client,visitor,device,country,price", *lines]))
    assert dropped_of(log) == {"duplicate": 3}
    assert log.n_events == len(lines) - 3
    said, times = log.about["notes"], [line.split(",")[0] for line in lines]
    back = sum(after < before for before, after in pairwise(times))
    empty = (date(2031, 1, 1) - FIRST).days - 2
    assert said == [
        f"{empty:,} of {empty + 3:,} days have no event: 2019-10-02, 2019-10-03, 2019-10-04, 2019-10-06, 2019-10-07, …",
        "the last days (2031-01-01) hold only 1 of 1,474 events: wrong clocks? --until 2031-01-01",
        f"{back:,} rows are earlier than the row before them in their file",
        "1 events have a visitor and no client: each such visitor is a client visitor:VISITOR",
        "30 events have a country that is no two letters, read as missing",
        "30 events have a price that is no number, read as missing",
        "the shop's zone is not known: days and hours are those of UTC (--zone)",
        "1 of 33 clients have several visitors: shared browsers?",
        "one client has 1,440 events, 97.7% of all: a bot? --most-events drops such clients",
        "the device of 3 events (0.2%) is unknown",
        "no channel is known",
        "a log without a purchase: statistics of classes will be empty; nothing can be trained",
    ]
    assert (log.about["clients"], log.about["visitors"], log.about["purchases"]) == (33, 2, 0)
    assert log.about["devices"] == {"pc": 1441, "toaster": 30, "unknown": 3}
    assert [event["visitor_id"] for event in events_of(log)[-4:]] == ["7", "8", "8", None]
    assert sum(log.about["events_by_day"].values()) == log.n_events
    old = import_text(tmp_path, "time,client\n1970-01-03,a\n", "old.csv")
    assert any("events lie in 1970: check the format of times" in note for note in old.about["notes"])


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
NAMES = list(LIKELY)
ROW = st.fixed_dictionaries(
    {name: st.sampled_from([LIKELY[name]] * 3 * len(odd) + odd) for name, odd in UNLIKELY.items()}
)
ALONE = LIKELY | {"client": "alone"}
SEVERAL = [LIKELY | {"price": str(number)} for number in range(MOST)]


def write(folder: Path, kind: str, rows: list[dict[str, Any] | None]) -> Path:
    if kind == "parquet":
        table = pa.Table.from_pylist(
            [row for row in rows if row is not None], pa.schema([(c, pa.string()) for c in NAMES])
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
    table.writerow(NAMES)
    for row in rows:
        if row is None:
            text.write("of,another;width\r\n")
        else:
            table.writerow([row[column] for column in NAMES])
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
