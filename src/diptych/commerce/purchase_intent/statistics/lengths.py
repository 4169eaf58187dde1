"""How many sessions have each length, by device and class: what two statistics are made from."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from diptych.commerce.purchase_intent.statistics.classes import ALL, CLASSES, sorted_with_all
from diptych.commerce.purchase_intent.statistics.declaration import DescribeOptions, Row, Tables

if TYPE_CHECKING:
    import ibis.expr.types as ir


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
