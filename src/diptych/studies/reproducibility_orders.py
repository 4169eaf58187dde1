"""Thesis chapter 2's relative results: orders of two models in the originals, in the thesis and here.

Per column and collection the row that is ahead; from them, up the tree of Figure 2.2: whether an original's
order is found again on its own collection (RQ1.1, reproducibility) or on another (RQ1.2, replicability), whether
collections of one kind have one order, and whether the order on scene-centric collections is that on
object-centric ones (RQ1.3, generalisability).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from diptych.studies.claims import RECALLS, Check, Finding, missing
from diptych.studies.published import PublishedRow, PublishedTable, published_table
from diptych.studies.verdict import Evidence, printed_by

if TYPE_CHECKING:
    from diptych.evaluation import Result


DIRECTIONS = {"t2i": "Text-to-image", "i2t": "Image-to-text"}
CENTRIC = {"object": "object-centric", "scene": "scene-centric"}
PAPERS = {"cub": "object", "fashion200k": "object", "abo": "object", "coco": "scene", "flickr30k": "scene"}
"""The paper's collections and what their pictures show."""

_NUMBERS = {
    ("t2i", ""): 1, ("i2t", ""): 2,
    ("t2i", "object"): 3, ("t2i", "scene"): 4, ("i2t", "object"): 5, ("i2t", "scene"): 6,
    ("t2i", "cub"): 7, ("t2i", "fashion200k"): 8, ("t2i", "abo"): 9, ("t2i", "coco"): 10, ("t2i", "flickr30k"): 11,
    ("i2t", "cub"): 12, ("i2t", "fashion200k"): 13, ("i2t", "abo"): 14, ("i2t", "coco"): 15, ("i2t", "flickr30k"): 16,
}  # fmt: skip
_TITLES = {
    "cub": "CUB-200",
    "fashion200k": "Fashion200k",
    "abo": "ABO",
    "coco": "MS COCO",
    "flickr30k": "Flickr30k",
}


@dataclass(frozen=True)
class Node:
    """One node of the plan."""

    number: int | None
    title: str
    direction: str = ""
    centric: str = ""
    dataset: str = ""
    children: tuple[Node, ...] = ()

    @property
    def leaves(self) -> list[Node]:
        """Its leaves, in order; of a leaf, itself."""
        if self.dataset:
            return [self]
        return [leaf for child in self.children for leaf in child.leaves]

    def upwards(self) -> Iterator[Node]:
        """Bottom up, as the text walks it: every node after those below it, leaves first."""
        level, levels = [self], []
        while level:
            levels.append(level)
            level = [child for node in level for child in node.children]
        for nodes in reversed(levels):
            yield from nodes


def tree_of(centric: Mapping[str, str]) -> Node:
    """The plan over collections (name → ``object``, ``scene``); others are left out, and so are empty branches."""
    ways = []
    for direction, title in DIRECTIONS.items():
        kinds = []
        for kind, called in CENTRIC.items():
            leaves = tuple(
                Node(
                    _NUMBERS.get((direction, name.lower())),
                    _TITLES.get(name.lower(), name),
                    direction,
                    kind,
                    name,
                )
                for name, shows in centric.items()
                if shows == kind
            )
            if leaves:
                kinds.append(
                    Node(_NUMBERS[direction, kind], called, direction, kind, children=_in_order(leaves))
                )
        if kinds:
            ways.append(Node(_NUMBERS[direction, ""], title, direction, children=tuple(kinds)))
    return Node(0, "Image-text CMR", children=tuple(ways))


def _in_order(leaves: tuple[Node, ...]) -> tuple[Node, ...]:
    """The paper's leaves by their numbers, then others as they were given."""
    return tuple(sorted(leaves, key=lambda leaf: 99 if leaf.number is None else leaf.number))


_LEVEL = 0.05
_Z = 1.96
_DIGITS = 9  # of a difference of percentages


@dataclass(frozen=True)
class Order:
    """Which of two rows is ahead in one column."""

    ahead: str
    apart: float
    near_tie: bool | None = None


@dataclass(frozen=True)
class Agreement:
    """How many of several comparisons of two orders have the same row ahead."""

    same: int
    of: int

    @property
    def word(self) -> Literal["holds", "partly", "fails", "not run"]:
        """``holds`` when all agree, ``fails`` when none does."""
        if not self.of:
            return "not run"
        return "holds" if self.same == self.of else "partly" if self.same else "fails"

    def __add__(self, other: Agreement) -> Agreement:
        return Agreement(self.same + other.same, self.of + other.of)

    def __str__(self) -> str:
        return f"{self.same} of {self.of}" if self.of else "–"


def order_in(
    evidence: Evidence, pair: tuple[str, str], column: str, near_tie: bool | None = None
) -> Order | None:
    """Which of the pair is ahead in a column; None where one has no figure."""
    first, second = (evidence.figure(row, column) for row in pair)
    if first is None or second is None:
        return None
    # Sums of the same recalls in another order differ in their last digits: no order.
    apart = round(first.mean - second.mean, _DIGITS)
    return Order("" if apart == 0 else pair[0] if apart > 0 else pair[1], apart, near_tie)


def agreement(pairs: Iterable[tuple[Order | None, Order | None]]) -> Agreement:
    """How many pairs of orders have the same row ahead, of those where both are known."""
    known = [(one, other) for one, other in pairs if one is not None and other is not None]
    return Agreement(sum(one.ahead == other.ahead for one, other in known), len(known))


def printed_near_tie(first: PublishedRow, second: PublishedRow, column: str) -> bool | None:
    """Whether two printed recalls are apart by less than their numbers of queries can tell.

    None for columns that are no recalls of one direction, and where one is not printed.
    """
    direction, _, name = column.partition(" ")
    if direction not in ("i2t", "t2i") or not name.startswith("R@"):
        return None
    if column not in first.cells or column not in second.cells:
        return None
    variance, values = 0.0, []
    for row in (first, second):
        share = row.cells[column].value / 100
        queries = row.on.images if direction == "i2t" else min(row.on.captions)
        values.append(share)
        variance += share * (1 - share) / queries
    return abs(values[0] - values[1]) <= _Z * math.sqrt(variance)


def measured_near_tie(first: Path, second: Path, columns: Sequence[str]) -> Mapping[str, bool | None]:
    """Per column (recalls, sums of a direction, ``rsum``) whether two evaluations are a near tie."""
    from diptych.evaluation import Result

    results = Result.open(first), Result.open(second)
    return {column: _near_tie(*results, column) for column in columns}


def _near_tie(first: Result, second: Result, column: str) -> bool | None:
    import numpy as np

    from diptych.metrics.paired import Shares, shares_of, t_test

    direction, _, name = column.partition(" ")
    directions = [direction] if name else ["i2t", "t2i"]
    texts = first.text_image
    same = all(first.protocol.about.get(key) == second.protocol.about.get(key) for key in ("dataset", "data"))
    if not same or texts is None or second.text_image is None or not np.array_equal(texts, second.text_image):
        return None
    n_images = first.protocol.n_images
    parts, residuals = np.zeros(n_images), np.zeros(n_images)
    for way in directions:
        recalls = (
            [name] if name.startswith("R@") else [key for key in first.per_query[way] if key.startswith("R@")]
        )
        values = [sum(one.per_query[way][key] for key in recalls) for one in (first, second)]
        cluster = np.arange(n_images) if way == "i2t" else texts
        shares = shares_of(np.asarray(values[0]) - np.asarray(values[1]), cluster, n_images)
        parts, residuals = parts + shares.parts, residuals + shares.residuals
    p = t_test([Shares(parts, residuals, np.ones(n_images, dtype=bool))])
    return None if p is None else p > _LEVEL


PAIR = ("x-vlm", "clip")
"""The rows that are compared; a difference is the first less the second."""

RECALL_COLUMNS = tuple(f"{direction} {name}" for direction in ("t2i", "i2t") for name in RECALLS)
COLUMNS = (*RECALL_COLUMNS, "t2i rsum", "i2t rsum", "rsum")

SOURCES = ("original", "thesis")
"""Who measured what is printed."""


@dataclass(frozen=True)
class Orders:
    """Who is ahead, as one source says."""

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


def ahead_everywhere(better: str, worse: str, kind: str) -> Check:
    """``better`` is ahead in every column on every collection of a kind."""

    def check(evidence: Evidence) -> list[Finding]:
        names = [name for name, shows in evidence.centric.items() if shows == kind]
        findings = []
        for name in names or ["a collection"]:
            for column in COLUMNS:
                order = order_in(evidence, (better, worse), f"{name} {column}")
                what = f"{better} beats {worse} in {name} {column}"
                if order is None:
                    findings.append(missing(what, f"{kind}-centric collections of {better} and {worse}"))
                else:
                    findings.append(Finding(what, order.apart > 0, f"{order.apart:+.2f}", order.apart))
        return findings

    return check


def mostly_ahead(better: str, worse: str, kind: str) -> Check:
    """``better`` is ahead in more than half of the recalls on all collections of a kind together."""

    def check(evidence: Evidence) -> list[Finding]:
        what = f"{better} mostly beats {worse} on {kind}-centric collections"
        names = [name for name, shows in evidence.centric.items() if shows == kind]
        orders = [
            order
            for name in names
            for column in RECALL_COLUMNS
            if (order := order_in(evidence, (better, worse), f"{name} {column}")) is not None
        ]
        if not orders:
            return [missing(what, f"a {kind}-centric collection")]
        won = sum(order.apart > 0 for order in orders)
        share = won / len(orders)
        return [Finding(what, share > 0.5, f"{won} of {len(orders)} recalls", share - 0.5)]

    return check


def alone(dataset: str, ahead: str, behind: str) -> Check:
    """On ``dataset`` one row is ahead in every recall, on every other collection the other one."""

    def check(evidence: Evidence) -> list[Finding]:
        findings, seen = [], set()
        for name in evidence.centric:
            first, second = (ahead, behind) if name.lower() == dataset else (behind, ahead)
            for column in RECALL_COLUMNS:
                order = order_in(evidence, (first, second), f"{name} {column}")
                if order is not None:
                    seen.add(name.lower() == dataset)
                    what = f"{first} beats {second} in {name} {column}"
                    findings.append(Finding(what, order.apart > 0, f"{order.apart:+.2f}", order.apart))
        if seen != {True, False}:
            return [missing(f"{dataset} is the odd one out", dataset, "another collection")]
        return findings

    return check


def only_partly(question: str) -> Check:
    """Orders agree in some comparisons and not in others, in both directions together."""

    def check(evidence: Evidence) -> list[Finding]:
        ours = measured_orders(evidence)
        tree = tree_of(evidence.centric)
        if question == "generalised":
            what = "orders on scene-centric collections are found again on object-centric ones, but not all"
            found = verdict_of(tree, ours, ours)
        else:
            what = "the originals' orders are found again on object-centric collections, but not all"
            original = printed_orders("original")
            found = sum(
                (verdict_of(leaf, ours, original) for leaf in tree.leaves if leaf.centric == "object"),
                start=Agreement(0, 0),
            )
        if not found.of:
            return [missing(what, "a scene-centric and an object-centric collection")]
        share = found.same / found.of
        return [Finding(what, found.word == "partly", f"{found} comparisons", min(share, 1 - share))]

    return check


def replicated_from(dataset: str) -> Check:
    """The order here on ``dataset`` is that on every object-centric collection, in every recall."""

    def check(evidence: Evidence) -> list[Finding]:
        ours = measured_orders(evidence)
        name = next((one for one in evidence.centric if one.lower() == dataset), dataset)
        found = agreement(
            (ours.of(name, column), ours.of(other, column))
            for other in ours.on("object")
            for column in RECALL_COLUMNS
        )
        what = f"the order on {dataset} is that on object-centric collections"
        if not found.of:
            return [missing(what, dataset, "an object-centric collection")]
        return [Finding(what, found.word == "holds", f"{found} comparisons", found.same / found.of - 1)]

    return check


def lower_on_objects() -> Check:
    """Each row's score on every object-centric collection is below that on every scene-centric one."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        kinds = {
            kind: [name for name, shows in evidence.centric.items() if shows == kind]
            for kind in ("scene", "object")
        }
        for row in PAIR:
            for column in RECALL_COLUMNS:
                what = f"{column} of {row} is lower on object-centric collections"
                scene, objects = (
                    {name: one.mean for name in names if (one := evidence.figure(row, f"{name} {column}"))}
                    for names in (kinds["scene"], kinds["object"])
                )
                if not scene or not objects:
                    findings.append(missing(what, "a collection of each kind"))
                    continue
                low, high = (
                    min(scene, key=lambda name: scene[name]),
                    max(objects, key=lambda name: objects[name]),
                )
                detail = f"at most {objects[high]:.1f} ({high}), at least {scene[low]:.1f} ({low})"
                apart = scene[low] - objects[high]
                findings.append(Finding(what, apart > 0, detail, apart / 100))
        return findings

    return check
