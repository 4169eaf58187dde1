"""A session as it grows: what its events so far say, in as many bytes after a million events as after ten."""

from __future__ import annotations

from dataclasses import dataclass, replace

from diptych.commerce.purchase_intent.scoring.events import GivenEvent
from diptych.core.errors import DataError
from diptych.data.logs.schema import SECOND, UNKNOWN


@dataclass(frozen=True)
class SessionSoFar:
    """What is known of a session at this moment; the words are those of the sessions and pages of a log.

    Attributes:
        start_us: time of the first event.
        device: of the first event.
        channel: of the first event.
        page_types: of the first pages, as many as are looked at.
        page_times: microseconds, one per page of ``page_types``.
        n_pages: pages opened.
        n_events: all events of the session.
        visitor_id: the first visitor known in it.
        pages_before_identified: pages opened strictly before the first event with a visitor.
        bought_at: number of the event with which something was bought first.
        notes: what was odd about it, each a sentence.
    """

    start_us: int
    device: str = UNKNOWN
    channel: str = UNKNOWN
    page_types: tuple[str, ...] = ()
    page_times: tuple[int, ...] = ()
    n_pages: int = 0
    n_events: int = 0
    visitor_id: str | None = None
    pages_before_identified: int | None = None
    bought_at: int | None = None
    notes: tuple[str, ...] = ()

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
