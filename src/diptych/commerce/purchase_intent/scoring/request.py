"""A session so far, as one JSON object: its events, what is known without any, and the visitor's history.

::

    {"id": "anything, given back with the score",
     "start": "2019-10-01T19:30:00+02:00", "device": "pc", "channel": "paid", "visitor_id": "v17",
     "events": [{"t": "2019-10-01T19:30:00+02:00", "page_type": "home"}, …],
     "history": {"orders": 3, "days_since_purchase": 12.5, …}}

``events`` alone is enough. ``start`` is the arrival, before any page; ``visitor_id`` beside the events is a visitor
recognised on arrival; it, ``device`` and ``channel`` are of events that do not say theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from diptych.commerce.purchase_intent.scoring.events import GivenEvent, read_event, read_time, shown
from diptych.commerce.purchase_intent.scoring.running import RunningSession, SessionSoFar
from diptych.core.errors import DataError

REQUEST_KEYS: Mapping[str, str] = {
    "events": "what the visitor did, a list of objects",
    "start": "time of the arrival, where it is before the first event",
    "device": "device type of events that name none",
    "channel": "channel of events that name none",
    "visitor_id": "the customer, recognised on arrival",
    "history": "what is known of the visitor's earlier sessions, an object",
    "id": "anything; it comes back with the score",
}


_MOST_SHOWN = 5

OF_EVENTS = ("device", "channel", "visitor_id")
"""What may be said once for all events."""


@dataclass(frozen=True)
class Request:
    """A session so far, read.

    Attributes:
        session: what its events say.
        history: of the visitor, as it was given; None when it was not.
        id: as it was given.
    """

    session: SessionSoFar
    history: Mapping[str, Any] | None = None
    id: Any = None


def read_request(given: Any, gap_us: int | None, pages: int) -> Request:
    """Read a session so far.

    Events that are not in the order of their times are put in it, and of several sessions only the last counts;
    the session's notes say so.

    Args:
        gap_us: idle microseconds after which a session has ended; None: never.
    """
    if not isinstance(given, Mapping):
        raise DataError(
            f"a session so far is {type(given).__name__}, not an object", 'e.g. {"events": [{"t": 0}]}'
        )
    check_keys(given, list(REQUEST_KEYS))
    history = given.get("history")
    events = _events(given)
    in_order = sorted(events, key=lambda event: (event.t_us, event.number))
    running = RunningSession(gap_us, pages)
    for event in in_order:
        running.add(event)
    session = running.so_far
    assert session is not None
    if in_order != events:
        moved = next(one.number for one, other in zip(events, in_order, strict=True) if one is not other)
        said = f"events are not in the order of their times, first event {moved}: they were sorted"
        session = replace(session, notes=(said, *session.notes))
    return Request(session, history, given.get("id"))


def check_keys(given: Mapping[str, Any], known: Sequence[str]) -> None:
    """See that all keys have a meaning, and that a history is an object."""
    if strange := sorted(map(str, set(given) - set(known))):
        raise DataError(
            f"a session so far has no {', '.join(map(shown, strange[:_MOST_SHOWN]))}",
            f"known: {', '.join(known)}",
        )
    history = given.get("history")
    if history is not None and not isinstance(history, Mapping):
        raise DataError(f"the history is {type(history).__name__}, not an object", 'e.g. {"orders": 3}')


def _events(given: Mapping[str, Any]) -> list[GivenEvent]:
    """All events, in the order given; an arrival is one before them, number 0."""
    listed = given.get("events") or []
    if not isinstance(listed, list | tuple):
        raise DataError(f"events is {type(listed).__name__}, not a list", 'e.g. [{"t": 0, "action": "page"}]')
    defaults = {key: given[key] for key in OF_EVENTS if given.get(key) is not None}
    events = [read_event(one, number, defaults) for number, one in enumerate(listed, 1)]
    if given.get("start") is None:
        if events:
            return events
        raise DataError(
            "the session so far has no event",
            "give its events; before the first page: start, device and channel of the arrival",
        )
    start_us = read_time(given["start"], "the start")
    if events:
        first = min(events, key=lambda event: event.t_us)
        if first.t_us < start_us:
            raise DataError(
                f"event {first.number} is earlier than the start", "the start is the time of the arrival"
            )
        defaults = {"device": first.device, "channel": first.channel, **defaults}
    return [arrival(given["start"], defaults), *events]


def arrival(start: Any, known: Mapping[str, Any]) -> GivenEvent:
    """Event 0: somebody is there, and no page is open yet."""
    event = read_event({"t": 0, "action": "other"}, 0, known)
    return replace(event, t_us=read_time(start, "the start"))
