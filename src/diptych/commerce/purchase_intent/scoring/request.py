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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from diptych.commerce.logs.schema import SECOND, UNKNOWN
from diptych.commerce.purchase_intent.scoring.cell import Score
from diptych.commerce.purchase_intent.scoring.events import GivenEvent, read_event, read_time, shown
from diptych.core.errors import DataError


@dataclass(frozen=True)
class SessionSoFar:
    """What is known of a session at this moment; the words are those of the sessions and pages of a log."""

    start_us: int  # time of the first event
    device: str = UNKNOWN  # of the first event
    channel: str = UNKNOWN  # of the first event
    page_types: tuple[str, ...] = ()  # of the first pages, as many as are looked at
    page_times: tuple[int, ...] = ()  # microseconds, one per page of page_types
    n_pages: int = 0  # pages opened
    n_events: int = 0  # all events of the session
    visitor_id: str | None = None  # the first visitor known in it
    pages_before_identified: int | None = None  # pages opened strictly before the first event with a visitor
    bought_at: int | None = None  # number of the event with which something was bought first
    notes: tuple[str, ...] = ()  # what was odd about it, each a sentence

    @property
    def is_identified(self) -> bool:
        """Whether the visitor is known by now, as it is decided of sessions of a log: on arrival, or before the
        page opened last."""
        before = self.pages_before_identified
        return before is not None and (before == 0 or before < self.n_pages)


class RunningSession:
    """Takes events in the order of their times; :attr:`so_far` is the session that runs now.

    Args:
        gap_us: idle microseconds after which a session has ended, strictly more; None: never.
    """

    def __init__(self, gap_us: int | None, pages: int) -> None:
        self._gap_us, self._pages = gap_us, pages
        self._so_far: SessionSoFar | None = None
        self._last_us: int | None = None
        self._several_visitors = False

    @property
    def so_far(self) -> SessionSoFar | None:
        """The session that runs now; None before any event."""
        return self._so_far

    @property
    def last_us(self) -> int | None:
        """Time of the last event."""
        return self._last_us

    def add(self, event: GivenEvent) -> bool:
        """Take one more event; gives whether a page was opened."""
        if self._last_us is not None and event.t_us < self._last_us:
            raise DataError(
                f"event {event.number} is {(self._last_us - event.t_us) / SECOND:g} s earlier than the one before",
                "events are taken in the order of their times",
            )
        session = self._running_at(event)
        self._last_us = event.t_us
        is_page = event.action == "page"
        kept = is_page and session.n_pages < self._pages
        self._so_far = replace(
            self._with_visitor(session, event),
            n_events=session.n_events + 1,
            n_pages=session.n_pages + is_page,
            page_types=(*session.page_types, event.page_type) if kept else session.page_types,
            page_times=(*session.page_times, event.t_us) if kept else session.page_times,
            bought_at=event.number if event.is_purchase and session.bought_at is None else session.bought_at,
        )
        return is_page

    def _running_at(self, event: GivenEvent) -> SessionSoFar:
        """The session that the event belongs to, without it."""
        session = self._so_far
        new = SessionSoFar(event.t_us, event.device, event.channel)
        if session is None or self._last_us is None:
            return new
        idle = event.t_us - self._last_us
        if self._gap_us is None or idle <= self._gap_us:
            return session
        self._several_visitors = False
        said = (
            f"event {event.number} follows {idle / SECOND / 60:.0f} minutes after the one before: it begins a new "
            "session, and only that one counts"
        )
        return replace(new, notes=(said,))

    def _with_visitor(self, session: SessionSoFar, event: GivenEvent) -> SessionSoFar:
        if event.visitor_id is None or event.visitor_id == session.visitor_id:
            return session
        if session.visitor_id is None:
            return replace(session, visitor_id=event.visitor_id, pages_before_identified=session.n_pages)
        if self._several_visitors:
            return session
        self._several_visitors = True
        said = f"event {event.number} is of another visitor: the first one known counts"
        return replace(session, notes=(*session.notes, said))


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
    """A session so far, read."""

    session: SessionSoFar  # what its events say
    history: Mapping[str, Any] | None = None  # of the visitor, as it was given; None when it was not
    id: Any = None  # as it was given


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


# A session that runs: events come one by one, and after each page there is a score.
#
# The numbers are those of scoring the session so far as a whole: the same events go into the same running session.


class SessionStream:
    """One session at a time; it holds as much after a million events as after ten.

    Args:
        gap_us: idle microseconds after which a new session begins; None: never.
    """

    def __init__(
        self, score: Callable[[Request], Score], gap_us: int | None, pages: int, known: Mapping[str, Any]
    ) -> None:
        check_keys(known, [key for key in REQUEST_KEYS if key != "events"])
        self._score = score
        self._running = RunningSession(gap_us, pages)
        self._defaults = {key: known[key] for key in OF_EVENTS if known.get(key) is not None}
        self._history, self._id = known.get("history"), known.get("id")
        self._number = 0
        if known.get("start") is not None:
            self._running.add(arrival(known["start"], self._defaults))

    @property
    def last_us(self) -> int | None:
        """Time of the last event."""
        return self._running.last_us

    def add(self, event: Mapping[str, Any]) -> Score | None:
        """Take one more event; gives the score when it opened a page."""
        self._number += 1
        opened = self._running.add(read_event(event, self._number, self._defaults))
        return self.score() if opened else None

    def score(self) -> Score:
        """The score as things are."""
        if self._running.so_far is None:
            raise DataError("the session so far has no event", "add one, or give its start")
        return self._score(Request(self._running.so_far, self._history, self._id))
