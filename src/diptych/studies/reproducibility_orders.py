"""Thesis chapter 2's relative results: orders of two models in the originals, in the thesis and here.

Per column and collection the row that is ahead; from them, up the tree of Figure 2.2: whether an original's
order is found again on its own collection (RQ1.1, reproducibility) or on another (RQ1.2, replicability), whether
collections of one kind have one order, and whether the order on scene-centric collections is that on
object-centric ones (RQ1.3, generalisability).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from diptych.studies.evidence import Evidence, printed_by
from diptych.studies.orders import (
    Agreement,
    Order,
    agreement,
    measured_near_tie,
    order_in,
    printed_near_tie,
)
from diptych.studies.published import PublishedRow, PublishedTable, published_table
from diptych.studies.reproducibility_tree import Node
from diptych.studies.retrieval import RECALLS

PAIR = ("x-vlm", "clip")
"""The rows that are compared; a difference is the first less the second."""

RECALL_COLUMNS = tuple(f"{direction} {name}" for direction in ("t2i", "i2t") for name in RECALLS)
COLUMNS = (*RECALL_COLUMNS, "t2i rsum", "i2t rsum", "rsum")

SOURCES = ("original", "thesis")
"""Who measured what is printed."""


@dataclass(frozen=True)
class Orders:
    """Who is ahead, as one source says.

    Attributes:
        centric: collection → what its pictures show.
        found: (collection in lower case, column) → the order, where both rows have a number.
    """

    centric: Mapping[str, str]
    found: Mapping[tuple[str, str], Order]

    def of(self, dataset: str, column: str) -> Order | None:
        """One order; None where there is none."""
        return self.found.get((dataset.lower(), column))

    def on(self, kind: str) -> list[str]:
        """The collections of a kind for which there is an order."""
        known = {dataset for dataset, _ in self.found}
        return [name for name, shows in self.centric.items() if shows == kind and name.lower() in known]


def tables() -> tuple[PublishedTable, PublishedTable]:
    """Both printed tables."""
    return published_table("reproducibility", "table-2.1"), published_table("reproducibility", "table-2.2")


@cache
def printed_orders(by: str) -> Orders:
    """The orders of what is printed as measured by ``original`` or ``thesis``."""
    evidence = printed_by(tables(), by)
    found = {}
    for dataset in evidence.centric:
        rows = [_printed(row, dataset, by) for row in PAIR]
        for column in COLUMNS:
            near = None if None in rows else printed_near_tie(rows[0], rows[1], column)  # type: ignore[arg-type]
            order = order_in(evidence, PAIR, f"{dataset} {column}", near)
            if order is not None:
                found[dataset, column] = order
    return Orders(evidence.centric, found)


def _printed(config: str, dataset: str, by: str) -> PublishedRow | None:
    for table in tables():
        for row in table.rows:
            if (row.config, row.on.dataset, row.on.by) == (config, dataset, by):
                return row
    return None


def measured_orders(evidence: Evidence) -> Orders:
    """The orders of what was measured here; near ties by the first seed's values per query."""
    found = {}
    for dataset in evidence.centric:
        kept = [evidence.kept.get(f"{dataset} {row}", ()) for row in PAIR]
        near: Mapping[str, bool | None] = {}
        if all(kept):
            near = measured_near_tie(kept[0][0], kept[1][0], COLUMNS)
        for column in COLUMNS:
            order = order_in(evidence, PAIR, f"{dataset} {column}", near.get(column))
            if order is not None:
                found[dataset.lower(), column] = order
    return Orders(evidence.centric, found)


def verdict_of(node: Node, orders: Orders, original: Orders) -> Agreement:
    """What a node's subtree says of its question, over R@1, R@5 and R@10.

    A collection: whether the order is the original's, on the same collection where the original has it, else
    on its scene-centric ones; nothing of the original itself. A kind: whether its collections have one order,
    in pairs. A direction, and the root: whether the order on each scene-centric collection is that on each
    object-centric one.
    """
    if node.dataset and orders is original:
        return Agreement(0, 0)
    if node.dataset:
        own = [node.dataset] if original.of(node.dataset, f"{node.direction} R@1") else None
        return _agreement(
            [(orders, node.dataset)],
            [(original, name) for name in own or original.on("scene")],
            [node.direction],
        )
    if node.centric:
        names = orders.on(node.centric)
        pairs = [
            (orders.of(one, column), orders.of(other, column))
            for place, one in enumerate(names)
            for other in names[place + 1 :]
            for column in _columns([node.direction])
        ]
        return agreement(pairs)
    directions = [node.direction] if node.direction else ["t2i", "i2t"]
    scene, objects = ([(orders, name) for name in orders.on(kind)] for kind in ("scene", "object"))
    return _agreement(scene, objects, directions)


def _agreement(
    ones: Sequence[tuple[Orders, str]], others: Sequence[tuple[Orders, str]], directions: Sequence[str]
) -> Agreement:
    return agreement(
        (one.of(name, column), other.of(of, column))
        for one, name in ones
        for other, of in others
        for column in _columns(directions)
    )


def _columns(directions: Sequence[str]) -> list[str]:
    return [f"{direction} {name}" for direction in directions for name in RECALLS]
