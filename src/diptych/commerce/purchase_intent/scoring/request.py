"""A session so far, as one JSON object, and the answer: its events, what is known without any, and the history.

``events`` are enough. ``start`` is the arrival, before any page; ``visitor_id`` outside of the events is a visitor
recognised on arrival; it, ``device`` and ``channel`` are of events that do not say theirs.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, ConfigDict, Field, StrictBool, StringConstraints, model_validator

from diptych.commerce.logs.log import ACTION_WORDS, ACTIONS, DEVICE_WORDS, MISSING_WORDS, SECOND, UNKNOWN
from diptych.commerce.purchase_intent.features.fitting import EARLIER_DEVICES, HISTORY_COLUMNS, NOTHING
from diptych.commerce.purchase_intent.shown import number, pages_text
from diptych.core.errors import DataError
from diptych.core.options import Options

Columns = dict[str, float | str]

DAY_US = 86_400 * SECOND
_ACTION = {word: action for action, words in ACTION_WORDS.items() for word in words}
_DEVICE = {word: device for device, words in DEVICE_WORDS.items() for word in words}


def _microseconds(moment: datetime) -> int:
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    found = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    if found < 0:
        raise ValueError("before the year 1970")
    return found


def _action(word: str) -> str:
    if word not in _ACTION:
        raise ValueError(f"no known action, which are {', '.join(ACTIONS)}")
    return _ACTION[word]


_T = "an ISO time (of UTC, where it names no zone), or seconds since 1970-01-01 UTC, not milliseconds"
if TYPE_CHECKING:
    Time = int  # microseconds since 1970
else:
    Time = Annotated[datetime, AfterValidator(_microseconds)]
Lower = Annotated[str, StringConstraints(to_lower=True)]
Action = Annotated[Lower, AfterValidator(_action)]
Device = Annotated[Lower, AfterValidator(lambda word: _DEVICE.get(word, word))]  # a desktop is a pc
Visitor = Annotated[str, AfterValidator(lambda name: None if name in MISSING_WORDS else name)]
Count = Annotated[int, Field(ge=0, le=10**9)]


class _Given(Options):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        coerce_numbers_to_str=True, str_strip_whitespace=True, val_temporal_unit="seconds"
    )


class Event(_Given):
    """One event; what else is in it is passed over, as it plays no part."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")
    t: Time = Field(description=f"when: {_T}")
    action: Action | None = Field(None, description=f"one of {', '.join(ACTIONS)}; page, when not given")
    page_type: str | None = Field(None, description="in the words of the scorer's log")
    device: Device | None = Field(None, description="a device type")
    channel: Lower | None = Field(None, description="how the visitor came")
    visitor_id: Visitor | None = Field(None, description="the customer, where known")
    is_purchase: StrictBool | None = Field(None, description="an action purchase always is")


class ClientEvent(Event):
    """An event of a stream of many clients."""

    client_id: str = Field(description="whose session it belongs to")


class History(_Given):
    """A visitor's history; what it does not say is missing, of a new visitor ``{"sessions": 0}`` says everything."""

    sessions: Count | None = Field(None, description="the visitor's sessions before this one")
    devices: list[Device] | None = Field(None, description="device type of each, earliest first")
    orders: Count | None = Field(None, description="sessions of them with a purchase, until now")
    last_purchase: Time | None = Field(None, description=f"when something was bought last: {_T}")
    days_since_purchase: float | None = Field(
        None, ge=0, lt=1e9, description="the same in days before this session's start"
    )
    since: Time | None = Field(None, description=f"since when sessions were recorded: {_T}")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        bought = (self.last_purchase, self.days_since_purchase)
        if None not in bought:
            raise ValueError("it has last_purchase and days_since_purchase: give one of them")
        if self.orders == 0 and bought != (None, None):
            raise ValueError("it has no orders, and a purchase: orders counts what was bought before")
        if self.devices is not None and self.sessions not in (None, len(self.devices)):
            wrong = f"{len(self.devices)} devices of {self.sessions} sessions"
            raise ValueError(f"it has {wrong}: give one for every earlier session, or none")
        return self

    def columns(self, start_us: int, device: str, since_us: int | None) -> tuple[Columns, list[str]]:
        """Return the history columns of a session, and the names of those that nothing is known of."""
        days, earlier, orders, sessions = self.days_since_purchase, self.devices, self.orders, self.sessions
        if self.last_purchase is not None:
            days = (start_us - self.last_purchase) / DAY_US
            if days < 0:
                wrong = f"the history's last purchase is {-days:g} days after this session's start"
                raise DataError(wrong, "only what was bought before the session is history")
        if sessions is None and earlier is not None:
            sessions = len(earlier)
        if sessions == 0:
            earlier, orders = earlier or [], orders or 0
        since = since_us if self.since is None else self.since
        numbers = {"sessions": sessions, "orders": orders, "days_since_purchase": days}
        numbers["history_days"] = None if since is None else (start_us - since) / DAY_US
        columns: Columns = dict.fromkeys(HISTORY_COLUMNS, math.nan) | dict.fromkeys(EARLIER_DEVICES, NOTHING)
        if earlier is not None:
            names = [one or UNKNOWN for one in earlier]
            numbers |= {"devices": len({*names, device}), "pairs": max(0, len(names) - 1)}
            numbers["switches"] = sum(one != other for one, other in pairwise(names))
            columns |= dict(zip(EARLIER_DEVICES, reversed(names), strict=False))
        columns |= {name: float(value) for name, value in numbers.items() if value is not None}
        given = {"sessions": sessions, "devices": earlier, "orders": orders}
        missing = [name for name, value in given.items() if value is None]
        return columns, missing + ["last_purchase"] * (days is None and bool(orders))


class Session(_Given):
    """A session so far, or what is known of one that is about to run."""

    start: Time | None = Field(None, description=f"the arrival, where it is before the first event: {_T}")
    device: Device | None = Field(None, description="device type of events that name none")
    channel: Lower | None = Field(None, description="channel of events that name none")
    visitor_id: Visitor | None = Field(None, description="a customer known on arrival")
    history: History | None = Field(None, description='the visitor\'s earlier sessions, e.g. {"orders": 3}')
    events: list[Event] = Field([], description='what the visitor did, e.g. [{"t": 0}]')
    id: Any = Field(None, description="anything; it comes back with the score")


class Reason(Options):
    """The effect of one feature on the odds of a purchase in this session."""

    feature: str = Field(description="its name")
    label: str = Field(description="as people call it")
    value: str = Field(description="in this session, as text")
    typical: str = Field(description="its middle or most frequent value among training sessions, as text")
    effect: float = Field(description="log-odds less their mean with the values of training sessions")
    text: str = Field(description="all of it in a sentence")


class Score(Options):
    """The probability that a session ends in a purchase, as far as it is known."""

    p: float = Field(description="calibrated; 1 of a session in which something was bought already")
    step: int = Field(description="how many pages it rests on, -1 of a whole session")
    setting: str = Field(description="anonymous, identified or all")
    base_rate: float = Field(description="share of purchases among the sessions that the model learned from")
    lift: float = Field(description="p as a multiple of the base rate")
    threshold: float = Field(description="the probability with the best F1")
    likely: bool = Field(description="whether p is at least the threshold")
    cost_threshold: float | None = Field(description="from which on acting costs least, of known costs")
    worth_acting: bool | None = Field(description="whether p is at least the threshold by cost")
    reasons: tuple[Reason, ...] = Field((), description="features with the greatest effects, greatest first")
    notes: tuple[str, ...] = Field((), description="what was odd, or assumed, each a sentence")
    bought: bool = Field(False, description="whether something was bought already")

    def line(self) -> str:
        side, worth = "above" if self.likely else "below", "worth" if self.worth_acting else "not worth"
        lift = f"{self.lift:.2g} × the base rate of {self.base_rate:.3f}"
        line = (
            f"p {number(self.p, 3)} {pages_text(self.step)}, {self.setting}: {lift}, {side} the threshold of"
        )
        cost = f"; by cost {worth} acting (from {self.cost_threshold:.3f} on)" if self.cost_threshold else ""
        return f"{line} {self.threshold:.3f}{cost}"


class Refusal(Options):
    """The answer to a document that cannot be scored."""

    error: str = Field(description="what is wrong")
    fix: str = Field(description="what to do")


@dataclass
class SessionSoFar:
    """A session as it is known at this moment; device and channel are of its first event."""

    start_us: int
    device: str
    channel: str
    page_types: list[str] = field(default_factory=list)  # of the first pages, as many as are looked at
    page_times: list[int] = field(default_factory=list)  # microseconds
    n_pages: int = 0  # pages opened
    visitor_id: str | None = None  # the first visitor known in it
    pages_before_identified: int | None = None  # pages opened strictly before the first event with a visitor
    bought_at: int | None = None  # number of the event with which something was bought first
    notes: list[str] = field(default_factory=list)  # what was odd about it, each a sentence

    @property
    def is_identified(self) -> bool:
        """True where the visitor is known, on arrival or before the page opened last, as for sessions of a log."""
        before = self.pages_before_identified
        return before is not None and (before == 0 or before < self.n_pages)


class SessionStream:
    """A session that runs: events come in the order of their times, and after each page there is a score.

    It begins with ``given``, as :class:`Session`, and ends after more than ``gap_us`` idle microseconds, None for
    never; ``pages`` first pages are looked at, so that its memory is bounded.
    """

    def __init__(self, score: Callable[..., Score], gap_us: int | None, pages: int, given: Any) -> None:
        self._score, self._gap_us, self._pages = score, gap_us, pages
        self._known = known = Session.read(given, "a session so far", DataError)
        self.so_far: SessionSoFar | None = None  # the session that runs now
        self._last_us, self._number = 0, len(known.events)
        events = sorted(known.events, key=lambda one: one.t)
        if known.start is not None:  # event 0: no page is open yet
            first = events[0] if events else known
            device, channel = known.device or first.device, known.channel or first.channel
            arrival = Event.model_construct(t=known.start, action="other", device=device, channel=channel)
            self._take(0, arrival)
        for place, event in enumerate(events, 1):
            self._take(place, event)

    def add(self, event: Mapping[str, Any]) -> Score | None:
        """Take one more event; return the score when it opened a page."""
        self._number += 1
        opened = self._take(self._number, Event.read(event, f"event {self._number}", DataError))
        return self.score() if opened else None

    def score(self) -> Score:
        """Return the score as things are."""
        if self.so_far is None:
            fix = "give its events; before the first page: start, device and channel of the arrival"
            raise DataError("the session so far has no event", fix)
        return self._score(self.so_far, self._known.history)

    def _take(self, number: int, event: Event) -> bool:
        """Take an event; return whether it opened a page."""
        session, known = self.so_far, self._known
        idle = 0 if session is None else event.t - self._last_us
        if idle < 0:
            earlier = f"event {number} is {-idle / SECOND:g} s earlier than the start or the event before"
            raise DataError(earlier, "events are taken in the order of their times")
        if session is None or (self._gap_us is not None and idle > self._gap_us):
            device, channel = event.device or known.device, event.channel or known.channel
            new = SessionSoFar(event.t, device or UNKNOWN, channel or UNKNOWN)
            new.notes += [f"event {number} begins a new session: only that counts"] * (session is not None)
            self.so_far = session = new
        self._last_us = event.t
        visitor = event.visitor_id or known.visitor_id
        if visitor is not None and session.visitor_id is None:
            session.visitor_id, session.pages_before_identified = visitor, session.n_pages
        if session.bought_at is None and (event.is_purchase or event.action == "purchase"):
            session.bought_at = number
        if event.action not in (None, "page"):
            return False
        if session.n_pages < self._pages:
            session.page_types.append(event.page_type or UNKNOWN)
            session.page_times.append(event.t)
        session.n_pages += 1
        return True
