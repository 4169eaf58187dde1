"""Thesis Figure 2.2 with what was found at every node: in the originals, in the thesis, and here."""

from __future__ import annotations

from diptych.core.table import Cell, Table
from diptych.studies.reproducibility_orders import (
    COLUMNS,
    PAPERS,
    SOURCES,
    Agreement,
    Node,
    Order,
    Orders,
    measured_orders,
    printed_orders,
    tree_of,
    verdict_of,
)
from diptych.studies.verdict import Evidence

LABELS = {"clip": "CLIP", "x-vlm": "X-VLM", "": "tie"}
SIGNS = {"holds": "✓", "partly": "◐", "fails": "✗", "not run": "–"}
"""One sign per verdict of a node; the word stands beside it or in the legend."""


def all_orders(evidence: Evidence) -> dict[str, Orders]:
    """By source: the original, the thesis, and what was measured here where anything was."""
    found = {source: printed_orders(source) for source in SOURCES}
    here = measured_orders(evidence)
    return {**found, "here": here} if here.found else found


def order_tables(evidence: Evidence) -> list[Table]:
    """Relative results per collection, and the tree from its leaves to its root."""
    orders = all_orders(evidence)
    return [_relative(orders, evidence), _upwards(orders, evidence)]


def centric_of_all(evidence: Evidence) -> dict[str, str]:
    """The paper's collections and those measured here, with what their pictures show."""
    known = {name.lower() for name in evidence.centric}
    return {**{name: shows for name, shows in PAPERS.items() if name not in known}, **evidence.centric}


def remarks_on(evidence: Evidence) -> list[str]:
    """What is said of collections that have no place in the tree, and of rows that were asked other things."""
    unlike = [
        f"Rows were not given the same task on {name}, and their order says little: "
        + "; ".join(f"{row}: {task}" for row, task in tasks.items())
        for name, tasks in evidence.tasks.items()
        if len(set(tasks.values())) > 1
    ]
    return unlike + [
        f"{name} has no place in the tree: nobody said what its pictures show (--reader-option "
        f"{name}.centric=scene, or object)"
        for name, shows in evidence.centric.items()
        if not shows
    ]


def _relative(orders: dict[str, Orders], evidence: Evidence) -> Table:
    original = orders["original"]
    rows = []
    for name in centric_of_all(evidence):
        for source, given in orders.items():
            found = [given.of(name, column) for column in COLUMNS]
            if any(found):
                theirs = [original.of(name, column) for column in COLUMNS]
                compared = [None] * len(COLUMNS) if source == "original" else theirs
                cells = (_cell(one, other) for one, other in zip(found, compared, strict=True))
                rows.append((name, source, *cells))
    return Table.of(
        "Relative results",
        "Who is ahead and by how much. ✓ the same model as originally, ✗ the other one; ~ a near tie: so many "
        "queries cannot tell (printed recalls: two independent shares, 95 %; here: paired t-test over images, "
        "p > 0.05). Printed sums have no such test.",
        ("collection", "source", *COLUMNS),
        tuple(rows),
    )


def _cell(order: Order | None, original: Order | None) -> str:
    if order is None:
        return "–"
    mark = "" if original is None else " ✓" if order.ahead == original.ahead else " ✗"
    near = "~" if order.near_tie else ""
    return f"{LABELS[order.ahead]} {near}{abs(order.apart):.2f}{mark}"


def _upwards(orders: dict[str, Orders], evidence: Evidence) -> Table:
    tree = tree_of(centric_of_all(evidence))
    original = orders["original"]
    rows = []
    for node in tree.upwards():
        found = [verdict_of(node, given, original) for given in orders.values()]
        if any(one.of for one in found):
            number = "" if node.number is None else str(node.number)
            words = [Cell(_title(node), words=True), Cell(_question(node, original), words=True)]
            rows.append([Cell(number), *words, *map(_agreement, found)])
    after = (
        "Figure 2.2 from its leaves to its root: of how many comparisons (of R@1, R@5 and R@10) the statement "
        "holds. ✓ of all, ◐ of some, ✗ of none."
    )
    return Table("Up the tree", ("node", "", "is found again", *orders), rows, after=after)


def _agreement(one: Agreement) -> Cell:
    colour = {"holds": "right", "partly": "orange", "fails": "wrong"}.get(one.word, "")
    return Cell(f"{SIGNS[one.word]} {one}", shade=0.35, colour=colour) if one.of else Cell("–")


def _question(node: Node, original: Orders) -> str:
    """What is counted at a node."""
    if node.dataset:
        own = original.of(node.dataset, f"{node.direction} R@1") is not None
        return "the original's order" if own else "the originals' orders on scene-centric collections"
    if node.centric:
        return "one order, from collection to collection"
    return "scene-centric orders, on object-centric collections"


def _title(node: Node) -> str:
    way = f" ({node.direction})" if node.centric else ""
    return f"{node.title}{way}"
