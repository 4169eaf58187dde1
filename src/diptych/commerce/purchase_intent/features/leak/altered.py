"""A session as if nothing were known of what comes after a page: events for the shift test.

For a session and a step there is a world of its own: everything that happened up to the page of the step, to the
session and to its visitor on all clients; and after that nothing but another end of the session, of other page
types, times, device and visitor. What decides whether one may predict on the session stays: it goes on for long
enough, and something is bought or not, as it was, behind the last page. Clients, visitors and events have names
of their own in every world, so that all worlds together are one log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from diptych.core.draws import Draws
from diptych.data.logs.schema import COLUMNS

__all__ = ["Event", "Point", "Worlds"]

Event = dict[str, Any]

_TYPES = ("home", "product", "basket", "checkout", "confirmation", "something new")
_LONGER = 5
"""Pages that the other end has more than are needed, at most."""


@dataclass(frozen=True)
class Point:
    """A session at a step.

    Attributes:
        session_id: of the session.
        step: pages that are open.
        bought: whether something is bought in it.
    """

    session_id: int
    step: int
    bought: bool


@dataclass(frozen=True)
class Worlds:
    """How worlds are made and told apart.

    Attributes:
        ids: event ids per world: event 3 of the log is event 3 + number · ids of a world; those of the log are below
            half of it.
        least_pages: that a session has to have in the end.
        gap_us: microseconds that a session may be idle.
        strangers: whether an end may bring a visitor where none is known; not where it would begin a session.
        seed: of all ends.
    """

    ids: int
    least_pages: int
    gap_us: int
    strangers: bool
    seed: int

    def events(
        self, number: int, point: Point, session: Sequence[Event], others: Sequence[Event]
    ) -> list[Event]:
        """What is known of a point, and another end.

        Args:
            number: of the world, from 1 on.
            point: the session and the step.
            session: its events in order.
            others: events of its visitor outside the session, on any client.
        """
        known = _known(session, point.step)
        moment = _moment(known[-1])
        kept = [*known, *(event for event in others if _moment(event) <= moment)]
        end = self._other_end(point, known)
        first = self.ids * number
        behind = first + self.ids // 2
        return [
            *(_renamed(event, number) | {"event_id": first + event["event_id"]} for event in kept),
            *(_renamed(event, number) | {"event_id": behind + place} for place, event in enumerate(end)),
        ]

    def _other_end(self, point: Point, known: Sequence[Event]) -> list[Event]:
        draws = Draws(self.seed, "another end", point.session_id, point.step)
        last = known[-1]
        needed = self.least_pages - sum(event["action"] == "page" for event in known)
        visitor = next((event["visitor_id"] for event in reversed(known) if event["visitor_id"]), None)
        events: list[Event] = []
        t_us = last["t_us"]
        for _ in range(max(1, needed) + draws.below(_LONGER + 1)):
            t_us += 1 + int(draws.uniform() * min(self.gap_us - 1, 600_000_000))
            if visitor is None and self.strangers and draws.uniform() < 0.3:
                visitor = "somebody else"
            events.append(
                {
                    **dict.fromkeys(column.name for column in COLUMNS),
                    **{name: last[name] for name in _OF_THE_SESSION},
                    "visitor_id": visitor,
                    "t_us": t_us,
                    "device": draws.choice(("pc", "tablet", "tv")),
                    "channel": draws.choice(("paid", "other")),
                    "action": "page",
                    "page_type": draws.choice(_TYPES),
                    "is_purchase": False,
                }
            )
        if point.bought:
            events.append({**events[-1], "t_us": t_us + 1, "action": "purchase", "is_purchase": True})
        return events


_OF_THE_SESSION = ("client_id", "given_session", "local_day", "local_hour", "local_dow")


def _moment(event: Mapping[str, Any]) -> tuple[int, int]:
    return event["t_us"], event["event_id"]


def _known(session: Sequence[Event], step: int) -> list[Event]:
    """The events up to the step's page. At step 0 up to the first page, of which everything but its type is known
    when it is asked for: by whom, on what and when."""
    pages = [place for place, event in enumerate(session) if event["action"] == "page"]
    known = [dict(event) for event in session[: pages[max(1, step) - 1] + 1]]
    if step == 0:
        known[-1]["page_type"] = "something else"
    return known


def _renamed(event: Event, number: int) -> Event:
    names = ("client_id", "visitor_id", "given_session")
    return {**event, **{name: event[name] and f"{number}:{event[name]}" for name in names}}
