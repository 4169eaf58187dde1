"""How many sessions are at least so long: the CCDF of thesis Figure 6.2."""

from __future__ import annotations

from collections.abc import Sequence

from diptych.commerce.purchase_intent.statistics.classes import INTERVAL
from diptych.commerce.purchase_intent.statistics.declaration import (
    STATISTICS,
    DescribeOptions,
    Row,
    Statistic,
)
from diptych.commerce.purchase_intent.statistics.intervals import share, wilson
from diptych.commerce.purchase_intent.statistics.lengths import by_device_and_class, counted_lengths

__all__ = ["SESSION_LENGTH"]


def _finish(rows: Sequence[Row], options: DescribeOptions) -> list[Row]:
    finished = []
    for device, purchase, lengths in by_device_and_class(rows):
        whole = at_least = sum(n for _, n in lengths)
        for length, n in lengths:
            low, high = wilson(at_least, whole, options.confidence)
            finished.append(
                {
                    "device": device,
                    "purchase": purchase,
                    "length": length,
                    "sessions": n,
                    "at_least": at_least,
                    "share": share(at_least, whole),
                    "low": low,
                    "high": high,
                }
            )
            at_least -= n
    return finished


SESSION_LENGTH = STATISTICS.add(
    Statistic(
        name="session-length",
        description="share of sessions with at least so many actions, by device and class",
        source="thesis Figure 6.2",
        columns={
            "device": "of the first event; all together, too",
            "purchase": "class of sessions",
            "length": "actions: pages, queries, and items put into and taken out of the basket",
            "sessions": "of exactly this length",
            "at_least": "of this length or longer",
            "share": "those of all sessions of the device and class",
            **INTERVAL,
        },
        expression=counted_lengths,
        finish=_finish,
    )
)
