"""From which device to which visitors go before they buy: thesis Figure 6.5."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from diptych.commerce.purchase_intent.statistics.classes import INTERVAL
from diptych.commerce.purchase_intent.statistics.declaration import (
    STATISTICS,
    DescribeOptions,
    Row,
    Statistic,
    Tables,
)
from diptych.commerce.purchase_intent.statistics.intervals import share, wilson
from diptych.commerce.purchase_intent.statistics.links import Link, link

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["DEVICE_TRANSITIONS"]


def _expression(tables: Tables, options: DescribeOptions) -> ir.Table:
    import ibis

    known = tables.sessions.filter(tables.sessions.visitor_id.notnull())
    known = known.select("visitor_id", "start_us", "session_id", "device", "purchase")
    # Nothing of visitors that never bought is counted, and they are nearly all.
    purchasers = known.filter(known.purchase).select("visitor_id").distinct()
    theirs = known.semi_join(purchasers, "visitor_id")
    in_turn = {"group_by": "visitor_id", "order_by": ["start_us", "session_id"]}
    ends_in_purchase = theirs.purchase
    if options.journey == "journey":
        ends_in_purchase = theirs.purchase.any().over(ibis.window(**in_turn, rows=(0, None)))
    pairs = theirs.mutate(
        counts=ends_in_purchase, from_device=theirs.device.lag().over(ibis.window(**in_turn))
    )
    pairs = pairs.filter(pairs.counts & pairs.from_device.notnull())
    return pairs.group_by(["from_device", to_device := pairs.device.name("to_device")]).aggregate(
        transitions=to_device.count()
    )


def _finish(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    counts = {(row["from_device"], row["to_device"]): row["transitions"] for row in rows}
    left: Counter[str] = Counter()
    for (device, _), n in counts.items():
        left[device] += n
    finished = []
    for (before, after), n in sorted(counts.items()):
        low, high = wilson(n, left[before], options.confidence)
        kind: Link = "self"
        if before != after:
            back = share(counts.get((after, before), 0), left[after])
            kind = link(n / left[before], back, likely=options.likely, near_zero=options.near_zero)
        finished.append(
            {
                "from_device": before,
                "to_device": after,
                "transitions": n,
                "share": share(n, left[before]),
                "low": low,
                "high": high,
                "link": kind,
            }
        )
    return finished


DEVICE_TRANSITIONS = STATISTICS.add(
    Statistic(
        name="device-transitions",
        description="devices of a known visitor's consecutive sessions, of which the later one is a purchase session",
        source="thesis Figure 6.5",
        columns={
            "from_device": "of the session before",
            "to_device": "of the session after it",
            "transitions": "between two consecutive sessions of one visitor",
            "share": "of all transitions from the device: the probability",
            **INTERVAL,
            "link": "self, strong, one-sided, weak or none",
        },
        expression=_expression,
        finish=_finish,
    )
)
