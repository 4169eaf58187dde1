"""Sessions of a log in plain Python, event by event, to hold the engines against."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

Row = dict[str, Any]
MICROSECONDS = 1_000_000


def one_spelling(text: str | None) -> str:
    """A query in lower case with single spaces."""
    lower = (text or "").replace("İ", "i").lower().replace("ς", "σ")
    return " ".join(lower.split())


def cut(events: Iterable[Row], by: str = "client", gap_minutes: float = 30) -> list[list[Row]]:
    """Events of each session in order, sessions by their first event."""
    streams: defaultdict[Any, list[Row]] = defaultdict(list)
    for event in events:
        given = by == "given" and event["given_session"]
        if by == "visitor" and event["visitor_id"] is not None:
            key: Any = ("visitor", event["visitor_id"])
        elif given:
            key = ("client", event["client_id"], given)
        else:
            key = ("client", event["client_id"])
        streams[key].append(event)
    parts: list[list[Row]] = []
    for key, stream in streams.items():
        stream.sort(key=lambda event: (event["t_us"], event["event_id"]))
        last = None
        for event in stream:
            too_late = last is None or event["t_us"] - last > gap_minutes * 60 * MICROSECONDS
            if last is None or (too_late and len(key) < 3):
                parts.append([])
            parts[-1].append(event)
            last = event["t_us"]
    return sorted(parts, key=lambda events: events[0]["event_id"])


def _session(events: list[Row]) -> Row:
    first, visitors, actions = events[0], [], [event["action"] for event in events]
    for event in events:
        if event["visitor_id"] is not None and event["visitor_id"] not in visitors:
            visitors.append(event["visitor_id"])
    visitor = visitors[0] if visitors else None
    bought = [place for place, event in enumerate(events) if event["is_purchase"]]
    known = [place for place, event in enumerate(events) if event["visitor_id"] is not None]
    return {
        "session_id": first["event_id"],
        "client_id": first["client_id"],
        "visitor_id": visitor,
        "person": first["client_id"] if visitor is None else visitor,
        "start_us": first["t_us"],
        "end_us": events[-1]["t_us"],
        "start_day": first["local_day"],
        "start_hour": first["local_hour"],
        "start_dow": first["local_dow"],
        "device": first["device"],
        "channel": first["channel"],
        "n_events": len(events),
        "length": sum(action in ("page", "query", "add", "remove") for action in actions),
        "n_pages": actions.count("page"),
        "n_queries": actions.count("query"),
        "n_visitors": len(visitors),
        "purchase": bool(bought),
        "first_purchase_us": events[bought[0]]["t_us"] if bought else None,
        "pages_before_purchase": actions[: bought[0]].count("page") if bought else None,
        "pages_before_identified": actions[: known[0]].count("page") if known else None,
    }


def sessions_of(events: Iterable[Row], by: str = "client", gap_minutes: float = 30) -> list[Row]:
    """The table of sessions of whole canonical events."""
    return [_session(session) for session in cut(events, by, gap_minutes)]


def pages_of(
    events: Iterable[Row], by: str = "client", gap_minutes: float = 30, pages: int = 10
) -> list[Row]:
    """The table of first pages."""
    rows = []
    for session in cut(events, by, gap_minutes):
        opened = [event for event in session if event["action"] == "page"]
        if len(opened) >= pages + 2:
            rows += [
                {
                    "session_id": session[0]["event_id"],
                    "position": position,
                    "t_us": event["t_us"],
                    "page_type": event["page_type"] if event["page_type"] is not None else "unknown",
                }
                for position, event in enumerate(opened[:pages], start=1)
            ]
    return rows


def queries_of(events: Iterable[Row], by: str = "client", gap_minutes: float = 30) -> list[Row]:
    """The table of queries."""
    rows = []
    for session in cut(events, by, gap_minutes):
        about: Mapping[str, Any] = _session(session)
        asked = [one_spelling(event["query"]) for event in session if event["action"] == "query"]
        rows += [
            {
                "session_id": about["session_id"],
                "query": query,
                "device": about["device"],
                "purchase": about["purchase"],
            }
            for query in sorted(asked)
        ]
    return rows
