"""From a log's statistics to the cells of thesis chapter 6: row → column → number, shares in per cent.

A statistic's rows are those of :mod:`diptych.commerce.purchase_intent.statistics`. Devices and channels that a
log does not have, have no row here; those that the thesis does not have stand in the tables beside.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from diptych.studies.intent_rows import CHANNELS, CLASSES, DEVICES, row_name
from diptych.studies.log_checks import HIGH, LOW
from diptych.studies.study import PUBLISHED

Statistics = Callable[[str], Sequence[Mapping[str, Any]]]
"""A statistic's rows by its name."""

Values = dict[str, dict[str, float]]
"""Row → column → number."""

Counting = Callable[[Statistics], Values]

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HOURS = tuple(f"{hour} h" for hour in range(24))

MIDDLE = "P50 to P90"
"""The mean length of sessions between the two percentiles, where the thesis compares them."""

ANY = "any"
"""Rows of all devices together."""

_ALL = "all"
_FEWEST = (
    5  # sessions or transitions that a distribution is made of: fewer say nothing, and may be known people
)
_MOST = 3
_VISITORS = {"> 1": "several", "1": "one", "2": "two", "3": "three", "4": "four", "5": "five"}


def totals(of: Statistics) -> Values:
    """Table 6.1: counts of the whole log."""
    return {row_name(row["what"]): {"total": float(row["total"])} for row in of("overview")}


def lengths(of: Statistics) -> Values:
    """Figure 6.2: how long sessions are, per device and kind of session."""
    counts: dict[str, Counter[int]] = {}
    for row in of("session-length"):
        counts.setdefault(_length_row(row), Counter())[int(row["length"])] += int(row["sessions"])
    values = {}
    for row in of("session-length-quantiles"):
        if row["sessions"] < _FEWEST:
            continue
        name = _length_row(row)
        columns = {"mean": "mean", "p50": "P50", "p90": "P90", "p99": "P99", "max": "longest"}
        values[name] = _numbers({column: row[key] for key, column in columns.items()})
        values[name] |= {"sessions": float(row["sessions"]), MIDDLE: middle(counts[name])}
    return values


def middle(counts: Mapping[int, int], low: float = 0.5, high: float = 0.9) -> float:
    """The mean length of those sessions that are longer than a share ``low`` of all and shorter than the longest
    1 − ``high``; sessions on an end count with the part of them that lies inside."""
    n = sum(counts.values())
    total, seen = 0.0, 0
    for length, sessions in sorted(counts.items()):
        inside = min(seen + sessions, high * n) - max(seen, low * n)
        total += length * max(0.0, inside)
        seen += sessions
    return total / ((high - low) * n)


def week_days(of: Statistics) -> Values:
    """Figure 6.3: sessions per day, and the three busiest days against the other four."""
    values = _over_time(of("week-days"), "week_day", DAYS)
    for shares in values.values():
        days = sorted((shares[day] for day in DAYS), reverse=True)
        most, least = sum(days[:_MOST]), sum(days[_MOST:])
        shares |= {"three most": most, "four least": least, "difference": abs(most - least)}
    return values


def hours(of: Statistics) -> Values:
    """Figure 6.4: sessions per hour of the day."""
    return _over_time(of("hours"), "hour", HOURS)


def channel_shares(of: Statistics) -> Values:
    """Table 6.2: with n − 1 under the deviation of standardised rates as it is printed there."""
    values = _shares(of("channels"), "channel", CHANNELS)
    groups = sum(row["standardised"] is not None for row in of("channels"))
    for columns in values.values():
        if "standardised" in columns and groups > 1:
            columns[f"standardised{PUBLISHED}"] = columns["standardised"] * math.sqrt((groups - 1) / groups)
    return values


def device_shares(of: Statistics) -> Values:
    """Table 6.4."""
    return _shares(of("devices"), "device", DEVICES)


def device_counts(of: Statistics) -> Values:
    """Table 6.3: of purchasers and of other known visitors, how many have so many types of devices."""
    values: Values = {}
    for row in of("devices-per-visitor"):
        name = _VISITORS.get(row["devices"])
        if name is not None:
            column = "purchasers" if row["purchaser"] else "non-purchasers"
            values.setdefault(name, {}).update(_share(column, row))
    return values


def transitions(of: Statistics) -> Values:
    """Figure 6.5: from the device of the session before a purchase session to that of the purchase session; where
    nobody was seen to go from a device that somebody left or kept, 0."""
    values: Values = {}
    for row in of("device-transitions"):
        if row["from_device"] in DEVICES and row["to_device"] in DEVICES:
            nowhere = {f"to {device}": 0.0 for device in DEVICES}
            columns = values.setdefault(row_name(row["from_device"]), nowhere)
            columns |= _share(f"to {row['to_device']}", row)
            columns["transitions"] = columns.get("transitions", 0.0) + row["transitions"]
    return {name: columns for name, columns in values.items() if columns["transitions"] >= _FEWEST}


def queries(of: Statistics) -> Values:
    """Table 6.5: queries per session, and which devices they come from."""
    values: Values = {}
    for name, kind, row in _by_class(of("queries")):
        columns = values.setdefault(name, {})
        column = f"{kind} per session"
        columns |= _numbers(
            {column: row["per_session"], column + LOW: row["low"], column + HIGH: row["high"]}
        )
        columns |= _numbers({f"{kind} %": row["share"]}, 100.0)
    return values


def unique_queries(of: Statistics) -> Values:
    """Table 6.6: different queries; the thesis's totals are the sums of its devices, which count some twice."""
    values: Values = {}
    rows = of("unique-queries")
    for name, kind, row in _by_class(rows):
        columns = values.setdefault(name, {})
        columns[f"{kind} count"] = float(row["unique"])
        columns |= _numbers({f"{kind} %": row["share"], f"{kind} unique %": row["unique_share"]}, 100.0)
    for kind, purchase in zip(CLASSES, (True, False), strict=True):
        parts = [row["unique"] for row in rows if row["purchase"] is purchase and row["device"] != _ALL]
        if parts and _ALL in values:
            values[_ALL] |= {f"{kind} %": 100.0, f"{kind} count{PUBLISHED}": float(sum(parts))}
    return values


def _over_time(rows: Sequence[Mapping[str, Any]], key: str, columns: Sequence[str]) -> Values:
    """Shares of a class's sessions per day or hour, and those of both classes together."""
    values: Values = {}
    sessions: Counter[str] = Counter()
    for row in rows:
        kind = "purchase" if row["purchase"] else "non-purchase"
        values.setdefault(kind, {}).update(_share(columns[row[key]], row))
        sessions[columns[row[key]]] += row["sessions"]
    if sessions.total():
        values["either"] = {column: 100 * sessions[column] / sessions.total() for column in columns}
    # A class without a session has no shares.
    return {name: found for name, found in values.items() if len(found) >= len(columns)}


def _shares(rows: Sequence[Mapping[str, Any]], key: str, names: Mapping[str, str]) -> Values:
    return {
        row_name(row[key]): {
            **_numbers({"purchase": row["purchase_share"], "non-purchase": row["other_share"]}, 100.0),
            **_numbers({"rate": row["rate"], f"rate{LOW}": row["low"], f"rate{HIGH}": row["high"]}, 100.0),
            **_numbers({"standardised": row["standardised"]}),
        }
        for row in rows
        if row[key] in names
    }


def _share(column: str, row: Mapping[str, Any]) -> dict[str, float]:
    """A share with its interval, in per cent."""
    return _numbers({column: row["share"], column + LOW: row["low"], column + HIGH: row["high"]}, 100.0)


def _by_class(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Row of the study, kind of session, row of the statistic; of the thesis's devices and all together."""
    for row in rows:
        if row["device"] == _ALL or row["device"] in DEVICES:
            yield row_name(row["device"]), "purchase" if row["purchase"] else "non-purchase", row


def _length_row(row: Mapping[str, Any]) -> str:
    device = ANY if row["device"] == _ALL else row_name(row["device"])
    return f"{device}-{'purchase' if row['purchase'] else 'other'}"


def _numbers(given: Mapping[str, float | None], scale: float = 1.0) -> dict[str, float]:
    """Those that there are."""
    return {name: scale * value for name, value in given.items() if value is not None}
