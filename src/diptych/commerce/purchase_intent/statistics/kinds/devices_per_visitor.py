"""How many devices purchasers and other known visitors use: thesis Table 6.3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from diptych.commerce.purchase_intent.statistics.classes import CLASSES, INTERVAL
from diptych.commerce.purchase_intent.statistics.declaration import (
    STATISTICS,
    DescribeOptions,
    Row,
    Statistic,
    Tables,
)
from diptych.commerce.purchase_intent.statistics.intervals import share, wilson

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["DEVICES_PER_VISITOR"]


def _expression(tables: Tables, options: DescribeOptions) -> ir.Table:
    known = tables.sessions.filter(tables.sessions.visitor_id.notnull())
    used = known.group_by(["visitor_id", "device"]).aggregate(purchase=known.purchase.any())
    visitors = used.group_by("visitor_id").aggregate(devices=used.count(), purchaser=used.purchase.any())
    return visitors.group_by(["purchaser", "devices"]).aggregate(visitors=visitors.count())


def _finish(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    finished = []
    for purchaser in CLASSES:
        counts = {row["devices"]: row["visitors"] for row in rows if row["purchaser"] is purchaser}
        whole = sum(counts.values())
        groups = {"> 1": sum(n for devices, n in counts.items() if devices > 1)}
        groups |= {str(devices): n for devices, n in sorted(counts.items())}
        for devices, n in groups.items():
            if n:
                low, high = wilson(n, whole, options.confidence)
                finished.append(
                    {"purchaser": purchaser, "devices": devices, "visitors": n, "share": share(n, whole)}
                    | {"low": low, "high": high}
                )
    return finished


DEVICES_PER_VISITOR = STATISTICS.add(
    Statistic(
        name="devices-per-visitor",
        description="how many different devices the sessions of a known visitor began on",
        source="thesis Table 6.3, which says per session and means per visitor",
        columns={
            "purchaser": "whether the visitor has a purchase session",
            "devices": "how many, or more than one",
            "visitors": "known in sessions",
            "share": "of the purchasers, or of the others",
            **INTERVAL,
        },
        expression=_expression,
        finish=_finish,
    )
)
