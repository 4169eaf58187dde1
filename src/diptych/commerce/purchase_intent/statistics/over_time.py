"""Sessions over a clock's hands: what Figures 6.3 (week days) and 6.4 (hours) share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from diptych.commerce.purchase_intent.statistics.classes import CLASSES, INTERVAL
from diptych.commerce.purchase_intent.statistics.declaration import (
    DescribeOptions,
    Row,
    Statistic,
    Tables,
)
from diptych.commerce.purchase_intent.statistics.intervals import share, wilson

if TYPE_CHECKING:
    import ibis.expr.types as ir


def over_time(name: str, column: str, of: str, places: int, meaning: str, source: str) -> Statistic:
    """The statistic of a column of sessions that says when they began."""

    def expression(tables: Tables, options: DescribeOptions) -> ir.Table:
        sessions = tables.sessions
        counted = sessions.group_by(["purchase", of]).aggregate(sessions=sessions.count())
        return counted.rename({column: of})

    def finish(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
        counts = Counter({(row["purchase"], row[column]): row["sessions"] for row in rows})
        finished = []
        for purchase in CLASSES:
            whole = sum(counts[purchase, place] for place in range(places))
            for place in range(places):
                n = counts[purchase, place]
                low, high = wilson(n, whole, options.confidence)
                finished.append(
                    {"purchase": purchase, column: place, "sessions": n, "share": share(n, whole)}
                    | {"low": low, "high": high}
                )
        return finished

    return Statistic(
        name=name,
        description=f"sessions by the local {column.replace('_', ' ')} of the first event",
        source=source,
        columns={
            "purchase": "class of sessions",
            column: meaning,
            "sessions": "begun then",
            "share": "of the class's sessions; null where it has none",
            **INTERVAL,
        },
        expression=expression,
        finish=finish,
    )
