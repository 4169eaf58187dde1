"""A session as it grows, against sessions cut out of all events in plain Python."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from events import canonical
from feature_oracle import sessions_of
from hypothesis import given
from hypothesis import strategies as st

from diptych.commerce.purchase_intent.scoring.events import read_event
from diptych.commerce.purchase_intent.scoring.request import RunningSession, SessionSoFar
from diptych.core.errors import DataError

GAP_US = 30 * 60 * 1_000_000


def running(events: list[dict[str, Any]], pages: int = 10) -> SessionSoFar:
    session = RunningSession(GAP_US, pages)
    for number, event in enumerate(events, 1):
        session.add(read_event(event, number))
    assert session.so_far is not None
    return session.so_far


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
    found = running(events, pages=3)
    assert found.start_us == expected.start
    assert found.device == expected.device
    assert found.visitor_id == expected.visitor
    assert found.pages_before_identified == expected.pages_before_visitor
    assert found.n_pages == len(expected.pages)
    assert found.n_events == len(expected.events)
    assert found.page_types == tuple(page["page_type"] or "unknown" for page in expected.pages[:3])
    assert found.page_times == tuple(page["t_us"] for page in expected.pages[:3])
    assert (found.bought_at is None) == (expected.bought is None)
    if expected.bought is not None and found.bought_at is not None:
        assert found.bought_at == expected.bought["event_id"] + 1


def test_thirty_minutes_are_one_session_and_more_are_two() -> None:
    assert running([{"t": 0}, {"t": 1800}]).n_pages == 2
    found = running([{"t": 0}, {"t": 1800.000001}])
    assert found.n_pages == 1
    assert "event 2 follows 30 minutes after the one before" in found.notes[0]


def test_a_log_may_say_itself_what_a_session_is() -> None:
    session = RunningSession(None, 10)
    for number, t in enumerate((0, 100_000)):
        session.add(read_event({"t": t}, number))
    assert session.so_far is not None
    assert session.so_far.n_pages == 2


@pytest.mark.parametrize(
    ("events", "identified"),
    [
        ([{}, {}], False),
        ([{"visitor_id": "v"}, {}], True),  # recognised on arrival
        ([{"action": "other", "visitor_id": "v"}], True),
        ([{}, {"visitor_id": "v"}], True),  # the second page says who it is
        ([{}, {}, {"action": "other", "visitor_id": "v"}], False),  # known from the next page on
        ([{}, {}, {"action": "other", "visitor_id": "v"}, {}], True),
    ],
)
def test_when_a_visitor_is_known(events: list[dict[str, Any]], identified: bool) -> None:
    assert running([{"t": t, **event} for t, event in enumerate(events)]).is_identified == identified


def test_the_first_of_two_visitors_counts_and_it_is_said_once() -> None:
    found = running([{"t": t, "visitor_id": name} for t, name in enumerate("vvwx")])
    assert found.visitor_id == "v"
    assert found.notes == ("event 3 is of another visitor: the first one known counts",)


def test_an_event_out_of_order_changes_nothing() -> None:
    session = RunningSession(GAP_US, 10)
    session.add(read_event({"t": 10}, 1))
    before = session.so_far
    with pytest.raises(DataError, match="event 2 is 3 s earlier"):
        session.add(read_event({"t": 7}, 2))
    assert session.so_far == before
    assert session.add(read_event({"t": 11}, 3))


def test_a_million_events_need_no_more_than_the_first_pages() -> None:
    found = running([{"t": t, "page_type": str(t)} for t in range(1000)])
    assert found.page_types == tuple(map(str, range(10)))
    assert found.n_pages == 1000
