"""The events of a few sessions and of their visitors, out of a whole log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from diptych.commerce.purchase_intent.features.leak.altered import Event
from diptych.core.extras import require
from diptych.data.logs.log import Log

__all__ = ["Gathered", "gather"]


class Gathered:
    """Events of sessions, and of their visitors outside them.

    Args:
        sessions: rows of the table of sessions by ``session_id``.
        events: of all clients that these sessions and their visitors have.
        by: whose events make a session.
    """

    def __init__(self, sessions: Mapping[int, Mapping[str, Any]], events: Iterable[Event], by: str) -> None:
        self._sessions, self._by = sessions, by
        self._of_client: dict[str, list[Event]] = defaultdict(list)
        self._clients: dict[str, set[str]] = defaultdict(set)
        self._first: dict[int, Event] = {}
        for event in sorted(events, key=lambda one: (one["t_us"], one["event_id"])):
            self._of_client[event["client_id"]].append(event)
            if event["visitor_id"] is not None:
                self._clients[event["visitor_id"]].add(event["client_id"])
            if event["event_id"] in sessions:
                self._first[event["event_id"]] = event

    def size(self, session_id: int) -> int:
        """How many events a session's visitor has on all clients, or its client where nobody is known."""
        return sum(len(self._of_client[client]) for client in self._clients_of(session_id))

    def session(self, session_id: int) -> list[Event]:
        """The events of a session in order."""
        return [event for event in self._all(session_id) if self._is_in(session_id, event)]

    def others(self, session_id: int) -> list[Event]:
        """All other events of its clients."""
        return [event for event in self._all(session_id) if not self._is_in(session_id, event)]

    def _clients_of(self, session_id: int) -> list[str]:
        row = self._sessions[session_id]
        return sorted({row["client_id"], *self._clients.get(row["visitor_id"], ())})

    def _all(self, session_id: int) -> list[Event]:
        events = [event for client in self._clients_of(session_id) for event in self._of_client[client]]
        return sorted(events, key=lambda one: (one["t_us"], one["event_id"]))

    def _is_in(self, session_id: int, event: Event) -> bool:
        row = self._sessions[session_id]
        if self._key(event) != self._key(self._first[session_id]):
            return False
        return bool(row["start_us"] <= event["t_us"] <= row["end_us"])

    def _key(self, event: Event) -> Any:
        if self._by == "visitor" and event["visitor_id"] is not None:
            return "visitor", event["visitor_id"]
        if self._by == "given" and event["given_session"] is not None:
            return "given", event["given_session"]
        return "client", event["client_id"]


def gather(log: Log, files: Sequence[Path], session_ids: Iterable[int], by: str) -> Gathered:
    """Read what belongs to some sessions; two passes over the log's narrow columns, and one over its rows.

    Args:
        log: that the sessions were made of.
        files: the table of sessions.
        session_ids: of the sessions.
        by: whose events make a session.
    """
    pa, dataset = (require(name, "commerce", "a shift test") for name in ("pyarrow", "pyarrow.dataset"))
    columns = ["session_id", "client_id", "visitor_id", "start_us", "end_us"]
    wanted = dataset.field("session_id").isin(pa.array(list(session_ids), pa.int64()))
    rows = dataset.dataset(list(map(str, files))).to_table(columns=columns, filter=wanted)
    sessions = {row["session_id"]: row for row in rows.to_pylist()}
    events = dataset.dataset(list(map(str, log.buckets)), partitioning=None)
    visitors = pa.array(sorted({row["visitor_id"] for row in sessions.values()} - {None}), pa.string())
    seen = events.to_table(columns=["client_id"], filter=dataset.field("visitor_id").isin(visitors))
    clients = {row["client_id"] for row in sessions.values()} | set(seen.column(0).unique().to_pylist())
    of_them = dataset.field("client_id").isin(pa.array(sorted(clients), pa.string()))
    return Gathered(sessions, events.to_table(filter=of_them).to_pylist(), by)
