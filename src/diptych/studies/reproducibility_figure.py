"""Thesis Figure 2.2 with what was found at every node: in the originals, in the thesis, and here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from diptych.core.table import Table
from diptych.studies.claims import RECALLS
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
            said = (f"{SIGNS[one.word]} {one}" if one.of else "–" for one in found)
            number = "" if node.number is None else str(node.number)
            rows.append((number, _title(node), _question(node, original), *said))
    return Table.of(
        "Up the tree",
        "Figure 2.2 from its leaves to its root: of how many comparisons (of R@1, R@5 and R@10) the statement "
        "holds. ✓ of all, ◐ of some, ✗ of none.",
        ("node", "", "is found again", *orders),
        tuple(rows),
    )


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


_GREEN, _GREY = "#009e73", "#8a929c"
_COLUMNS = (0.0, 1.45, 2.85, 4.25)
"""Where the levels of the tree stand, in inches from the left."""

_TITLE, _LETTER, _STEP = 0.2, 0.078, 1.8
"""From a leaf's circle to its name, a letter of which is so wide, and from one source's column to the next."""

_LINE = 0.42


@dataclass(frozen=True)
class Tree:
    """The tree as one panel."""

    name: str = "tree"
    title: str = "The tree of Figure 2.2"
    note: str = (
        "Leaves say who is ahead in R@1, R@5 and R@10; signs whether the original's order is found again (on the "
        "same collection, else on scene-centric ones). Inner nodes say in how many comparisons one order holds: of "
        "a kind, between its collections; of a direction and the root, between scene-centric and object-centric "
        "collections. ✓ in all, ◐ in some, ✗ in none. Blue: scene-centric (experiment 1); green: object-centric "
        "(experiment 2); orange: both."
    )
    wide: bool = True

    def draw(self, evidence: Evidence, labels: Mapping[str, str]) -> list[str]:
        """The panel; there always is one, for the printed numbers are there."""
        from diptych.report.drawing import INK, draw

        orders = all_orders(evidence)
        tree = tree_of(centric_of_all(evidence))
        places = {id(leaf): -float(row) for row, leaf in enumerate(tree.leaves)}
        longest = max(12, *(len(leaf.title) for leaf in tree.leaves))
        said = _COLUMNS[-1] + _TITLE + _LETTER * longest + 0.15
        width, height = said + _STEP * len(orders) + 0.45, _LINE * (len(tree.leaves) + 1.6)
        with draw(self.name, size=(width, height)) as drawing:
            axes = drawing.axes
            axes.set_axis_off()
            axes.set_xlim(-0.45, width - 0.45)
            axes.set_ylim(-len(tree.leaves) + 0.3, 1.3)
            for number, source in enumerate(orders):
                axes.text(
                    said + number * _STEP, 0.85, source, color=INK, fontsize=10, weight="bold", va="center"
                )
            _branch(axes, tree, 0, places, said, orders)
            drawing.summary = _summary(tree, orders)
        return [drawing.svg]


FIGURE = Tree()


def _colour(node: Node) -> str:
    from diptych.report.drawing import BLUE, ORANGE

    return {"scene": BLUE, "object": _GREEN}.get(node.centric, ORANGE)


def _branch(
    axes: Axes,
    node: Node,
    level: int,
    places: dict[int, float],
    said: float,
    orders: Mapping[str, Orders],
) -> float:
    """Draw a node and all below it, what is said of leaves from ``said`` on; gives its height."""
    from diptych.report.drawing import INK

    left = _COLUMNS[level]
    if node.dataset:
        height = places[id(node)]
    else:
        heights = [_branch(axes, child, level + 1, places, said, orders) for child in node.children]
        height = (heights[0] + heights[-1]) / 2 if heights else 0.0
        middle = (left + _COLUMNS[level + 1]) / 2
        for child, end in zip(node.children, heights, strict=True):
            right = _COLUMNS[level + 1] - 0.14
            axes.plot([middle, middle, right], [height, end, end], color=_colour(child), linewidth=1.1)
        axes.plot([left + 0.14, middle], [height, height], color=_colour(node), linewidth=1.1)
    found = {source: verdict_of(node, given, orders["original"]) for source, given in orders.items()}
    axes.plot(
        left, height, marker="o", markersize=15, markerfacecolor="none", color=_colour(node), linestyle="none"
    )
    number = "" if node.number is None else str(node.number)
    axes.text(left, height, number, color=INK, fontsize=8.5, ha="center", va="center")
    if node.dataset:
        axes.text(left + _TITLE, height, node.title, color=INK, fontsize=9.5, va="center")
        for place, (source, given) in enumerate(orders.items()):
            axes.text(
                said + place * _STEP,
                height,
                _leaf(node, given, found[source], source),
                color=INK if given.of(node.dataset, f"{node.direction} R@1") else _GREY,
                fontsize=9,
                va="center",
            )
        return height
    axes.text(
        left, height + 0.52, node.title, color=INK, fontsize=9.5, ha="center", va="center", weight="bold"
    )
    lines = [f"{source} {SIGNS[one.word]} {one}" for source, one in found.items() if one.of]
    axes.text(
        left,
        height - 0.45,
        "\n".join(lines),
        color=INK,
        fontsize=7.5,
        ha="center",
        va="top",
        linespacing=1.25,
    )
    return height


def _leaf(node: Node, orders: Orders, found: Agreement, source: str) -> str:
    """Who is ahead on a collection, in words."""
    ahead = [orders.of(node.dataset, f"{node.direction} {name}") for name in RECALLS]
    known = [order for order in ahead if order is not None]
    if not known:
        return "–"
    rows = list(dict.fromkeys(order.ahead for order in known))
    if len(rows) == 1:
        said = LABELS[rows[0]]
    else:
        said = ", ".join(f"{LABELS[row]} {sum(order.ahead == row for order in known)}" for row in rows)
    near = sum(bool(order.near_tie) for order in known)
    said += f" ({near} ~)" if near else ""
    return said if source == "original" else f"{SIGNS[found.word]} {said}"


def _summary(tree: Node, orders: Mapping[str, Orders]) -> str:
    """The tree in words, for those who do not see it."""
    parts = []
    for node in tree.upwards():
        said = [
            f"{source} {one}"
            for source, given in orders.items()
            if (one := verdict_of(node, given, orders["original"])).of
        ]
        if said:
            way = f" {node.direction}" if node.centric else ""
            parts.append(f"{node.title}{way}: {', '.join(said)}")
    return f"Agreement of orders up the tree: {'; '.join(parts)}."
