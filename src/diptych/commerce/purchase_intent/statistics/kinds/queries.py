"""Queries per session: thesis Table 6.5."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from diptych.commerce.purchase_intent.statistics.classes import ALL, CLASSES, INTERVAL, sorted_with_all
from diptych.commerce.purchase_intent.statistics.declaration import (
    STATISTICS,
    DescribeOptions,
    Row,
    Statistic,
    Tables,
)
from diptych.commerce.purchase_intent.statistics.intervals import mean_interval, share

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["QUERIES"]


def _expression(tables: Tables, options: DescribeOptions) -> ir.Table:
    sessions = tables.sessions
    n = sessions.n_queries
    return sessions.group_by(["purchase", "device"]).aggregate(
        sessions=sessions.count(), queries=n.sum(), squares=(n * n).sum()
    )


def _finish(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    finished = []
    for purchase in CLASSES:
        sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for row in rows:
            if row["purchase"] is purchase:
                for device in (row["device"], ALL):
                    sums[device].update({name: row[name] for name in ("sessions", "queries", "squares")})
        for device in sorted_with_all(sums) if sums else ():
            of = sums[device]
            low, high = mean_interval(of["queries"], of["squares"], of["sessions"], options.confidence)
            finished.append(
                {
                    "purchase": purchase,
                    "device": device,
                    "sessions": of["sessions"],
                    "queries": of["queries"],
                    "per_session": of["queries"] / of["sessions"],
                    "low": low,
                    "high": high,
                    "share": share(of["queries"], sums[ALL]["queries"]),
                }
            )
    return finished


QUERIES = STATISTICS.add(
    Statistic(
        name="queries",
        description="queries per session, by class and device",
        source="thesis Table 6.5",
        columns={
            "purchase": "class of sessions",
            "device": "of the first event; all together, too",
            "sessions": "of the class and device",
            "queries": "submitted in them",
            "per_session": "mean number",
            **INTERVAL,
            "low": "lower end of the interval, cut at 0; null where nothing can be said, as of one session",
            "share": "of the class's queries; null where it has none",
        },
        expression=_expression,
        finish=_finish,
    )
)
