"""The import of a user's own log, once more: row by row, in plain Python, to be held against the real one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOBODY = {"null", "NULL", "-", "NaN", "None"}
_ACTIONS = {
    "view": "page",
    "page": "page",
    "search": "query",
    "cart": "add",
    "remove": "remove",
    "buy": "purchase",
}
_DEVICES = {"desktop": "pc", "pc": "pc", "mobile": "smartphone", "tablet": "tablet"}
_COMPARED = (
    "client_id",
    "visitor_id",
    "given_session",
    "t_us",
    "device",
    "channel",
    "country",
    "action",
    "page_type",
    "query",
    "item_id",
    "price",
    "is_purchase",
)


def plain_time(text: str | None, times_in: str) -> int | None:
    """Microseconds since 1970, or None where the text is no time."""
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        pass
    else:
        factor = 1e6 if abs(number) < 1e11 else 1e3 if abs(number) < 1e14 else 1.0
        return round(number * factor)
    try:
        moment = datetime.fromisoformat(text.replace(" UTC", "+00:00"))
    except ValueError:
        return None
    if moment.tzinfo is None:
        zoned = moment.replace(tzinfo=ZoneInfo(times_in))
        skipped = zoned.astimezone(UTC).astimezone(ZoneInfo(times_in)).replace(tzinfo=None) != moment
        moment = zoned.replace(fold=0 if skipped else 1)  # of an hour that there is twice the later one
    return (moment.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)


def plain_import(
    rows: Sequence[Mapping[str, str | None] | None],
    *,
    zone: str,
    times_in: str,
    since_us: int,
    countries: Sequence[str],
    devices: Sequence[str],
    most_events: int,
) -> tuple[list[dict[str, Any]], Counter[str]]:
    """Events in the order of a log of one bucket, and how many rows every rule dropped.

    Args:
        rows: what each says, None for one that cannot be read.
        zone: of local days and hours.
        times_in: of times that name none.
        since_us: the first moment that is kept.
        countries: that are kept; a missing one is not.
        devices: that are kept.
        most_events: of a client.
    """
    dropped: Counter[str] = Counter()
    events: list[dict[str, Any]] = []
    for number, row in enumerate(rows):
        event = None if row is None else _event(number, row, times_in)
        reason = _reason(event, row, since_us, countries, devices)
        if reason or event is None:
            dropped[reason] += 1
        else:
            events.append(event)
    seen = set()
    different = []
    for event in events:
        values = tuple(event[name] for name in _COMPARED)
        if values in seen:
            dropped["duplicate"] += 1
        else:
            seen.add(values)
            different.append(event)
    of_client = Counter(event["client_id"] for event in different)
    kept = [event for event in different if of_client[event["client_id"]] <= most_events]
    dropped["too many events"] = len(different) - len(kept)
    for event in kept:
        wall = (_EPOCH + timedelta(microseconds=event["t_us"])).astimezone(ZoneInfo(zone))
        event |= {
            "local_day": (wall.date() - _EPOCH.date()).days,
            "local_hour": wall.hour,
            "local_dow": wall.weekday(),
        }
    kept.sort(key=lambda event: (event["client_id"].encode(), event["t_us"], event["event_id"]))
    return kept, +dropped


def _event(number: int, row: Mapping[str, str | None], times_in: str) -> dict[str, Any]:
    said = {key: (value or "").strip(" \t") or None for key, value in row.items()}

    def identity(key: str) -> str | None:
        return None if said[key] in _NOBODY else said[key]

    client, visitor = identity("client"), identity("visitor")
    action = _ACTIONS.get((said["action"] or "").lower())
    device = (said["device"] or "unknown").lower()
    country = said["country"]
    return {
        "event_id": number,
        "client_id": client or (f"visitor:{visitor}" if visitor else None),
        "visitor_id": visitor,
        "given_session": identity("session"),
        "t_us": plain_time(said["time"], times_in),
        "device": _DEVICES.get(device, device),
        "channel": (said["channel"] or "unknown").lower(),
        "country": country.upper() if country and len(country) == 2 and country.isalpha() else None,
        "action": action,
        "page_type": said["page_type"] if action == "page" else None,
        "query": said["query"],
        "item_id": identity("item"),
        "price": _number(said["price"]),
        "is_purchase": action == "purchase" or (said["purchase"] or "").lower() in ("1", "true", "yes"),
    }


def _number(text: str | None) -> float | None:
    try:
        return None if text is None or text == "inf" else float(text)
    except ValueError:
        return None


def _reason(
    event: Mapping[str, Any] | None,
    row: Mapping[str, str | None] | None,
    since_us: int,
    countries: Sequence[str],
    devices: Sequence[str],
) -> str:
    """The first rule that drops a row, or nothing."""
    if event is None or row is None:
        return "unreadable row"
    time = event["t_us"]
    if time is None or not 86_400_000_000 <= time < 7_258_118_400_000_000:
        return "unreadable time"
    if event["client_id"] is None:
        return "no client"
    if event["action"] is None:
        return "unknown action"
    if time < since_us:
        return "outside"
    if event["country"] not in countries:
        return "country"
    if event["device"] not in devices:
        return "device"
    if "bot" in (row["agent"] or "").lower().replace("cubot", ""):
        return "agent"
    return ""
