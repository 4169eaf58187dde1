"""A session so far, as one JSON object: its events, what is known without any, and the visitor's history.

::

    {"id": "anything, given back with the score",
     "start": "2019-10-01T19:30:00+02:00", "device": "pc", "channel": "paid", "visitor_id": "v17",
     "events": [{"t": "2019-10-01T19:30:00+02:00", "page_type": "home"}, …],
     "history": {"orders": 3, "days_since_purchase": 12.5, …}}

``events`` are enough. ``start`` is the arrival, before any page; ``visitor_id`` outside of the events is a visitor
recognised on arrival; it, ``device`` and ``channel`` are of events that do not say theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from reprlib import Repr
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StringConstraints,
    ValidationError,
    model_validator,
)

from diptych.commerce.logs.schema import ACTION_WORDS, ACTIONS, DEVICE_WORDS, MISSING_WORDS, SECOND, UNKNOWN
from diptych.commerce.purchase_intent.features.view import EARLIER_DEVICES, HISTORY_COLUMNS, NOTHING
from diptych.core.errors import DataError

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.scoring.scorer import Score

T = TypeVar("T", bound=BaseModel)
Columns = dict[str, float | str]

DAY_US = 86_400 * SECOND
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_SECOND = 253_402_300_800  # the year 10000: milliseconds given for seconds are far beyond
_ACTION = {word: action for action, words in ACTION_WORDS.items() for word in words}
_DEVICE = {word: device for device, words in DEVICE_WORDS.items() for word in words}
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60


def shown(value: Any) -> str:
    """Return its ``repr``, shortened, whatever was sent."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # a number of more digits than Python prints
        return f"a long {type(value).__name__}"


def _time(given: Any) -> int:
    """Return microseconds since 1970-01-01 UTC of an ISO time or of seconds."""
    seconds = given
    if isinstance(given, str):
        try:
            moment = datetime.fromisoformat(given)
        except ValueError:
            raise ValueError("no ISO time") from None
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        seconds = (moment - _EPOCH).total_seconds()
    elif isinstance(given, bool) or not isinstance(given, int | float):
        raise ValueError("neither an ISO time nor seconds")
    if not 0 <= seconds < _LAST_SECOND:
        raise ValueError("outside the years 1970 to 9999")
    microseconds: int = round(seconds * SECOND)
    return microseconds


def _no_bool(given: Any) -> Any:
    if isinstance(given, bool):
        raise ValueError("true and false are no numbers")
    return given


def _action(given: str) -> str:
    if given not in _ACTION:
        raise ValueError("no known action")
    return _ACTION[given]


_T = "an ISO time (of UTC, where it names no zone), or seconds since 1970-01-01 UTC, not milliseconds"
Time = Annotated[int, BeforeValidator(_time)]
Lower = Annotated[str, StringConstraints(to_lower=True)]
Action = Annotated[Lower, AfterValidator(_action)]
Device = Annotated[Lower, AfterValidator(lambda given: _DEVICE.get(given, given))]  # a desktop is a pc
Visitor = Annotated[str, AfterValidator(lambda given: None if given in MISSING_WORDS else given)]
Count = Annotated[int, BeforeValidator(_no_bool), Field(ge=0, le=10**9)]
Days = Annotated[float, BeforeValidator(_no_bool), Field(gt=-1e9, lt=1e9)]
_GIVEN = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True, str_strip_whitespace=True)


class Event(BaseModel):
    """One event; what else is in it is passed over, as it plays no part."""

    model_config = _GIVEN | ConfigDict(extra="ignore")
    t: Time = Field(description=f"when: {_T}")
    action: Action | None = Field(None, description=f"one of {', '.join(ACTIONS)}; page, when not given")
    page_type: str | None = Field(None, description="a text, in the words of the scorer's log")
    device: Device | None = Field(None, description="a device type, as text")
    channel: Lower | None = Field(None, description="a text: how the visitor came")
    visitor_id: Visitor | None = Field(None, description="a text or a number: the customer, where known")
    is_purchase: StrictBool | None = Field(None, description="true or false; an action purchase always is")


class History(BaseModel):
    """A visitor's history; what it does not say is missing, of a new visitor ``{"sessions": 0}`` says everything."""

    model_config = _GIVEN
    sessions: Count | None = Field(None, description="a whole number: the visitor's sessions before this one")
    devices: list[Device] | None = Field(None, description="a list: device type of each, earliest first")
    orders: Count | None = Field(None, description="a whole number: of them those with a purchase, until now")
    last_purchase: Time | None = Field(None, description=f"when something was bought last: {_T}")
    days_since_purchase: Days | None = Field(None, description="the same in days before this session's start")
    since: Time | None = Field(None, description=f"since when sessions were recorded: {_T}")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        bought = (self.last_purchase, self.days_since_purchase)
        if None not in bought:
            raise DataError("the history has last_purchase and days_since_purchase", "give one of them")
        if self.orders == 0 and bought != (None, None):
            raise DataError(
                "the history has no orders, and a purchase", "orders counts what was bought before"
            )
        if self.devices is not None and self.sessions not in (None, len(self.devices)):
            wrong = f"the history has {len(self.devices)} devices of {self.sessions} sessions"
            raise DataError(wrong, "one for every earlier session, or none where they are not known")
        return self

    def columns(self, start_us: int, device: str, since_us: int | None) -> tuple[Columns, list[str]]:
        """Return the history columns of a session, and the names of those that nothing is known of."""
        days, earlier, orders, sessions = self.days_since_purchase, self.devices, self.orders, self.sessions
        if self.last_purchase is not None:
            days = (start_us - self.last_purchase) / DAY_US
        if days is not None and days < 0:
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


class Session(BaseModel):
    """A session so far, or what is known of one that is about to run."""

    model_config = _GIVEN
    start: Time | None = Field(None, description=f"the arrival, where it is before the first event: {_T}")
    device: Device | None = Field(None, description="a text: device type of events that name none")
    channel: Lower | None = Field(None, description="a text: channel of events that name none")
    visitor_id: Visitor | None = Field(None, description="a text or a number: a customer known on arrival")
    history: History | None = Field(None, description='the visitor\'s earlier sessions, e.g. {"orders": 3}')
    events: list[Event] = Field([], description='a list of what the visitor did, e.g. [{"t": 0}]')
    id: Any = Field(None, description="anything; it comes back with the score")


def read(model: type[T], given: Any, where: str) -> T:
    """Return the checked object; the first fault is a refusal that names it and says what to do."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
    keys, value = list(fault["loc"]), fault["input"]
    kind: type[BaseModel] = model
    if keys[1:2] and isinstance(keys[1], int) and keys[0] == "events":
        where, kind, keys = f"event {keys[1] + 1}", Event, keys[2:]
    elif keys[:1] == ["history"]:
        where, kind, keys = "the history", History, keys[1:]
    known = kind.model_fields
    fix = f"keys: {', '.join(known)}"
    if not keys:
        raise DataError(f"{where} is {type(value).__name__}, not an object", fix)
    if fault["type"] == "extra_forbidden":
        raise DataError(f"{where} has no key {shown(keys[0])}", fix)
    wrong = f"{keys[0]} {shown(value)}: {fault['msg'].removeprefix('Value error, ')}"
    missing = fault["type"] == "missing"
    raise DataError(
        f"{where} has {f'no {keys[0]}' if missing else wrong}", known[str(keys[0])].description or ""
    )


@dataclass
class SessionSoFar:
    """A session as it is known at this moment; the words are those of the sessions and pages of a log."""

    start_us: int  # time of the first event
    device: str  # of the first event
    channel: str  # of the first event
    page_types: list[str] = field(default_factory=list)  # of the first pages, as many as are looked at
    page_times: list[int] = field(default_factory=list)  # microseconds
    n_pages: int = 0  # pages opened
    visitor_id: str | None = None  # the first visitor known in it
    pages_before_identified: int | None = None  # pages opened strictly before the first event with a visitor
    bought_at: int | None = None  # number of the event with which something was bought first
    is_of_several: bool = False  # whether another visitor was seen in it
    notes: list[str] = field(default_factory=list)  # what was odd about it, each a sentence

    @property
    def is_identified(self) -> bool:
        """True where the visitor is known, on arrival or before the page opened last, as for sessions of a log."""
        before = self.pages_before_identified
        return before is not None and (before == 0 or before < self.n_pages)


class SessionStream:
    """A session that runs: events come in the order of their times, and after each page there is a score.

    It holds as much after a million events as after ten. It begins with ``given``, as :class:`Session`, and ends after
    more than ``gap_us`` idle microseconds, None for never; ``pages`` first pages are looked at.
    """

    def __init__(
        self,
        score: Callable[[SessionSoFar, History | None], Score],
        gap_us: int | None,
        pages: int,
        given: Any,
    ) -> None:
        self._score, self._gap_us, self._pages = score, gap_us, pages
        self._known = known = read(Session, given, "a session so far")
        self.so_far: SessionSoFar | None = None  # the session that runs now
        self.last_us: int | None = None  # time of the last event
        self._number = len(known.events)
        in_order = sorted(enumerate(known.events, 1), key=lambda one: (one[1].t, one[0]))
        if known.start is not None:  # event 0: no page is open yet
            number, first = in_order[0] if in_order else (0, Event.model_construct(t=known.start))
            if first.t < known.start:
                raise DataError(
                    f"event {number} is earlier than the start", "the start is the time of the arrival"
                )
            words = {name: getattr(known, name) or getattr(first, name) for name in ("device", "channel")}
            self._take(0, Event.model_construct(t=known.start, action="other", **words))
        for number, event in in_order:
            self._take(number, event)
        moved = [number for place, (number, _) in enumerate(in_order, 1) if place != number]
        if self.so_far is not None and moved:
            note = f"events are not in the order of their times, first event {moved[0]}: they were sorted"
            self.so_far.notes.insert(0, note)

    def add(self, event: Mapping[str, Any]) -> Score | None:
        """Take one more event; return the score when it opened a page."""
        self._number += 1
        opened = self._take(self._number, read(Event, event, f"event {self._number}"))
        return self.score() if opened else None

    def score(self) -> Score:
        """Return the score as things are."""
        if self.so_far is None:
            fix = "give its events; before the first page: start, device and channel of the arrival"
            raise DataError("the session so far has no event", fix)
        return self._score(self.so_far, self._known.history)

    def _take(self, number: int, event: Event) -> bool:
        """Take an event; return whether it opened a page."""
        idle = 0 if self.last_us is None else event.t - self.last_us
        if idle < 0:
            earlier = f"event {number} is {-idle / SECOND:g} s earlier than the one before"
            raise DataError(earlier, "events are taken in the order of their times")
        session, known = self.so_far, self._known
        if session is None or (self._gap_us is not None and idle > self._gap_us):
            device, channel = event.device or known.device, event.channel or known.channel
            self.so_far = SessionSoFar(event.t, device or UNKNOWN, channel or UNKNOWN)
            if session is not None:
                after = f"event {number} follows {idle / SECOND / 60:.0f} minutes after the one before"
                self.so_far.notes.append(f"{after}: it begins a new session, and only that one counts")
            session = self.so_far
        self.last_us = event.t
        visitor = event.visitor_id or known.visitor_id
        if visitor is not None and session.visitor_id is None:
            session.visitor_id, session.pages_before_identified = visitor, session.n_pages
        elif visitor not in (None, session.visitor_id) and not session.is_of_several:
            session.is_of_several = True
            session.notes.append(f"event {number} is of another visitor: the first one known counts")
        if session.bought_at is None and (event.is_purchase or event.action == "purchase"):
            session.bought_at = number
        if event.action not in (None, "page"):
            return False
        if session.n_pages < self._pages:
            session.page_types.append(event.page_type or UNKNOWN)
            session.page_times.append(event.t)
        session.n_pages += 1
        return True
