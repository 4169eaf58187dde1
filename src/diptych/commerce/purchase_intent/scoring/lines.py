"""Sessions, or events, as lines of JSON, one by one: in bounded memory, whatever their number."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from diptych.commerce.purchase_intent.scoring.events import shown
from diptych.commerce.purchase_intent.scoring.scorer import Scorer
from diptych.commerce.purchase_intent.scoring.stream import SessionStream
from diptych.core.errors import DataError

MOST_RUNNING = 50_000
"""Clients whose sessions are held at once: those that were last active."""

Answer = dict[str, Any]


def score_sessions(scorer: Scorer, lines: Iterable[str], reasons: int = 5) -> Iterator[Answer]:
    """One answer per line, each a session so far; of one that cannot be read the answer is its error."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        answer: Answer = {"line": number}
        try:
            session = _read(line)
            if isinstance(session, dict) and "id" in session:
                answer["id"] = session["id"]
            answer |= scorer.score(session, reasons=reasons).to_dict()
        except DataError as error:
            answer |= {"error": error.message, "fix": error.fix}
        yield answer


def score_events(scorer: Scorer, lines: Iterable[str], reasons: int = 5) -> Iterator[Answer]:
    """An answer after every event that opens a page, of the session of the event's ``client_id``."""
    running = RunningSessions(scorer, reasons)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        answer: Answer = {"line": number}
        try:
            event = _read(line)
            client = event.get("client_id") if isinstance(event, dict) else None
            if not isinstance(client, str | int) or isinstance(client, bool):
                raise DataError(
                    f"an event has the client_id {shown(client)}", "every event of a stream names its client"
                )
            answer["client_id"] = client
            score = running.of(str(client)).add(event)
            if score is None:
                continue
            answer |= score.to_dict()
        except DataError as error:
            answer |= {"error": error.message, "fix": error.fix}
        yield answer


class RunningSessions:
    """Streams by client; the one that was asked for longest ago makes room for a new one."""

    def __init__(self, scorer: Scorer, reasons: int = 5, most: int = MOST_RUNNING) -> None:
        self._scorer, self._reasons, self._most = scorer, reasons, most
        self._streams: OrderedDict[str, SessionStream] = OrderedDict()

    def __len__(self) -> int:
        return len(self._streams)

    def of(self, client: str) -> SessionStream:
        """The stream of a client, which is the last now to make room."""
        if client not in self._streams:
            if len(self._streams) >= self._most:
                self._streams.popitem(last=False)
            self._streams[client] = self._scorer.stream(reasons=self._reasons)
        self._streams.move_to_end(client)
        return self._streams[client]


def _read(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"not JSON: {error}", "one object per line") from None
