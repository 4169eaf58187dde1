"""How much there is of everything: thesis Table 6.1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from diptych.commerce.purchase_intent.statistics.declaration import (
    STATISTICS,
    DescribeOptions,
    Row,
    Statistic,
    Tables,
)

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["OVERVIEW"]

_WHAT = (
    "events",
    "sessions",
    "anonymous sessions",
    "identified sessions",
    "purchase sessions",
    "clients",
    "identified visitors",
    "purchasers",
    "queries",
    "distinct queries",
    "device types",
    "sessions with several visitors",
)


def _expression(tables: Tables, options: DescribeOptions) -> ir.Table:
    sessions, queries = tables.sessions, tables.queries
    counted = sessions.aggregate(
        events=sessions.n_events.sum().fill_null(0),
        sessions=sessions.count(),
        identified=sessions.visitor_id.count(),
        purchases=sessions.count(where=sessions.purchase),
        several=sessions.count(where=sessions.n_visitors > 1),
        queries=sessions.n_queries.sum().fill_null(0),
    )
    distinct = (
        sessions.aggregate(clients=sessions.client_id.nunique()),
        sessions.aggregate(visitors=sessions.visitor_id.nunique()),
        sessions.aggregate(purchasers=sessions.visitor_id.nunique(where=sessions.purchase)),
        sessions.aggregate(devices=sessions.device.nunique()),
        queries.aggregate(texts=queries["query"].nunique(where=queries["query"] != "")),
    )
    for one in distinct:
        counted = counted.cross_join(one)
    return counted


def _finish(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    (row,) = rows
    totals = (
        row["events"],
        row["sessions"],
        row["sessions"] - row["identified"],
        row["identified"],
        row["purchases"],
        row["clients"],
        row["visitors"],
        row["purchasers"],
        row["queries"],
        row["texts"],
        row["devices"],
        row["several"],
    )
    return [{"what": what, "total": total} for what, total in zip(_WHAT, totals, strict=True)]


OVERVIEW = STATISTICS.add(
    Statistic(
        name="overview",
        description="how many events, sessions, clients, visitors and queries there are",
        source="thesis Table 6.1",
        columns={
            "what": "anonymous and identified: sessions, by whether a visitor is known anywhere in them; clients: that "
            "sessions began on; purchasers: visitors with a purchase session",
            "total": "how many",
        },
        expression=_expression,
        finish=_finish,
    )
)
