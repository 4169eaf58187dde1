"""Generated shop logs read, cleaned and cut into sessions once more: plain Python, nothing of the package."""

from __future__ import annotations

import csv
import gzip
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

Row = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_GAP_US = 30 * 60 * 1_000_000
_DEVICES = ("game console", "pc", "smartphone", "tablet", "tv")


def raw_rows(folder: Path) -> list[Row]:
    """All rows of a log, in the order of its files; None for what is missing."""
    if (folder / "events").is_dir():
        import pyarrow.parquet as pq

        return [
            row for file in sorted((folder / "events").iterdir()) for row in pq.read_table(file).to_pylist()
        ]
    with gzip.open(folder / "events.csv.gz", "rt", encoding="utf-8", newline="") as lines:
        rows = [{name: value or None for name, value in row.items()} for row in csv.DictReader(lines)]
    for row in rows:
        row["price"] = None if row["price"] is None else float(row["price"])
        row["purchased"] = {"true": True, "false": False}[row["purchased"]]
    return rows


def cleaned(rows: list[Row]) -> tuple[list[Row], Counter[str]]:
    """The rows that are events, and how many others break each rule."""
    kept, seen, dropped = [], set(), Counter[str]()
    for row in rows:
        rule = None
        same = tuple(row.values())
        if same in seen:
            rule = "duplicate"
        elif row["cookie"] is None and row["customer"] is None:
            rule = "no client"
        elif _time(row["time"]) is None:
            rule = "unreadable time"
        elif row["country"] not in ("NL", "BE", "DE"):
            rule = "country"
        elif row["device"] is None or row["device"].lower() not in _DEVICES:
            rule = "device"
        seen.add(same)
        if rule is None:
            kept.append(row)
        else:
            dropped[rule] += 1
    busy = {cookie for cookie, n in Counter(row["cookie"] for row in kept).items() if n > 5000}
    many = sum(row["cookie"] in busy for row in kept)
    if many:
        dropped["too many events"] = many
    return [row for row in kept if row["cookie"] not in busy], dropped


def _time(text: str | None) -> int | None:
    """Microseconds."""
    try:
        return (datetime.fromisoformat(text or "") - _EPOCH) // timedelta(microseconds=1)
    except ValueError:
        return None


def sessions_of(rows: list[Row], zone: str = "Europe/Amsterdam") -> list[Row]:
    """Sessions of clean rows: a client's events with no more than 30 minutes between them."""
    by_client: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_client[row["cookie"]].append({**row, "t_us": _time(row["time"])})
    sessions = []
    for events in by_client.values():
        events.sort(key=lambda event: event["t_us"])
        parts = [[events[0]]]
        for before, event in pairwise(events):
            if event["t_us"] - before["t_us"] > _GAP_US:
                parts.append([])
            parts[-1].append(event)
        sessions += [_session(part, zone) for part in parts]
    return sorted(sessions, key=lambda session: session["start_us"])


def _session(events: list[Row], zone: str) -> Row:
    first = events[0]
    local = (_EPOCH + timedelta(microseconds=first["t_us"])).astimezone(ZoneInfo(zone))
    known = [event["customer"] for event in events if event["customer"] is not None]
    return {
        "client": first["cookie"],
        "visitor": known[0] if known else None,
        "start_us": first["t_us"],
        "hour": local.hour,
        "week_day": local.weekday(),
        "device": first["device"].lower(),
        "channel": first["channel"].lower(),
        "events": events,
        "pages": [event for event in events if event["action"] == "page"],
        "length": sum(event["action"] in ("page", "query", "add", "remove") for event in events),
        "queries": [
            " ".join(event["query"].lower().split()) for event in events if event["action"] == "query"
        ],
        "purchase": any(event["purchased"] for event in events),
    }
