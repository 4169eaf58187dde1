"""All statistics of sessions in plain Python: from the thesis's words, not from the code under test."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import scipy.stats

Row = dict[str, Any]
CLASSES = (True, False)


def statistics_of(sessions: Sequence[Row], queries: Sequence[Row], **options: Any) -> dict[str, list[Row]]:
    """Every statistic of these rows; ``options`` as a description takes them."""
    given = {"ddof": 0, "journey": "pair", "confidence": 0.95} | options
    return {name: make(sessions, queries, given) for name, make in ORACLE.items()}


def check_rows(found: Sequence[Row], expected: Sequence[Row]) -> None:
    """See that rows are equal in the columns of the expected ones: counts and keys exactly, floats but for rounding."""
    assert len(found) == len(expected)
    for row, other in zip(found, expected, strict=True):
        for column, value in other.items():
            one = row[column]
            if isinstance(value, float) and one is not None:
                assert math.isclose(one, value, rel_tol=1e-9, abs_tol=1e-12), (column, row, other)
            else:
                assert one == value, (column, row, other)


def _row(columns: str, *values: Any) -> Row:
    return dict(zip(columns.split(), values, strict=True))


def _interval(part: int, of: int, options: Row, name: str = "share") -> Row:
    if not of:
        return {name: None, "low": None, "high": None}
    found = scipy.stats.binomtest(part, of).proportion_ci(options["confidence"], method="wilson")
    return {name: part / of, "low": found.low, "high": found.high}


def _share(part: int, of: int) -> float | None:
    return part / of if of else None


def _values(rows: Sequence[Row], name: str) -> list[Any]:
    return sorted({row[name] for row in rows})


def _overview(sessions: Sequence[Row], queries: Sequence[Row], options: Row) -> list[Row]:
    known = [row for row in sessions if row["visitor_id"] is not None]
    totals = {
        "events": sum(row["n_events"] for row in sessions),
        "sessions": len(sessions),
        "anonymous sessions": len(sessions) - len(known),
        "identified sessions": len(known),
        "purchase sessions": sum(row["purchase"] for row in sessions),
        "clients": len(_values(sessions, "client_id")),
        "identified visitors": len(_values(known, "visitor_id")),
        "purchasers": len({row["visitor_id"] for row in known if row["purchase"]}),
        "queries": len(queries),
        "distinct queries": len({row["query"] for row in queries} - {""}),
        "device types": len(_values(sessions, "device")),
        "sessions with several visitors": sum(row["n_visitors"] > 1 for row in sessions),
    }
    return [{"what": what, "total": total} for what, total in totals.items()]


def _lengths(sessions: Sequence[Row]) -> list[tuple[str, bool, list[int]]]:
    found = []
    for device in ["all", *_values(sessions, "device")]:
        for purchase in CLASSES:
            lengths = sorted(
                row["length"]
                for row in sessions
                if row["purchase"] is purchase and device in ("all", row["device"])
            )
            if lengths:
                found.append((device, purchase, lengths))
    return found


def _session_length(sessions: Sequence[Row], queries: Sequence[Row], options: Row) -> list[Row]:
    rows = []
    for device, purchase, lengths in _lengths(sessions):
        for length in sorted(set(lengths)):
            at_least = sum(one >= length for one in lengths)
            counts = device, purchase, length, lengths.count(length), at_least
            row = _row("device purchase length sessions at_least", *counts)
            rows.append(row | _interval(at_least, len(lengths), options))
    return rows


def _quantiles(sessions: Sequence[Row], queries: Sequence[Row], options: Row) -> list[Row]:
    def quantile(lengths: list[int], percent: int) -> int:
        return min(one for one in lengths if 100 * sum(x <= one for x in lengths) >= percent * len(lengths))

    rows = []
    for device, purchase, lengths in _lengths(sessions):
        repeated = [one for one in lengths for _ in range(10)]
        middle = statistics.fmean(repeated[len(repeated) // 2 : len(repeated) * 9 // 10])  # P50 to P90
        levels = [quantile(lengths, percent) for percent in (50, 90, 99)]
        numbers = len(lengths), statistics.fmean(lengths), *levels, middle, max(lengths)
        columns = "device purchase sessions mean p50 p90 p99 middle max"
        rows.append(_row(columns, device, purchase, *numbers))
    return rows


def _over_time(column: str, of: str, places: int) -> Callable[..., list[Row]]:
    def make(sessions: Sequence[Row], queries: Sequence[Row], options: Row) -> list[Row]:
        rows = []
        for purchase in CLASSES:
            own = [row[of] for row in sessions if row["purchase"] is purchase]
            for place in range(places):
                row = _row(f"purchase {column} sessions", purchase, place, own.count(place))
                rows.append(row | _interval(own.count(place), len(own), options))
        return rows

    return make


def _weekend(sessions: Sequence[Row], queries: Sequence[Row], options: Row) -> list[Row]:
    rows = []
    for purchase in CLASSES:
        own = [row["start_dow"] > 4 for row in sessions if row["purchase"] is purchase]
        for weekend, days in ((False, 5), (True, 2)):
            n, of = own.count(weekend), len(own)
            row = {"purchase": purchase, "weekend": weekend, "sessions": n}
            rows.append({**row, **_interval(n, of, options), "per_day": n / of / days if of else None})
    return rows


def _conversion(column: str) -> Callable[..., list[Row]]:
    def make(sessions: Sequence[Row], queries: Sequence[Row], options: Row) -> list[Row]:
        bought = [row[column] for row in sessions if row["purchase"]]
        others = [row[column] for row in sessions if not row["purchase"]]
        rows = []
        for group in _values(sessions, column):
            n, k = (bought + others).count(group), bought.count(group)
            shares = _share(k, len(bought)), _share(others.count(group), len(others))
            row = _row(
                f"{column} sessions purchase_sessions purchase_share other_share", group, n, k, *shares
            )
            rows.append(row | _interval(k, n, options, "rate") | {"standardised": None})
        rates = [row["rate"] for row in rows]
        if len(set(rates)) > 1:
            spread = (statistics.stdev if options["ddof"] else statistics.pstdev)(rates)
            for row in rows:
                row["standardised"] = (row["rate"] - statistics.fmean(rates)) / spread
        return rows

    return make


def _by_visitor(sessions: Sequence[Row]) -> dict[str, list[Row]]:
    known = [row for row in sessions if row["visitor_id"] is not None]
    ordered = sorted(known, key=lambda row: (row["start_us"], row["session_id"]))
    return {
        visitor: [row for row in ordered if row["visitor_id"] == visitor]
        for visitor in _values(known, "visitor_id")
    }


def _devices_per_visitor(sessions: Sequence[Row], queries: Sequence[Row], options: Row) -> list[Row]:
    rows = []
    visitors = _by_visitor(sessions).values()
    for purchaser in CLASSES:
        numbers = [
            len({row["device"] for row in own})
            for own in visitors
            if any(row["purchase"] for row in own) is purchaser
        ]
        groups = {"> 1": sum(n > 1 for n in numbers)} | {
            str(n): numbers.count(n) for n in sorted(set(numbers))
        }
        for devices, n in groups.items():
            row = {"purchaser": purchaser, "devices": devices, "visitors": n}
            rows += [row | _interval(n, len(numbers), options)] if n else []
    return rows


def _transitions(sessions: Sequence[Row], queries: Sequence[Row], options: Row) -> list[Row]:
    pairs: list[tuple[str, str]] = []
    for own in _by_visitor(sessions).values():
        for place, (before, after) in enumerate(pairwise(own), start=1):
            later = own[place:] if options["journey"] == "journey" else [after]
            if any(row["purchase"] for row in later):
                pairs.append((before["device"], after["device"]))

    def chance(before: str, after: str) -> float | None:
        return _share(pairs.count((before, after)), sum(pair[0] == before for pair in pairs))

    rows = []
    for before, after in sorted(set(pairs)):
        left = sum(pair[0] == before for pair in pairs)
        n = pairs.count((before, after))
        there, back = chance(before, after), chance(after, before)
        assert there is not None
        if before == after:
            kind = "self"
        elif back is None:
            kind = "none"
        elif min(there, back) >= 0.01:
            kind = "strong"
        elif max(there, back) < 0.01:
            kind = "weak"
        elif max(there, back) >= 0.01 and min(there, back) < 0.01:
            kind = "one-sided"
        else:
            kind = "none"
        row = {"from_device": before, "to_device": after, "transitions": n, "link": kind}
        rows.append(row | _interval(n, left, options))
    return rows


def _queries(sessions: Sequence[Row], queries: Sequence[Row], options: Row) -> list[Row]:
    rows = []
    for purchase in CLASSES:
        own = [row for row in sessions if row["purchase"] is purchase]
        asked = sum(row["n_queries"] for row in own)
        for device in ["all", *_values(own, "device")] if own else []:
            numbers = [row["n_queries"] for row in own if device in ("all", row["device"])]
            mean, low, high = statistics.fmean(numbers), None, None
            if len(numbers) > 1:
                z = scipy.stats.norm.ppf((1 + options["confidence"]) / 2)
                half = z * statistics.stdev(numbers) / len(numbers) ** 0.5
                low, high = max(0.0, mean - half), mean + half
            columns = "purchase device sessions queries per_session low high share"
            counts = len(numbers), sum(numbers), mean, low, high, _share(sum(numbers), asked)
            rows.append(_row(columns, purchase, device, *counts))
    return rows


def _unique_queries(sessions: Sequence[Row], queries: Sequence[Row], options: Row) -> list[Row]:
    rows = []
    for purchase in CLASSES:
        own = [row for row in queries if row["purchase"] is purchase and row["query"]]
        over_devices = len({(row["device"], row["query"]) for row in own})
        for device in ["all", *_values(own, "device")] if own else []:
            texts = [row["query"] for row in own if device in ("all", row["device"])]
            unique, of = len(set(texts)), len(texts)
            columns = "purchase device unique queries share unique_share"
            rows.append(_row(columns, purchase, device, unique, of, unique / over_devices, unique / of))
    return rows


ORACLE: dict[str, Callable[..., list[Row]]] = {
    "overview": _overview,
    "session-length": _session_length,
    "session-length-quantiles": _quantiles,
    "week-days": _over_time("week_day", "start_dow", 7),
    "weekend": _weekend,
    "hours": _over_time("hour", "start_hour", 24),
    "channels": _conversion("channel"),
    "devices": _conversion("device"),
    "devices-per-visitor": _devices_per_visitor,
    "device-transitions": _transitions,
    "queries": _queries,
    "unique-queries": _unique_queries,
}
"""Statistic → how its rows are made of the tables of sessions and queries."""
