"""Files of logs: every line is an event or is counted; times, zones, mappings, and words that are no SQL."""

from __future__ import annotations

import gzip
import json
import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
from imported import dropped_of, events_of, import_text
from plain_import import plain_time
from refusals import refused

from diptych.commerce.logs import Cleaning, ColumnMapping, ingest, read_mapping
from diptych.core.artifact import encode
from diptych.core.errors import DataError, DiptychError, UsageError

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


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIME_AND_CLIENT = {"time": "time", "client": "client"}


def times(tmp_path: Path, texts: list[str], **options: str) -> list[int | None]:
    """Microseconds of texts, or None where they are no time."""
    time_format = options.pop("time_format", "auto")
    lines = [f"{text}|{number}" for number, text in enumerate(["2019-10-01", *texts])]
    content = "\n".join(["time|client", *lines])
    log = import_text(
        tmp_path, content, mapping=ColumnMapping(columns=TIME_AND_CLIENT, time_format=time_format), **options
    )
    found = {event["client_id"]: event["t_us"] for event in events_of(log)}
    assert dropped_of(log).get("unreadable time", 0) == len(lines) - len(found)
    return [found.get(str(1 + number)) for number in range(len(texts))]


def test_iso_8601_in_many_ways_and_what_is_no_time(tmp_path: Path) -> None:
    same = [
        *("2019-10-01T10:00:00Z", "2019-10-01 10:00:00 UTC", "2019-10-01 12:00:00+02:00"),
        *("2019-10-01T12:00:00+0200", "2019-10-01 12:00:00+02", "2019-10-01T10:00:00.000Z"),
        *("2019-10-01t10:00:00z", "2019-10-01T10:00:00,000Z", "2019-10-01 10:00:00GMT"),
        *("2019-10-01 10:00", "2019-10-01T10:00Z", "2019-10-01 12:00 +02:00"),
    ]
    assert times(tmp_path, same, time_format="iso") == [1_569_924_000_000_000] * len(same)
    none = [
        *("", "nan", "infinity", "epoch", "0", "-5", "2019-13-01", "1e300", "2300-01-01"),
        *("2019-10-01 (BC)", "12:00"),
    ]
    assert times(tmp_path, none) == [None] * len(none)


def test_numbers_are_told_by_their_size(tmp_path: Path) -> None:
    second, far = 1_569_924_000, 100_000_000_000_000
    whole = second * 1_000_000
    told = {f"{second}": whole, f"{second}.277": whole + 277_000, f"{second}277": whole + 277_000}
    told |= {f"{second}277001": whole + 277_001, f"{second}277001999": whole + 277_001, "1.5699240e9": whole}
    told |= {"99999999999": None, "100000000000": far}  # still seconds, and too late; milliseconds
    told |= {"99999999999999": None, "100000000000000": far}  # still milliseconds, and too late
    assert times(tmp_path, list(told)) == list(told.values())


def test_formats_of_ones_own(tmp_path: Path) -> None:
    texts = ["01/10/2019 12:00", "31/02/2019 12:00", "2019-10-01"]
    options = {"time_format": "%d/%m/%Y %H:%M", "times_in": "Europe/Amsterdam"}
    assert times(tmp_path, texts, **options) == [1_569_924_000_000_000, None, None]
    for wrong in ("%Q", "seconds"):
        refused(UsageError, "format", times, tmp_path, [], time_format=wrong)


def test_local_hours_over_the_change_of_the_clocks_are_those_of_zoneinfo(tmp_path: Path) -> None:
    cases: Any = ["Europe/Amsterdam", "America/St_Johns", "Asia/Kathmandu", "UTC"]
    for zone in cases:
        begin = datetime(2019, 10, 26, 20, tzinfo=UTC)
        moments = [begin + timedelta(minutes=13 * step) for step in range(150)]
        moments += [
            moment + timedelta(days=7) for moment in moments
        ]  # America changes its clocks a week later
        content = "\n".join(["time,client", *(f"{moment.isoformat()},c" for moment in moments)])
        found = events_of(import_text(tmp_path, content, zone=zone))
        walls = [moment.astimezone(ZoneInfo(zone)) for moment in moments]
        assert [(event["local_hour"], event["local_dow"], event["local_day"]) for event in found] == [
            (wall.hour, wall.weekday(), (wall.date() - EPOCH.date()).days) for wall in walls
        ]


def test_times_without_a_zone_are_in_the_one_that_is_said(tmp_path: Path) -> None:
    naive = [f"2019-10-27 {hour:02d}:{minute:02d}:00" for hour in range(5) for minute in (0, 30)]
    naive += [f"2020-03-29 {hour:02d}:30:00" for hour in range(5)]
    found = times(tmp_path, naive, times_in="Europe/Amsterdam")
    assert found == [plain_time(text, "Europe/Amsterdam") for text in naive]
    assert (
        found[4] == 1_572_138_000_000_000 + 1_800_000_000 - 1_800_000_000
    )  # 02:00 is there twice: the later one
    assert found[12] == 1_585_445_400_000_000  # 02:30 is skipped: half an hour after 01:59:59


def test_a_period_is_of_days_in_the_logs_zone(tmp_path: Path) -> None:
    content = "\n".join(
        [
            *("time,client", "2019-09-30T21:59:59.999999Z,too early", "2019-09-30T22:00:00Z,first"),
            *("2019-10-28T22:59:59.999999Z,last", "2019-10-28T23:00:00Z,too late"),
        ]
    )
    log = import_text(
        tmp_path, content, zone="Europe/Amsterdam", cleaning=Cleaning(since="2019-10-01", until="2019-10-29")
    )
    assert [event["client_id"] for event in events_of(log)] == ["first", "last"]
    assert dropped_of(log) == {"outside": 2}
    assert (log.about["first"], log.about["last"]) == ("2019-09-30T22:00:00Z", "2019-10-28T22:59:59Z")
    assert log.about["events_by_day"]["2019-10-01"] == log.about["events_by_day"]["2019-10-28"] == 1
    assert len(log.about["events_by_day"]) == 28
    sharper = import_text(tmp_path, content, cleaning=Cleaning(until="2019-09-30T23:00:00+01:00"))
    assert [event["client_id"] for event in events_of(sharper)] == ["too early"]


def test_zones_and_periods_that_are_none(tmp_path: Path) -> None:
    cases: Any = [
        ({"zone": "Europe/Amsterdm"}, "did you mean 'Europe/Amsterdam'"),
        ({"zone": "europe/amsterdam"}, "did you mean 'Europe/Amsterdam'"),
        ({"times_in": "Mars"}, "time zone 'Mars'"),
        ({"cleaning": Cleaning(since="soon")}, "'soon' is no time"),
        ({"cleaning": Cleaning(since="2019-10-02", until="2019-10-01")}, "outside: 1"),
    ]
    for options, says in cases:
        refused(DiptychError, says, import_text, tmp_path, "time,client\n2019-10-01,a\n", **options)


def test_the_first_of_equal_events_stays_also_of_those_in_several_files(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "b.csv").write_text("time,client,visitor\n2019-10-02,x,\n2019-10-02,x,7\n2019-10-03,x,\n")
    (folder / "a.csv").write_text("time,client,visitor\n2019-10-02,x,\n2019-10-01,x,\n")
    log = ingest(folder, tmp_path / "log")
    told = [(event["event_id"], event["visitor_id"], event["local_day"]) for event in events_of(log)]
    assert told == [(0, None, 18171), (1, None, 18170), (3, "7", 18171), (4, None, 18172)]
    assert dropped_of(log) == {"duplicate": 1}


def test_an_address_tells_events_apart_and_is_not_kept(tmp_path: Path) -> None:
    content = "time,client,address\n2019-10-02,a,/1\n2019-10-02,a,/2\n2019-10-02,a,/1\n2019-10-02,a,\n"
    log = import_text(tmp_path, content)
    assert [event["event_id"] for event in events_of(log)] == [0, 1, 3]
    assert "address" not in events_of(log)[0]


MAPPING = """
time_format = "%d.%m.%Y %H:%M"
missing = ["0"]
[columns]
time = "ts"
client = "cookie"
visitor = "customer"
action = "event"
device = "screen"
page_type = "template"
purchase = "template"
[values.action]
page = ["screen_view"]
other = ["view"]
[values.device]
tablet = ["iPad"]
[values.page_type]
confirmation = ["order_done"]
[values.purchase]
yes = ["order_done"]
[constants]
channel = "Paid"
country = "nl"
"""


def test_a_file_says_which_column_holds_what_and_what_values_mean(tmp_path: Path) -> None:
    (tmp_path / "mapping.toml").write_text(MAPPING)
    content = "\n".join(
        [
            "ts|cookie|customer|event|screen|template",
            "01.10.2019 10:00|a|0|screen_view|iPad|home",
            "01.10.2019 10:01|a|7|VIEW|desktop|home",
            "01.10.2019 10:02|0|7|pageview|Watch|order_done",
            "01.10.2019 10:03|0|0|pageview||home",
            "01.10.2019 10:04|a||zoom||home",
        ]
    )
    mapping = read_mapping(tmp_path / "mapping.toml")
    log = import_text(tmp_path, content, mapping=mapping)
    columns = "client_id visitor_id action device page_type is_purchase channel country"
    assert [tuple(event[name] for name in columns.split()) for event in events_of(log)] == [
        ("a", None, "page", "tablet", "home", False, "paid", "NL"),
        ("a", "7", "other", "pc", None, False, "paid", "NL"),
        ("visitor:7", "7", "page", "watch", "confirmation", True, "paid", "NL"),
    ]
    assert dropped_of(log) == {"no client": 1, "unknown action": 1}
    assert any(note.startswith("1 events have a visitor and no client") for note in log.about["notes"])
    assert log.about["options"]["mapping"] == encode(mapping, {})


def test_names_and_values_of_strangers_are_never_sql(tmp_path: Path) -> None:
    bad = "x'); DROP TABLE events; --"
    column = '"cookie"\'; --'
    content = f'time,"{column.replace(chr(34), chr(34) * 2)}",event\n2019-10-01,"{bad}","{bad}"\n2019-10-01,b,other\n'
    mapping = ColumnMapping(
        columns={"time": "time", "client": column, "action": "event", "device": "event"},
        values={"action": {"page": (bad,)}, "device": {bad: (bad,)}},
        constants={"channel": bad},
        missing=(f"{bad}{bad}",),
    )
    found = events_of(import_text(tmp_path, content, mapping=mapping))
    assert [(event["client_id"], event["action"], event["device"], event["channel"]) for event in found] == [
        (bad, "page", bad.lower(), bad.lower()),
        ("b", "other", "other", bad.lower()),
    ]


def test_mappings_that_cannot_be() -> None:
    cases: Any = [
        ({"columns": {"tme": "x"}}, "columns: nothing is called 'tme'.*known: time, client"),
        ({"values": {"price": {}}}, "values: nothing is called 'price'"),
        ({"constants": {"time": "now"}}, "constants: nothing is called 'time'"),
        ({"values": {"action": {"zoom": ("z",)}}}, "action: nothing is called 'zoom'.*page, query, add"),
        ({"constants": {"action": "zoom"}}, "constants.action: nothing is called 'zoom'"),
        ({"values": {"purchase": {"no": ("0",)}}}, "values.purchase: .*known: yes"),
    ]
    for arguments, says in cases:
        refused(UsageError, says, ColumnMapping, **arguments)


def test_files_and_columns_that_are_no_mapping(tmp_path: Path) -> None:
    for content, says in (
        ("[columns", "is not TOML"),
        ("[column]\n", "unknown key 'column' .*columns, constants, missing, time_format, values"),
        ("[columns]\ntime = [1]", "columns.time: Input should be a valid string"),
    ):
        (tmp_path / "mapping.toml").write_text(content)
        refused(UsageError, says, read_mapping, tmp_path / "mapping.toml")
    for options, says in (
        ({"column": ["client=who"]}, "events.csv has columns when, who: client=who does not name the time"),
        ({"column": ["time=when", "client=cookie"]}, "time=when, client=cookie does not name"),
        ({"column": ["time"]}, "is not KEY=VALUE"),
        ({"time_format": "iso"}, "nothing does not name the time"),
        ({"mapping": ColumnMapping(), "format": "rees46"}, "'rees46' takes no columns"),
    ):
        refused(UsageError, says, import_text, tmp_path, "when,who\n1,2\n", **options)
