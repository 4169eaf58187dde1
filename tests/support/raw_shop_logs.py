"""Generated shop logs read, cleaned, cut into sessions and counted once more: plain Python, nothing of the package."""

from __future__ import annotations

import csv
import gzip
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

__all__ = ["cleaned", "raw_rows", "sessions_of", "statistics_of"]

Row = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_GAP_US = 30 * 60 * 1_000_000
_DEVICES = ("game console", "pc", "smartphone", "tablet", "tv")
_CLASSES = (True, False)


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


def statistics_of(sessions: list[Row]) -> dict[str, list[Row]]:
    """Every statistic of a description, but for intervals and what is derived for show."""
    return {
        "overview": _overview(sessions),
        "session-length": _lengths(sessions),
        "session-length-quantiles": _quantiles(sessions),
        "week-days": _times(sessions, "week_day", 7),
        "hours": _times(sessions, "hour", 24),
        "channels": _conversion(sessions, "channel"),
        "devices": _conversion(sessions, "device"),
        "devices-per-visitor": _devices_per_visitor(sessions),
        "device-transitions": _transitions(sessions),
        "queries": _queries(sessions),
        "unique-queries": _unique_queries(sessions),
    }


def _overview(sessions: list[Row]) -> list[Row]:
    known = [one for one in sessions if one["visitor"] is not None]
    queries = [query for one in sessions for query in one["queries"]]
    several = [one for one in known if len({event["customer"] for event in one["events"]} - {None}) > 1]
    totals = {
        "events": sum(len(one["events"]) for one in sessions),
        "sessions": len(sessions),
        "anonymous sessions": len(sessions) - len(known),
        "identified sessions": len(known),
        "purchase sessions": sum(one["purchase"] for one in sessions),
        "clients": len({one["client"] for one in sessions}),
        "identified visitors": len({one["visitor"] for one in known}),
        "purchasers": len({one["visitor"] for one in known if one["purchase"]}),
        "queries": len(queries),
        "distinct queries": len(set(queries)),
        "device types": len({one["device"] for one in sessions}),
        "sessions with several visitors": len(several),
    }
    return [{"what": what, "total": total} for what, total in totals.items()]


def _groups(sessions: list[Row]) -> list[tuple[str, bool, list[Row]]]:
    found = []
    for device in ("all", *_DEVICES):
        for purchase in _CLASSES:
            some = [
                one for one in sessions if one["purchase"] == purchase and device in ("all", one["device"])
            ]
            if some:
                found.append((device, purchase, some))
    return found


def _lengths(sessions: list[Row]) -> list[Row]:
    rows = []
    for device, purchase, some in _groups(sessions):
        lengths = [one["length"] for one in some]
        for length, times in sorted(Counter(lengths).items()):
            at_least = sum(other >= length for other in lengths)
            rows.append(
                {
                    "device": device,
                    "purchase": purchase,
                    "length": length,
                    "sessions": times,
                    "at_least": at_least,
                }
                | {"share": at_least / len(some)}
            )
    return rows


def _quantiles(sessions: list[Row]) -> list[Row]:
    rows = []
    for device, purchase, some in _groups(sessions):
        lengths = sorted(one["length"] for one in some)
        n = len(lengths)
        percentiles = {f"p{p}": lengths[-(-p * n // 100) - 1] for p in (50, 90, 99)}
        rows.append(
            {"device": device, "purchase": purchase, "sessions": n, "mean": sum(lengths) / n}
            | percentiles
            | {"max": lengths[-1]}
        )
    return rows


def _times(sessions: list[Row], column: str, places: int) -> list[Row]:
    rows = []
    for purchase in _CLASSES:
        times = Counter(one[column] for one in sessions if one["purchase"] == purchase)
        rows += [
            {
                "purchase": purchase,
                column: place,
                "sessions": times[place],
                "share": times[place] / times.total(),
            }
            for place in range(places)
            if times
        ]
    return rows


def _conversion(sessions: list[Row], column: str) -> list[Row]:
    times, bought = (
        Counter(one[column] for one in sessions),
        Counter(one[column] for one in sessions if one["purchase"]),
    )
    others = times.total() - bought.total()
    return [
        {
            column: name,
            "sessions": times[name],
            "purchase_sessions": bought[name],
            "purchase_share": bought[name] / bought.total(),
            "other_share": (times[name] - bought[name]) / others,
            "rate": bought[name] / times[name],
        }
        for name in sorted(times)
    ]


def _devices_per_visitor(sessions: list[Row]) -> list[Row]:
    devices, purchasers = defaultdict(set), set()
    for one in sessions:
        if one["visitor"] is not None:
            devices[one["visitor"]].add(one["device"])
            if one["purchase"]:
                purchasers.add(one["visitor"])
    rows = []
    for purchaser in _CLASSES:
        owned = Counter(
            len(some) for visitor, some in devices.items() if (visitor in purchasers) == purchaser
        )
        groups = {"> 1": owned.total() - owned[1], **{str(n): owned[n] for n in sorted(owned)}}
        rows += [
            {"purchaser": purchaser, "devices": name, "visitors": n, "share": n / owned.total()}
            for name, n in groups.items()
            if n
        ]
    return rows


def _transitions(sessions: list[Row]) -> list[Row]:
    by_visitor = defaultdict(list)
    for one in sessions:
        if one["visitor"] is not None:
            by_visitor[one["visitor"]].append(one)
    pairs = Counter(
        (before["device"], after["device"])
        for some in by_visitor.values()
        for before, after in pairwise(some)
        if after["purchase"]
    )
    begun = Counter()
    for (before, _), n in pairs.items():
        begun[before] += n
    return [
        {"from_device": before, "to_device": after, "transitions": n, "share": n / begun[before]}
        for (before, after), n in sorted(pairs.items())
    ]


def _queries(sessions: list[Row]) -> list[Row]:
    rows = []
    for purchase in _CLASSES:
        groups = [(device, some) for device, of, some in _groups(sessions) if of == purchase]
        total = sum(len(one["queries"]) for one in groups[0][1]) if groups else 0
        for device, some in groups:
            n = sum(len(one["queries"]) for one in some)
            share = n / total if total else None
            rows.append(
                {"purchase": purchase, "device": device, "sessions": len(some), "queries": n}
                | {"per_session": n / len(some), "share": share}
            )
    return rows


def _unique_queries(sessions: list[Row]) -> list[Row]:
    rows = []
    for purchase in _CLASSES:
        texts = {
            device: [query for one in some for query in one["queries"]]
            for device, of, some in _groups(sessions)
            if of == purchase
        }
        over_devices = sum(len(set(asked)) for device, asked in texts.items() if device != "all")
        for device, asked in texts.items():
            if asked:
                unique = len(set(asked))
                rows.append(
                    {"purchase": purchase, "device": device, "unique": unique, "queries": len(asked)}
                    | {"share": unique / over_devices, "unique_share": unique / len(asked)}
                )
    return rows
