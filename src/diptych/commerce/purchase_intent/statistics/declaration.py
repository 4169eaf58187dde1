"""A statistic: one Ibis expression over the tables of sessions, and what follows from its small result.

The expression runs on any engine and gives integers and keys; shares, intervals and standardised rates are
computed from them in plain Python, once, so that engines cannot differ in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from diptych.core.registry import Registry

if TYPE_CHECKING:
    import ibis.expr.types as ir


Row = dict[str, Any]
"""One row of a result, JSON-able."""


@dataclass(frozen=True)
class Tables:
    """The tables of sessions as expressions, see :mod:`diptych.commerce.purchase_intent.sessions.schema`."""

    sessions: ir.Table
    queries: ir.Table


@dataclass(frozen=True)
class DescribeOptions:
    """What a description may be told.

    Attributes:
        ddof: of the standard deviation of standardised conversion rates: 0 as in the thesis's worked example
            and Table 6.4, or 1 as its Table 6.2.
        journey: of device transitions: ``pair``, the last session before a purchase session and it; or
            ``journey``, all transitions since the visitor's purchase before.
        confidence: of intervals.
        likely: of links between devices: a switch with at least this probability is likely.
        near_zero: one below is hardly ever seen; see :mod:`diptych.commerce.purchase_intent.statistics.intervals`.
    """

    ddof: int = 0
    journey: str = "pair"
    confidence: float = 0.95
    likely: float = 0.01
    near_zero: float = 0.01


Finish = Callable[[Sequence[Row], DescribeOptions], list[Row]]


@dataclass(frozen=True)
class Statistic:
    """One statistic.

    Attributes:
        name: e.g. ``channels``.
        description: one line.
        source: table or figure of the thesis.
        columns: name → meaning of the finished rows' columns.
        expression: counts and keys, on any engine.
        finish: from the counted rows to the finished ones; plain Python, deterministic order.
    """

    name: str
    description: str
    source: str
    columns: Mapping[str, str]
    expression: Callable[[Tables, DescribeOptions], ir.Table]
    finish: Finish


STATISTICS: Registry[Statistic] = Registry("statistic", "diptych.commerce.purchase_intent.statistics.kinds")
"""All statistics; each is declared in a file of its own."""


ALL = "all"
"""In the place of a device: all of them together."""

CALLED_ALL = '"all"'
"""A device type that a log calls so: one of all, which must not be taken for them."""

CLASSES = (True, False)
"""Purchase sessions, and others: the order of tables."""

INTERVAL: Mapping[str, str] = {
    "low": "lower end of the interval; null where nothing can be said",
    "high": "upper end of it",
}


def apart_from_all(table: ir.Table) -> ir.Table:
    """The same table, in which no device is called as all of them are."""
    import ibis

    return table.mutate(device=ibis.ifelse(table.device == ALL, CALLED_ALL, table.device))


def sorted_with_all(devices: Iterable[str]) -> list[str]:
    """All together first, then each."""
    return [ALL, *sorted(set(devices) - {ALL})]
