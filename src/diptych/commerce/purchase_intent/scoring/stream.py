"""A session that runs: events come one by one, and after each page there is a score.

The numbers are those of scoring the session so far as a whole: the same events go into the same running session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from diptych.commerce.purchase_intent.scoring.events import read_event
from diptych.commerce.purchase_intent.scoring.request import (
    OF_EVENTS,
    REQUEST_KEYS,
    Request,
    arrival,
    check_keys,
)
from diptych.commerce.purchase_intent.scoring.running import RunningSession
from diptych.commerce.purchase_intent.scoring.score import Score
from diptych.core.errors import DataError


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
