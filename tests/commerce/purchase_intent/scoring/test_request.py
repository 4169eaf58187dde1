"""Events and sessions so far as a shop sends them: read, put in order, refused; and as they grow."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from events import canonical
from feature_oracle import sessions_of
from hypothesis import strategies as st

from diptych.commerce.purchase_intent.features.fitting import EARLIER_DEVICES, HISTORY_COLUMNS
from diptych.commerce.purchase_intent.scoring.request import (
    DAY_US,
    Event,
    History,
    SessionSoFar,
    SessionStream,
)
from diptych.core.errors import DataError

NOON = 1_569_931_200  # 2019-10-01T12:00:00Z
GAP_US = 30 * 60 * 1_000_000
START = 100 * DAY_US


def so_far(given: Any, pages: int = 10) -> SessionSoFar:
    found = SessionStream(lambda *_: None, GAP_US, pages, given)  # type: ignore[arg-type, return-value]
    found.score()
    assert found.so_far is not None
    return found.so_far


def columns(history: Any, device: str = "pc") -> tuple[dict[str, float | str], list[str]]:
    return History.read(history, "history", DataError).columns(START, device, 40 * DAY_US)


def test_an_event_is_read_in_the_words_of_logs() -> None:
    words = {"page_type": " home ", "device": "Desktop", "channel": "Paid", "visitor_id": 17, "basket": [1]}
    found = Event.read({"t": NOON, "action": "View", **words}, "event 1")
    assert (found.action, found.page_type, found.device, found.channel) == ("page", "home", "pc", "paid")
    assert (found.t, found.visitor_id, found.is_purchase) == (NOON * 1_000_000, "17", None)
    session = so_far({"visitor_id": "null", "events": [{"t": 0, "device": None, "action": None}]})
    assert (session.visitor_id, session.device, session.n_pages) == (None, "unknown", 1)
    given = {"device": "tv", "visitor_id": "v", "events": [{"t": 0, "device": "pc"}, {"t": 9000}]}
    session = so_far(given)  # what is given once is of all events that do not give it
    assert (session.device, session.visitor_id, session.is_identified) == ("tv", "v", True)
    assert "begins a new session" in session.notes[0]
    found = so_far({"events": [{"t": t, "visitor_id": name} for t, name in enumerate("vvwx")]})
    assert found.visitor_id == "v"


def test_times() -> None:
    cases: Any = [
        (NOON + 0.25, NOON + 0.25),
        ("2019-10-01T14:00:00+02:00", NOON),
        ("2019-10-01 12:00:00", NOON),
        ("2019-10-01T12:00:00.000001+00:00", NOON + 0.000001),
    ]
    for time, seconds in cases:
        assert so_far({"start": time}).start_us == round(seconds * 1_000_000)


REFUSED = [
    ("event", "page", "event 4: .*dictionary"),
    ("event", {"t": "yesterday"}, "event 4: t: .*valid datetime"),
    ("event", {"t": float("nan")}, "NaN"),
    ("event", {"t": -1}, "before the year 1970"),
    ("event", {"t": NOON * 1000}, "dates after 9999"),  # milliseconds
    ("event", {"t": 0, "action": "dance"}, "event 4: action: no known action, which are page, query"),
    ("event", {"t": 0, "is_purchase": "yes"}, "event 4: is_purchase: .*valid boolean"),
    ("history", {"order": 1}, "history: unknown key 'order'"),
    ("history", {"sessions": 10**400}, "history: sessions: .*less than"),
    ("history", {"sessions": 2, "devices": ["pc"]}, "1 devices of 2 sessions"),
    ("history", {"orders": 0, "sessions": 3, "days_since_purchase": 4}, "no orders, and a purchase"),
    ("history", {"orders": 1, "days_since_purchase": -0.5}, "days_since_purchase: .*greater than"),
    ("history", {"orders": 1, "last_purchase": 101 * 86_400}, "1 days after this session's start"),
    ("history", {"orders": 1, "last_purchase": 1, "days_since_purchase": 1}, "last_purchase and days_since"),
    ("session", {"events": []}, "has no event"),
    ("session", {"events": [{"t": 0}, {"t": "x"}]}, "a session so far: events.1.t: "),
    ("session", {"events": [{"t": 0}], "history": {"order": 1}}, "unknown key 'history.order'"),
    ("session", {"start": 10, "events": [{"t": 20}, {"t": 9}]}, "event 1 is 1 s earlier than the start"),
]


def test_what_is_refused() -> None:
    for what, given, message in REFUSED:
        readers = {
            "event": lambda one: Event.read(one, "event 4", DataError),
            "history": columns,
            "session": so_far,
        }
        with pytest.raises(DataError, match=message):
            readers[what](given)

    def test_a_whole_history() -> None:
        given = {"sessions": 6, "devices": ["TV", "pc", "pc", "tablet", "pc", "tv"], "orders": 2,
                 "last_purchase": "1970-04-09T12:00:00Z"}  # fmt: skip
        found, missing = columns(given, "smartphone")
        assert missing == []
        assert set(found) == set(HISTORY_COLUMNS)
        expected = {
            "sessions": 6,
            "orders": 2,
            "days_since_purchase": 1.5,
            "devices": 4,
            "switches": 4,
            "pairs": 5,
        }
        earlier = dict(zip(EARLIER_DEVICES, ("tv", "pc", "tablet", "pc"), strict=True))
        assert found == expected | {"history_days": 60.0} | earlier

    def test_what_nobody_says_is_missing_and_named() -> None:
        found, missing = History().columns(START, "pc", None)
        assert missing == ["sessions", "devices", "orders"]
        assert all(value == "" or math.isnan(float(value)) for value in found.values())
        found, missing = columns({"orders": 3, "sessions": 4, "since": 90 * 86_400})
        assert missing == ["devices", "last_purchase"]
        assert (found["orders"], found["sessions"], found["history_days"]) == (3.0, 4.0, 10.0)
        assert math.isnan(float(found["devices"]))

    EVENTS = st.lists(
        st.fixed_dictionaries(
            {
                "wait": st.sampled_from([0, 5, 60, 1799, 1800, 1801, 4000]),
                "action": st.sampled_from(["page", "page", "page", "query", "other", "purchase"]),
                "page_type": st.sampled_from([None, "home", "product"]),
                "device": st.sampled_from(["pc", "tv"]),
                "visitor_id": st.sampled_from([None, None, "v", "w"]),
            }
        ),
        min_size=1,
        max_size=25,
    )

    @given(EVENTS)
    def test_it_is_the_last_session_of_a_log(drawn: list[dict[str, Any]]) -> None:
        times = itertools.accumulate(event["wait"] for event in drawn)
        events = [
            {**event, "t": t, "is_purchase": event["action"] == "purchase"}
            for event, t in zip(drawn, times, strict=True)
        ]
        events = [{key: value for key, value in event.items() if key != "wait"} for event in events]
        expected = sessions_of(canonical(events))[-1]
        found = so_far({"events": events}, pages=3)
        assert found.start_us == expected.start
        assert found.device == expected.device
        assert found.visitor_id == expected.visitor
        assert found.pages_before_identified == expected.pages_before_visitor
        assert found.n_pages == len(expected.pages)
        assert found.page_types == [page["page_type"] or "unknown" for page in expected.pages[:3]]
        assert found.page_times == [page["t_us"] for page in expected.pages[:3]]
        assert (found.bought_at is None) == (expected.bought is None)
        if expected.bought is not None and found.bought_at is not None:
            assert found.bought_at == expected.bought["event_id"] + 1
