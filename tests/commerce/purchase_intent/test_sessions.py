"""Sessions of events against plain Python, and one spelling of queries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from events import write_log
from odd_logs import ODD_QUERIES
from session_oracle import one_spelling

from diptych.commerce.purchase_intent.engine import Engine, open_engine
from diptych.commerce.purchase_intent.sessions import SessionOptions, SessionTables, sessionise
from diptych.commerce.purchase_intent.sessions.sessionise import normalised
from diptych.commerce.purchase_intent.sessions.tables import PAGES, QUERIES, SESSIONS
from diptych.core.errors import DataError, UnknownNameError, UsageError

HALF_HOUR = 1800.0

MICROSECOND = 1e-6


def rows(tables: SessionTables, name: str = "sessions") -> list[dict[str, Any]]:
    return [row for file in tables.files(name) for row in pq.read_table(file).to_pylist()]


def sessions(
    folder: Path, engine: Engine, events: list[dict[str, Any]], **options: Any
) -> list[dict[str, Any]]:
    return rows(sessionise(write_log(folder / "log", events), SessionOptions(**options), engine=engine))


def test_exactly_half_an_hour_is_one_session(tmp_path: Path, engine: Engine) -> None:
    events = [{"t": 0}, {"t": HALF_HOUR}, {"t": 2 * HALF_HOUR + MICROSECOND}]
    found = sessions(tmp_path, engine, events)
    assert [(row["session_id"], row["n_events"], row["end_us"]) for row in found] == [
        (0, 2, 1_800_000_000),
        (2, 1, 3_600_000_001),
    ]


def test_a_shorter_gap(tmp_path: Path, engine: Engine) -> None:
    found = sessions(tmp_path, engine, [{"t": 0}, {"t": 30}, {"t": 61}], gap_minutes=0.5)
    assert [row["n_events"] for row in found] == [2, 1]


def test_what_a_session_says_is_what_its_first_event_says(tmp_path: Path, engine: Engine) -> None:
    late, early = {"t": 7200.0, "device": "tv"}, {"t": 3599.0, "device": "pc", "channel": "paid"}
    tied = {"t": 3599.0, "device": "tablet"}
    (row, other) = sessions(tmp_path, engine, [late, early, tied])
    assert row["session_id"] == 0
    assert row["device"] == "tv"
    # Of two at the same time the one that arrived first.
    assert {name: other[name] for name in ("session_id", "device", "channel", "start_hour", "start_dow")} == {
        "session_id": 1,
        "device": "pc",
        "channel": "paid",
        "start_hour": 0,
        "start_dow": 3,
    }


def test_a_log_in_assigns_all_of_the_session(tmp_path: Path, engine: Engine) -> None:
    events = [
        {"t": 0, "action": "page"},
        {"t": 1, "action": "query", "query": "x"},
        {"t": 2, "action": "page"},
        {"t": 2, "action": "other", "visitor_id": "ann"},
        {"t": 3, "action": "page", "visitor_id": "ann"},
        {"t": 3, "action": "purchase", "is_purchase": True, "visitor_id": "ann"},
        {"t": 4, "action": "page", "visitor_id": "bob"},
        {"t": 5, "action": "page", "visitor_id": "ann"},
        {"t": 6, "action": "purchase", "is_purchase": True},
    ]
    (row,) = sessions(tmp_path, engine, events)
    assert row == {
        "session_id": 0,
        "client_id": "c",
        "visitor_id": "ann",
        "person": "ann",
        "start_us": 0,
        "end_us": 6_000_000,
        "start_day": 0,
        "start_hour": 0,
        "start_dow": 3,
        "device": "pc",
        "channel": "direct",
        "n_events": 9,
        "length": 6,
        "n_pages": 5,
        "n_queries": 1,
        "n_visitors": 2,
        "purchase": True,
        "first_purchase_us": 3_000_000,
        "pages_before_purchase": 3,
        "pages_before_identified": 2,
    }


def test_a_purchase_page_is_not_before_itself(tmp_path: Path, engine: Engine) -> None:
    (row,) = sessions(tmp_path, engine, [{"t": 0}, {"t": 1, "is_purchase": True}, {"t": 2}])
    assert (row["n_pages"], row["pages_before_purchase"]) == (3, 1)
    assert row["pages_before_identified"] is None


def test_the_first_visitor_is_the_first_in_time_not_in_the_alphabet(tmp_path: Path, engine: Engine) -> None:
    names = ["zoe", "zoe", None, "ann", "zoe"]
    (row,) = sessions(tmp_path, engine, [{"t": t, "visitor_id": name} for t, name in enumerate(names)])
    assert (row["visitor_id"], row["n_visitors"], row["pages_before_identified"]) == ("zoe", 2, 0)


def test_first_pages_of_long_sessions_only(tmp_path: Path, engine: Engine) -> None:
    long = [{"t": t, "client_id": "long", "page_type": f"p{t}" if t != 3 else None} for t in range(12)]
    long.insert(5, {"t": 4.5, "client_id": "long", "action": "add"})
    short = [{"t": t, "client_id": "short"} for t in range(11)]
    tables = sessionise(write_log(tmp_path / "log", [*short, *long]), engine=engine)
    found = rows(tables, "pages")
    assert [row["position"] for row in found] == list(range(1, 11))
    assert [row["page_type"] for row in found] == [f"p{t}" if t != 3 else "unknown" for t in range(10)]
    assert {row["session_id"] for row in found} == {11}
    fewer = SessionOptions(pages=3)
    found = rows(sessionise(write_log(tmp_path / "again", [*short, *long]), fewer, engine=engine), "pages")
    assert [(row["session_id"], row["position"]) for row in found] == [
        (n, p) for n in (0, 11) for p in (1, 2, 3)
    ]


def test_by_visitor_a_person_is_followed_across_clients(tmp_path: Path, engine: Engine) -> None:
    events = [
        {"t": 0, "client_id": "phone", "visitor_id": "ann"},
        {"t": 60, "client_id": "laptop", "visitor_id": "ann"},
        {"t": 120, "client_id": "laptop"},
        {"t": 180, "client_id": "ann"},  # a client that is called as the visitor is
    ]
    log = write_log(tmp_path / "log", events, buckets=3)
    found = rows(sessionise(log, SessionOptions(by="visitor"), engine=engine))
    assert [(row["session_id"], row["n_events"], row["visitor_id"]) for row in found] == [
        (0, 2, "ann"),
        (2, 1, None),
        (3, 1, None),
    ]


def test_given_sessions_know_no_gap(tmp_path: Path, engine: Engine) -> None:
    events = [
        {"t": 0, "given_session": "1"},
        {"t": 100_000, "given_session": "1"},
        {"t": 100_001, "given_session": "2"},
        {"t": 100_002, "client_id": "d", "given_session": "1"},
        {"t": 100_003},
        {"t": 100_004},
        {"t": 200_000},
    ]
    found = sessions(tmp_path, engine, events, by="given")
    assert [(row["session_id"], row["n_events"]) for row in found] == [(0, 2), (2, 1), (3, 1), (4, 2), (6, 1)]


def test_given_sessions_have_to_be_given(tmp_path: Path, engine: Engine) -> None:
    with pytest.raises(UsageError, match="brings no sessions of its own"):
        sessions(tmp_path, engine, [{"t": 0}], by="given")
    assert not list((tmp_path / "log" / "sessions").glob("given*"))


def test_a_file_out_of_order_is_sorted(tmp_path: Path, engine: Engine) -> None:
    events = [{"t": t % 7 * 1000.0, "client_id": f"c{t % 5}"} for t in range(70)]
    log = write_log(tmp_path / "log", events)
    right = rows(sessionise(log, engine=engine, folder=tmp_path / "right"))
    file = log.buckets[0]
    table = pq.read_table(file)
    for name, shuffled in (
        ("reversed", table.take(list(range(69, -1, -1)))),
        ("by time", table.sort_by([("t_us", "ascending"), ("client_id", "ascending")])),
        (
            "ties",
            table.sort_by([("client_id", "ascending"), ("t_us", "ascending"), ("event_id", "descending")]),
        ),
    ):
        pq.write_table(shuffled, file)
        assert rows(sessionise(log, engine=engine, folder=tmp_path / name)) == right


def test_one_number_for_two_events_is_damage(tmp_path: Path, engine: Engine) -> None:
    log = write_log(tmp_path / "log", [{"t": 0, "event_id": 4}, {"t": 0, "event_id": 4}])
    with pytest.raises(DataError, match="same number"):
        sessionise(log, engine=engine)
    assert not [path for path in (tmp_path / "log" / "sessions").iterdir() if path.is_dir()]


def test_many_files_are_the_same_as_one(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [
        {"t": t * 700.0, "client_id": f"c{t % 11}", "action": "query", "query": str(t)} for t in range(200)
    ]
    by_id = lambda row: row["session_id"]  # noqa: E731
    right = rows(sessionise(write_log(tmp_path / "one", events), engine=engine))
    log = write_log(tmp_path / "many", events, buckets=7)
    for worth, parts in ((100_000, 1), (1, len(log.buckets)), (1_000, 3)):
        monkeypatch.setattr(sys.modules[sessionise.__module__], "_WORTH_A_PASS", worth)
        monkeypatch.setattr(type(engine), "rows_at_once", 100 if worth == 1_000 else 1_000_000)
        tables = sessionise(log, engine=engine, folder=tmp_path / str(worth))
        assert len(tables.files("sessions")) == parts
        assert sorted(rows(tables), key=by_id) == right
        assert len(rows(tables, "queries")) == 200


def test_the_same_bytes_whatever_the_threads(tmp_path: Path) -> None:
    events = [
        {"t": t * 900.0, "client_id": f"c{t % 300}", "action": "query", "query": f"q{t % 9}"}
        for t in range(3000)
    ]
    log = write_log(tmp_path / "log", events)
    written = []
    for threads in (1, 4):
        with open_engine(threads=threads) as engine:
            tables = sessionise(log, engine=engine, folder=tmp_path / str(threads))
        written.append([path.read_bytes() for path in sorted(tables.folder.rglob("*")) if path.is_file()])
    assert written[0] == written[1]


def test_columns_are_as_declared(tmp_path: Path, engine: Engine) -> None:
    empty = write_log(tmp_path / "empty", [])
    gone = write_log(tmp_path / "gone", [])
    gone.buckets[0].unlink()
    for log in (empty, gone, write_log(tmp_path / "log", [{"t": 0}])):
        tables = sessionise(log, engine=engine)
        for name, columns in (("sessions", SESSIONS), ("pages", PAGES), ("queries", QUERIES)):
            schema = pq.read_schema(tables.files(name)[0])
            assert [(field.name, str(field.type)) for field in schema] == [
                (one.name, one.type) for one in columns
            ]
        assert tables.about["counts"]["sessions"] == len(rows(tables)) == log.n_events


def test_made_once(tmp_path: Path, engine: Engine) -> None:
    log = write_log(tmp_path / "log", [{"t": 0}, {"t": 10_000}])
    first = sessionise(log, engine=engine)
    assert first.folder.parent == log.folder / "sessions"
    for file in first.files("sessions"):
        file.write_bytes(b"mine")
    again = sessionise(log)
    assert again.about == first.about
    assert again.files("sessions")[0].read_bytes() == b"mine"
    # Of another log under the same name they are made anew.
    type(log)(log.about | {"fingerprint": "other"}).save(tmp_path / "log" / "log.json")
    other = sessionise(type(log).open(log.folder), engine=engine)
    assert other.folder == first.folder
    assert len(rows(other)) == 2
    assert other.fingerprint != first.fingerprint


def test_says_what_it_is(tmp_path: Path, engine: Engine) -> None:
    events = [{"t": 0, "visitor_id": "a"}, {"t": 1, "visitor_id": "b", "is_purchase": True}]
    tables = sessionise(write_log(tmp_path / "log", events), engine=engine)
    assert tables.line() == "log: 1 sessions by client, ended by more than 30 minutes without an event"
    assert tables.about["counts"] == {
        "events": 2,
        "sessions": 1,
        "identified": 1,
        "purchases": 1,
        "several_visitors": 1,
        "pages": 0,
        "queries": 0,
    }
    assert SessionTables.open(tables.folder) == tables
    with pytest.raises(UnknownNameError, match="unknown table of sessions 'visits'"):
        tables.files("visits")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"by": "household"}, "unknown session key 'household'"),
        ({"gap_minutes": 0.0}, "gap is 0 minutes"),
        ({"gap_minutes": float("nan")}, "gap is nan minutes"),
        ({"pages": 0}, "0 first pages"),
    ],
)
def test_what_cannot_be_asked_for(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        sessionise(write_log(tmp_path / "log", []), SessionOptions(**options))


def test_a_folder_of_somebody_else_stays(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="holds other things"):
        sessionise(write_log(tmp_path / "log", []), folder=tmp_path / "mine")
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


def test_says_whose_word_it_is_that_ends_a_session(tmp_path: Path, engine: Engine) -> None:
    log = write_log(tmp_path / "log", [{"t": 0, "given_session": "s"}, {"t": 9999, "given_session": "s"}])
    tables = sessionise(log, SessionOptions(by="given"), engine=engine)
    assert tables.line() == (
        "log: 1 sessions as the log gives them, others ended by more than 30 minutes without an event"
    )


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
