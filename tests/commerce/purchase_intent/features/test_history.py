"""What was known of a visitor when a session began."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ibis
import pyarrow as pa
import pytest
from events import canonical
from feature_oracle import Session, history_of, sessions_of
from intent_logs import random_events

from diptych.commerce.purchase_intent.features.make import HISTORY, visitor_history
from diptych.commerce.purchase_intent.sessions.tables import SESSIONS

MINUTE = 60_000_000


@pytest.fixture(scope="module")
def duckdb() -> Iterator[Any]:
    engine = ibis.duckdb.connect()
    yield engine
    engine.disconnect()


def row(session_id: int, start: int, **said: Any) -> dict[str, Any]:
    """A session of visitor v on a pc, known on arrival, of an hour; times in minutes."""
    given = {
        "visitor_id": "v",
        "device": "pc",
        "n_pages": 20,
        "known": 0,
        "end": start + 60,
        "bought": None,
    } | said
    bought = given["bought"]
    return {
        "session_id": session_id,
        "visitor_id": given["visitor_id"],
        "device": given["device"],
        "n_pages": given["n_pages"],
        "start_us": start * MINUTE,
        "end_us": given["end"] * MINUTE,
        "first_purchase_us": None if bought is None else bought * MINUTE,
        "pages_before_purchase": None if bought is None else 10,
        "pages_before_identified": given["known"],
    }


KINDS = {column.name: pa.type_for_alias(column.type) for column in SESSIONS}


def histories(engine: Any, rows: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    schema = pa.schema([pa.field(name, KINDS[name]) for name in row(0, 0)])
    table = ibis.memtable(pa.Table.from_pylist(rows, schema))
    found = engine.to_pyarrow(visitor_history(table, 12)).to_pylist()
    return {one.pop("session_id"): one for one in found}


def test_sessions_in_turn(duckdb: Any) -> None:
    found = histories(
        duckdb,
        [
            row(1, 0, device="pc", bought=30),
            row(2, 100, device="tv"),
            row(3, 200, device="pc", n_pages=1),  # too short to ask, and counts
            row(4, 300, device="pc", bought=310),
            row(5, 400, device="tablet"),
            row(6, 0, visitor_id=None),
            row(7, 350, visitor_id="w"),
        ],
    )
    assert sorted(found) == [1, 2, 4, 5, 7]
    none = dict.fromkeys(HISTORY) | {"sessions": 0, "orders": 0, "devices": 1, "switches": 0, "pairs": 0}
    assert found[1] == found[7] == none
    assert found[2] == none | {
        "sessions": 1,
        "orders": 1,
        "last_purchase_us": 30 * MINUTE,
        "devices": 2,
        "device_before_1": "pc",
    }
    assert found[5] == {
        "sessions": 4,
        "orders": 2,
        "last_purchase_us": 310 * MINUTE,
        "devices": 3,
        "switches": 2,
        "pairs": 3,
        "device_before_1": "pc",
        "device_before_2": "pc",
        "device_before_3": "tv",
        "device_before_4": "pc",
    }


def test_a_purchase_counts_by_its_own_time(duckdb: Any) -> None:
    found = histories(
        duckdb,
        [row(1, 0, end=300, bought=200), row(2, 100), row(3, 200), row(4, 201), row(5, 500, bought=510)],
    )
    assert [found[number]["orders"] for number in (1, 2, 3, 4, 5)] == [0, 0, 0, 1, 1]
    assert [found[number]["sessions"] for number in (1, 2, 3, 4, 5)] == [0, 1, 2, 3, 4]


def test_sessions_that_begin_together_do_not_see_each_other(duckdb: Any) -> None:
    found = histories(duckdb, [row(1, 0, device="tv"), row(2, 100), row(3, 100, device="tv"), row(4, 101)])
    assert [found[number]["sessions"] for number in (1, 2, 3, 4)] == [0, 1, 1, 3]
    assert found[2]["device_before_1"] == found[3]["device_before_1"] == "tv"
    assert (found[2]["devices"], found[3]["devices"]) == (2, 1)
    assert (found[4]["switches"], found[4]["pairs"]) == (2, 2)  # tv, pc, tv


def test_before_a_log_in_nobody_knows_whose_session_it_is(duckdb: Any) -> None:
    found = histories(
        duckdb,
        [
            row(1, 0, end=150, known=5, bought=50, device="tv"),  # at page 5; bought with page 10
            row(2, 10, end=20, known=11, bought=12, device="tablet"),  # bought with page 10, then logged in
            row(3, 15),
            row(4, 100),
            row(5, 151),
        ],
    )
    # The first session itself counts from its end, what was bought in it after the log-in at once.
    assert (found[3]["sessions"], found[3]["orders"], found[3]["devices"]) == (0, 0, 1)
    assert (found[4]["sessions"], found[4]["orders"], found[4]["devices"]) == (2, 2, 2)
    assert (found[5]["sessions"], found[5]["orders"], found[5]["devices"]) == (4, 2, 3)
    assert found[5]["device_before_1"] == "tv"  # known last
    assert found[5]["last_purchase_us"] == 50 * MINUTE


def test_bought_on_the_page_of_the_log_in_counts_from_the_end(duckdb: Any) -> None:
    """Which of the two came first is not in the table of sessions."""
    found = histories(duckdb, [row(1, 0, end=150, known=10, bought=50), row(2, 100), row(3, 151)])
    assert (found[2]["orders"], found[3]["orders"]) == (0, 1)


def from_sessions(sessions: list[Session]) -> list[dict[str, Any]]:
    return [
        {
            "session_id": one.session_id,
            "visitor_id": one.visitor,
            "device": one.device,
            "n_pages": len(one.pages),
            "start_us": one.start,
            "end_us": one.end,
            "first_purchase_us": None if one.bought is None else one.bought["t_us"],
            "pages_before_purchase": one.pages_before_purchase,
            "pages_before_identified": one.pages_before_visitor,
        }
        for one in sessions
    ]


def checked(engine: Any, seed: int) -> None:
    sessions = sessions_of(canonical(random_events(seed)))
    found = histories(engine, from_sessions(sessions))
    asking = [one for one in sessions if one.visitor is not None and len(one.pages) >= 12]
    assert len(asking) == len(found) > 10
    for one in asking:
        assert found[one.session_id] == history_of(one, sessions)


@pytest.mark.parametrize("seed", range(4))
def test_the_same_as_one_session_at_a_time(duckdb: Any, seed: int) -> None:
    checked(duckdb, seed)
