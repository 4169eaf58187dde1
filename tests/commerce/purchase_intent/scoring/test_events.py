"""Events as a shop's service sends them: what they mean, and what is refused with the event's number."""

from __future__ import annotations

from typing import Any

import pytest

from diptych.commerce.purchase_intent.scoring.events import GivenEvent, read_event, read_time
from diptych.core.errors import DataError

NOON = 1_569_931_200  # 2019-10-01T12:00:00Z


def test_what_an_event_says() -> None:
    given = {
        "t": NOON,
        "action": "page",
        "page_type": " home ",
        "device": "PC",
        "channel": "Paid",
        "visitor_id": 17,
    }
    assert read_event(given, 3) == GivenEvent(3, NOON * 1_000_000, "page", "home", "pc", "paid", "17", False)


def test_what_is_not_said_is_a_page_of_nobody() -> None:
    assert read_event({"t": 0, "visitor_id": ""}, 1) == GivenEvent(
        1, 0, "page", "unknown", "unknown", "unknown", None, False
    )


def test_defaults_are_for_what_is_not_said() -> None:
    defaults = {"device": "tv", "channel": "direct"}
    read = read_event({"t": 0, "device": "pc", "channel": None}, 1, defaults)
    assert (read.device, read.channel) == ("pc", "direct")


def test_words_are_those_of_an_import() -> None:
    read = read_event({"t": 0, "action": "AddToCart", "device": "Desktop", "visitor_id": "null"}, 1)
    assert (read.action, read.device, read.visitor_id) == ("add", "pc", None)
    assert read_event({"t": 0, "device": "fridge"}, 1).device == "fridge"


@pytest.mark.parametrize("given", [{"action": "purchase"}, {"action": "page", "is_purchase": True}])
def test_what_a_purchase_is(given: dict[str, Any]) -> None:
    assert read_event({"t": 0, **given}, 1).is_purchase


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        (NOON, NOON),
        (NOON + 0.25, NOON + 0.25),
        ("2019-10-01T12:00:00Z", NOON),
        ("2019-10-01T14:00:00+02:00", NOON),
        ("2019-10-01 12:00:00", NOON),
        ("2019-10-01T12:00:00.000001+00:00", NOON + 0.000001),
    ],
)
def test_times(time: float | str, seconds: float) -> None:
    assert read_time(time, "it") == round(seconds * 1_000_000)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("page", "event 4 is str, not an object"),
        ({}, "event 4 has no time"),
        ({"t": "yesterday"}, "event 4 has the time 'yesterday'"),
        ({"t": True}, "event 4 has the time True"),
        ({"t": float("nan")}, "event 4 has the time nan"),
        ({"t": -1}, "outside the years"),
        ({"t": NOON * 1000}, "outside the years"),
        ({"t": 0, "action": "dance"}, "event 4 has the action 'dance'"),
        ({"t": 0, "action": ["page"]}, "event 4 has action list, not a text"),
        ({"t": 0, "is_purchase": "yes"}, "event 4 has is_purchase 'yes'"),
        ({"t": 0, "page_type": {"a": 1}}, "event 4 has page_type"),
        ({"t": 0, "visitor_id": True}, "event 4 has visitor_id bool"),
        ({"t": 0, "visitor_id": 10**5000}, "event 4 has visitor_id int"),
        ({"t": 10**400}, "event 4 has the time"),
    ],
)
def test_what_is_refused(given: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_event(given, 4)
