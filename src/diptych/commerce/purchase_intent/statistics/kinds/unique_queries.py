"""Different queries: thesis Table 6.6.

A query may be asked on several devices and in both classes, and is then one of each. (Table 6.6's numbers add up to
those of the whole log, which they can only if every query was counted in one place alone.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from diptych.commerce.purchase_intent.statistics.classes import ALL, CLASSES, sorted_with_all
from diptych.commerce.purchase_intent.statistics.declaration import (
    STATISTICS,
    DescribeOptions,
    Row,
    Statistic,
    Tables,
)
from diptych.commerce.purchase_intent.statistics.intervals import share

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["UNIQUE_QUERIES"]


def _expression(tables: Tables, options: DescribeOptions) -> ir.Table:
    import ibis

    queries = tables.queries.filter(tables.queries["query"] != "")
    asked = queries.group_by(["purchase", "device", "query"]).aggregate(n=queries.count())
    by_device = asked.group_by(["purchase", "device"]).aggregate(unique=asked.count(), queries=asked.n.sum())
    anywhere = asked.group_by(["purchase", "query"]).aggregate(n=asked.n.sum())
    together = anywhere.group_by("purchase").aggregate(unique=anywhere.count(), queries=anywhere.n.sum())
    together = together.mutate(device=ibis.literal(ALL)).select(by_device.columns)
    return by_device.mutate(one=True).union(together.mutate(one=False))


def _finish(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    finished = []
    for purchase in CLASSES:
        of_class = {row["device"] if row["one"] else ALL: row for row in rows if row["purchase"] is purchase}
        over_devices = sum(row["unique"] for row in of_class.values() if row["one"])
        for device in sorted_with_all(of_class) if of_class else ():
            row = of_class[device]
            finished.append(
                {
                    "purchase": purchase,
                    "device": device,
                    "unique": row["unique"],
                    "queries": row["queries"],
                    "share": share(row["unique"], over_devices),
                    "unique_share": share(row["unique"], row["queries"]),
                }
            )
    return finished


UNIQUE_QUERIES = STATISTICS.add(
    Statistic(
        name="unique-queries",
        description="different queries, by class and device; in lower case, blanks made one",
        source="thesis Table 6.6",
        columns={
            "purchase": "class of sessions",
            "device": "of the first event; all together, too",
            "unique": "different queries",
            "queries": "submitted, whose text the log has",
            "share": "unique of the sum of unique over the class's devices",
            "unique_share": "unique of the queries",
        },
        expression=_expression,
        finish=_finish,
    )
)
