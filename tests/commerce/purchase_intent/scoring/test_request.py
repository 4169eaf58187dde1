"""A session so far as one object: what is put in order and said, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from diptych.commerce.purchase_intent.scoring.request import Request, read_request
from diptych.core.errors import DataError

GAP_US = 30 * 60 * 1_000_000


def read(given: Any) -> Request:
    return read_request(given, GAP_US, 10)


def test_events_are_sorted_and_it_is_said() -> None:
    events = [{"t": 20, "page_type": "b"}, {"t": 10, "page_type": "a"}, {"t": 20, "page_type": "c"}]
    session = read({"events": events}).session
    assert session.page_types == ("a", "b", "c")
    assert session.notes == ("events are not in the order of their times, first event 1: they were sorted",)
    assert read({"events": events[1:]}).session.notes == ()


def test_before_the_first_page_there_is_an_arrival() -> None:
    request = read({"id": [1], "start": 50, "device": "TV", "channel": "paid", "visitor_id": "v"})
    session = request.session
    assert request.id == [1]
    assert (session.start_us, session.device, session.channel) == (50_000_000, "tv", "paid")
    assert (session.n_pages, session.is_identified) == (0, True)


def test_an_arrival_takes_device_and_channel_of_the_first_event() -> None:
    session = read({"start": 50, "events": [{"t": 70}, {"t": 60, "device": "pc", "channel": "paid"}]}).session
    assert (session.start_us, session.device, session.channel) == (50_000_000, "pc", "paid")
    assert session.n_pages == 2


def test_what_is_said_once_is_of_all_events_that_do_not_say_it() -> None:
    given = {"device": "tv", "visitor_id": "v", "events": [{"t": 0, "device": "pc"}, {"t": 9000}]}
    session = read(given).session
    assert (session.device, session.visitor_id, session.is_identified) == ("tv", "v", True)
    assert "begins a new session" in session.notes[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "is list, not an object"),
        ({}, "has no event"),
        ({"events": []}, "has no event"),
        ({"events": "page"}, "events is str, not a list"),
        ({"events": [{"t": 0}, {"t": "x"}]}, "event 2 has the time"),
        ({"event": [{"t": 0}]}, "has no 'event'"),
        ({"events": [{"t": 0}], "history": [1]}, "the history is list"),
        ({"start": 10, "events": [{"t": 20}, {"t": 9}]}, "event 2 is earlier than the start"),
        ({"start": "soon"}, "the start has the time 'soon'"),
    ],
)
def test_what_is_refused(given: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(given)
