"""Intervals of shares and means.

They take sessions as independent of each other. Those of one visitor are not quite, so that with many sessions per
visitor the truth lies outside more often than the confidence says.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

from diptych.commerce.purchase_intent.options import DescribeOptions
from diptych.commerce.purchase_intent.statistics.describe import (
    ALL,
    CLASSES,
    INTERVAL,
    Finish,
    Row,
    Statistic,
    Tables,
    sorted_with_all,
)

if TYPE_CHECKING:
    import ibis.expr.types as ir


Interval = tuple[float | None, float | None]
"""Low and high; None where nothing can be said."""


def share(part: int, of: int) -> float | None:
    """A part of a whole; None of nothing."""
    return part / of if of else None


def wilson(part: int, of: int, confidence: float) -> Interval:
    """The score interval of a share, which holds near 0 and 1, too (Wilson, JASA 1927)."""
    if not of:
        return None, None
    z = _normal(confidence)
    centre = part + z * z / 2
    half = z * math.sqrt(part * (of - part) / of + z * z / 4)
    whole = of + z * z
    # Of none and of all the formula is 0 and 1 but for rounding.
    return (
        0.0 if part == 0 else (centre - half) / whole,
        1.0 if part == of else (centre + half) / whole,
    )


def proportion(part: int, of: int, options: DescribeOptions) -> Row:
    """A share with its interval."""
    low, high = wilson(part, of, options.confidence)
    return {"share": share(part, of), "low": low, "high": high}


def mean_interval(total: int, squares: int, of: int, confidence: float) -> Interval:
    """The normal interval of a mean of counts, from their sum and that of their squares; cut at 0."""
    if of < 2:
        return None, None
    # In whole numbers up to here: a difference of large floats would be all rounding.
    variance = (squares * of - total * total) / (of * (of - 1))
    half = _normal(confidence) * math.sqrt(variance / of)
    return max(0.0, total / of - half), total / of + half


def mean_between(counts: Mapping[int, int], low: float, high: float) -> float:
    """The mean of lengths between two quantiles, on which sessions count with what lies inside."""
    n, total, seen = sum(counts.values()), 0.0, 0
    for length, sessions in sorted(counts.items()):
        inside = min(seen + sessions, high * n) - max(seen, low * n)
        total += length * max(0.0, inside)
        seen += sessions
    return total / ((high - low) * n)


def _normal(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)


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
                row: Row = {"purchase": purchase, column: place, "sessions": n}
                finished.append(row | proportion(n, whole, options))
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


def counted_lengths(tables: Tables, options: DescribeOptions) -> ir.Table:
    """``device``, ``purchase``, ``length`` and how many ``sessions``."""
    sessions = tables.sessions
    return sessions.group_by(["device", "purchase", "length"]).aggregate(sessions=sessions.count())


def by_device_and_class(rows: Sequence[Row]) -> Iterator[tuple[str, bool, list[tuple[int, int]]]]:
    """Per device, and all of them, and class that has sessions: rising lengths with their number of sessions."""
    counts: defaultdict[tuple[str, bool], Counter[int]] = defaultdict(Counter)
    for row in rows:
        for device in (row["device"], ALL):
            counts[device, row["purchase"]][row["length"]] += row["sessions"]
    for device in sorted_with_all(device for device, _ in counts):
        for purchase in CLASSES:
            if counts[device, purchase]:
                yield device, purchase, sorted(counts[device, purchase].items())


# What kind of link there is between two devices: thesis section 6.4.4 and Figure 6.5, made exact.
#
# The thesis tells strong links (switches both ways have high probability), one-sided ones (high one way, close to zero
# back) and weak ones (close to zero both ways) apart by eye. Its words and numbers leave little room: 1/16 from TV to
# tablet is high, and so is about 0.02 from PC to tablet, the least that the stated ratios of the three strong links
# allow for; game consoles and TVs are switched to with a probability close to zero. That both bounds are 0.01 is ours.


Link = Literal["self", "strong", "one-sided", "weak", "none"]


def link(there: float, back: float | None, *, likely: float, near_zero: float) -> Link:
    """The kind of link between two different devices; the same from either side.

    Args:
        there, back: probabilities of the two switches; None where the device was never left nor kept.
    """
    if back is None:
        return "none"
    lower, higher = sorted((there, back))
    if lower >= likely:
        return "strong"
    if higher < near_zero:
        return "weak"
    return "one-sided" if higher >= likely and lower < near_zero else "none"
