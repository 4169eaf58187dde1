"""The truth of a log: statistics of its sessions as they were drawn, which a description of the log has to find.

Rows have the names and columns of what ``diptych intent describe`` writes, but for intervals and what is derived
from rows for show (links, standardised rates). Counts and shares are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from diptych.data.logs.schema import THESIS_CHANNELS, THESIS_DEVICES
from diptych.data.scenes.shop_log.counts import Counts

Row = dict[str, Any]

ALL = "all"
_QUANTILES = (("p50", 50), ("p90", 90), ("p99", 99))


def statistics_of(counts: Counts) -> dict[str, list[Row]]:
    """Statistic → rows, sorted by their key columns, purchase sessions first."""
    return {name: make(counts) for name, make in STATISTICS.items()}


def bought_before(counts: Counts) -> list[Row]:
    """Sessions of known visitors, by whether an earlier one of the visitor's was a purchase."""
    return [
        {
            "bought_before": bool(before),
            "sessions": int(sessions.sum()),
            "purchase_sessions": int(sessions[1]),
        }
        for before, sessions in enumerate(counts.after_purchase)
    ]


def _overview(counts: Counts) -> list[Row]:
    sessions = int(counts.lengths.sum())
    anonymous = counts.totals["anonymous sessions"]
    totals = {
        "events": counts.totals["events"],
        "sessions": sessions,
        "anonymous sessions": anonymous,
        "identified sessions": sessions - anonymous,
        "purchase sessions": int(counts.lengths[1].sum()),
        "clients": counts.totals["clients"],
        "identified visitors": int(counts.devices_of_visitors.sum()),
        "purchasers": int(counts.devices_of_visitors[1].sum()),
        "queries": int(counts.query_counts.sum()),
        "distinct queries": int((counts.query_counts.sum(axis=(0, 1)) > 0).sum()),
        "device types": int((counts.lengths.sum(axis=(0, 2)) > 0).sum()),
        "sessions with several visitors": 0,
    }
    return [{"what": what, "total": total} for what, total in totals.items()]


def _session_length(counts: Counts) -> list[Row]:
    rows = []
    for device, purchase, sessions in _by_device_and_class(counts.lengths):
        at_least = np.cumsum(sessions[::-1])[::-1]
        rows += [
            {
                "device": device,
                "purchase": purchase,
                "length": int(length),
                "sessions": int(sessions[length]),
                "at_least": int(at_least[length]),
                "share": float(at_least[length] / at_least[0]),
            }
            for length in np.flatnonzero(sessions)
        ]
    return rows


def _session_length_quantiles(counts: Counts) -> list[Row]:
    rows = []
    for device, purchase, sessions in _by_device_and_class(counts.lengths):
        total = int(sessions.sum())
        up_to = np.cumsum(sessions)
        rows.append(
            {
                "device": device,
                "purchase": purchase,
                "sessions": total,
                "mean": int((sessions * np.arange(len(sessions))).sum()) / total,
                # the smallest length with at least this share at or below it, in whole numbers
                **{name: int(np.argmax(100 * up_to >= percent * total)) for name, percent in _QUANTILES},
                "max": int(np.flatnonzero(sessions)[-1]),
            }
        )
    return rows


def _by_device_and_class(lengths: np.ndarray) -> Iterator[tuple[str, bool, np.ndarray]]:
    tables = {
        ALL: lengths.sum(axis=1),
        **{name: lengths[:, place] for place, name in enumerate(THESIS_DEVICES)},
    }
    for device in sorted(tables):
        for purchase in (True, False):
            sessions = tables[device][int(purchase)]
            if sessions.sum():
                yield device, purchase, sessions


def _over_time(table: np.ndarray, column: str) -> list[Row]:
    return [
        {
            "purchase": purchase,
            column: place,
            "sessions": int(sessions),
            "share": float(sessions / table[int(purchase)].sum()),
        }
        for purchase in (True, False)
        if table[int(purchase)].sum()
        for place, sessions in enumerate(table[int(purchase)])
    ]


def _conversion(table: np.ndarray, column: str, names: Sequence[str]) -> list[Row]:
    others, purchases = table.sum(axis=1)
    return [
        {
            column: name,
            "sessions": int(table[:, place].sum()),
            "purchase_sessions": int(table[1, place]),
            "purchase_share": _share(table[1, place], purchases),
            "other_share": _share(table[0, place], others),
            "rate": float(table[1, place] / table[:, place].sum()),
        }
        for name, place in sorted((name, place) for place, name in enumerate(names))
        if table[:, place].sum()
    ]


def _devices_per_visitor(counts: Counts) -> list[Row]:
    rows = []
    for purchaser in (True, False):
        visitors = counts.devices_of_visitors[int(purchaser)]
        groups = {"> 1": visitors[2:].sum()} | {str(n): visitors[n] for n in range(1, len(visitors))}
        rows += [
            {
                "purchaser": purchaser,
                "devices": devices,
                "visitors": int(n),
                "share": float(n / visitors.sum()),
            }
            for devices, n in groups.items()
            if n
        ]
    return rows


def _device_transitions(counts: Counts) -> list[Row]:
    return [
        {
            "from_device": before,
            "to_device": after,
            "transitions": int(counts.transitions[row, column]),
            "share": float(counts.transitions[row, column] / counts.transitions[row].sum()),
        }
        for before, row in _sorted_devices()
        for after, column in _sorted_devices()
        if counts.transitions[row, column]
    ]


def _queries(counts: Counts) -> list[Row]:
    sessions, queries = counts.lengths.sum(axis=2), counts.query_counts.sum(axis=2)
    rows = []
    for purchase in (True, False):
        begun, asked = sessions[int(purchase)], queries[int(purchase)]
        groups = {ALL: (begun.sum(), asked.sum())}
        groups |= {name: (begun[place], asked[place]) for name, place in _sorted_devices()}
        rows += [
            {
                "purchase": purchase,
                "device": device,
                "sessions": int(some),
                "queries": int(n),
                "per_session": float(n / some),
                "share": _share(n, asked.sum()),
            }
            for device, (some, n) in groups.items()
            if some
        ]
    return rows


def _unique_queries(counts: Counts) -> list[Row]:
    rows = []
    for purchase in (True, False):
        asked = counts.query_counts[int(purchase)]
        groups = {ALL: asked.sum(axis=0), **{name: asked[place] for name, place in _sorted_devices()}}
        over_devices = int((asked > 0).sum())
        rows += [
            {
                "purchase": purchase,
                "device": device,
                "unique": int((times > 0).sum()),
                "queries": int(times.sum()),
                "share": float((times > 0).sum() / over_devices),
                "unique_share": float((times > 0).sum() / times.sum()),
            }
            for device, times in groups.items()
            if times.sum()
        ]
    return rows


def _share(part: np.ndarray, of: np.ndarray) -> float | None:
    return float(part / of) if of else None


def _sorted_devices() -> list[tuple[str, int]]:
    return sorted((name, place) for place, name in enumerate(THESIS_DEVICES))


STATISTICS: Mapping[str, Callable[[Counts], list[Row]]] = {
    "overview": _overview,
    "session-length": _session_length,
    "session-length-quantiles": _session_length_quantiles,
    "week-days": lambda counts: _over_time(counts.week_days, "week_day"),
    "hours": lambda counts: _over_time(counts.hours, "hour"),
    "channels": lambda counts: _conversion(counts.channels, "channel", THESIS_CHANNELS),
    "devices": lambda counts: _conversion(counts.lengths.sum(axis=2), "device", THESIS_DEVICES),
    "devices-per-visitor": _devices_per_visitor,
    "device-transitions": _device_transitions,
    "queries": _queries,
    "unique-queries": _unique_queries,
}
"""Statistic → how its rows come from the counts."""
