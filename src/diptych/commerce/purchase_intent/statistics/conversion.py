"""Conversion by group: what Tables 6.2 (channels) and 6.4 (devices) share."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from diptych.commerce.purchase_intent.statistics.classes import INTERVAL
from diptych.commerce.purchase_intent.statistics.declaration import (
    DescribeOptions,
    Finish,
    Row,
    Statistic,
    Tables,
)
from diptych.commerce.purchase_intent.statistics.intervals import share, wilson

if TYPE_CHECKING:
    import ibis.expr.types as ir


# Standardised conversion rates: how far a group's rate lies from the mean of all groups, in standard deviations.
#
# Thesis section 6.2 takes the mean over groups, each counting once whatever its size. Its worked example and Table 6.4
# divide by n under the deviation (``ddof`` 0); three of the four numbers of Table 6.2 fit n − 1 (``ddof`` 1) instead.


def standardise(rates: Sequence[float | None], ddof: int = 0) -> list[float | None]:
    """(rate − mean) / standard deviation.

    Returns:
        One per group; None where there is no rate, and everywhere where groups do not differ or are too few.
    """
    known = [rate for rate in rates if rate is not None]
    nothing: list[float | None] = [None] * len(rates)
    if len(known) <= ddof or all(rate == known[0] for rate in known):
        return nothing
    mean = math.fsum(known) / len(known)
    deviation = math.sqrt(math.fsum((rate - mean) ** 2 for rate in known) / (len(known) - ddof))
    return [None if rate is None else (rate - mean) / deviation for rate in rates]


def conversion_by(column: str, name: str, source: str) -> Statistic:
    """The statistic of a column of sessions."""

    def expression(tables: Tables, options: DescribeOptions) -> ir.Table:
        sessions = tables.sessions
        return sessions.group_by([column, "purchase"]).aggregate(sessions=sessions.count())

    return Statistic(
        name=name,
        description=f"sessions, purchase sessions and conversion rates by {column} of the first event",
        source=source,
        columns=_columns(column),
        expression=expression,
        finish=_finish(column),
    )


def _columns(column: str) -> Mapping[str, str]:
    return {
        column: "in lower case",
        "sessions": "all of them",
        "purchase_sessions": "those with a purchase",
        "purchase_share": "of all purchase sessions; null where there are none",
        "other_share": "of all other sessions; null where there are none",
        "rate": "conversion rate: purchase sessions divided by sessions",
        **INTERVAL,
        "standardised": "rate less the mean of rates over groups, in their standard deviations; null if all are equal",
    }


def _finish(column: str) -> Finish:
    def finish(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
        counts: defaultdict[str, Counter[bool]] = defaultdict(Counter)
        for row in rows:
            counts[row[column]][row["purchase"]] += row["sessions"]
        purchases, others = (sum(one[kind] for one in counts.values()) for kind in (True, False))
        finished: list[Row] = []
        for group, of in sorted(counts.items()):
            low, high = wilson(of[True], of.total(), options.confidence)
            finished.append(
                {
                    column: group,
                    "sessions": of.total(),
                    "purchase_sessions": of[True],
                    "purchase_share": share(of[True], purchases),
                    "other_share": share(of[False], others),
                    "rate": share(of[True], of.total()),
                    "low": low,
                    "high": high,
                }
            )
        relative = standardise([row["rate"] for row in finished], options.ddof)
        return [row | {"standardised": value} for row, value in zip(finished, relative, strict=True)]

    return finish
