"""Which of two models is ahead: in the originals of a paper, in the paper, and here, up the tree of its collections.

Hendriksen et al. (ECIR 2023), figure 2.2: per direction and collection whether an original's order is found again
(RQ1.1, RQ1.2), whether collections of one kind have one order, and whether the order on scene-centric collections is
that on object-centric ones (RQ1.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from diptych.core.table import Cell, Table
from diptych.studies.compare import Further
from diptych.studies.evidence import Evidence
from diptych.studies.formulas import Formula
from diptych.studies.published import PublishedTable, published_table
from diptych.studies.study import Study
from diptych.studies.verdict import printed_by

PAIR = {"x-vlm": "X-VLM", "clip": "CLIP"}
"""The models; a difference is the first's less the second's."""

WAYS = {"t2i": "Text-to-image", "i2t": "Image-to-text"}
KINDS = {"object": "object-centric", "scene": "scene-centric"}
PAPERS = {
    "cub": "CUB-200",
    "fashion200k": "Fashion200k",
    "abo": "ABO",
    "coco": "MS COCO",
    "flickr30k": "Flickr30k",
}
"""The paper's collections, in the order of its tree's leaves."""

_RECALLS = ("R@1", "R@5", "R@10")
_COLUMNS = (*(f"{way} {name}" for way in WAYS for name in _RECALLS), *(f"{way} rsum" for way in WAYS), "rsum")
_DIGITS = 9  # of a difference: sums of the same recalls in another order are no order
_Z = 1.96


@dataclass(frozen=True)
class Order:
    """Which model is ahead in one column; ``near`` a tie that so many queries cannot tell."""

    apart: float
    near: bool

    @property
    def ahead(self) -> str:
        """The model; ``tie`` where neither is."""
        first, second = PAIR.values()
        return first if self.apart > 0 else second if self.apart < 0 else "tie"


@dataclass(frozen=True)
class Orders:
    """What one source says: orders by collection (in small letters) and column, and what pictures show."""

    found: Mapping[tuple[str, str], Order]
    shows: Mapping[str, str]

    def on(self, kind: str) -> list[str]:
        """Return the collections of a kind that have an order."""
        known = {name for name, _ in self.found}
        return [name.lower() for name, shows in self.shows.items() if shows == kind and name.lower() in known]


Pairs = Callable[[Orders], list[tuple[Order, Order]]]
"""What is compared at a node, of one source."""


def orders(study: Study, evidence: Evidence) -> Further:
    """Return relative results per collection and up the tree, and what speaks against them."""
    tables = [published_table(study.paper.key, name) for name in ("table-2.1", "table-2.2")]
    printed = {by: printed_by(tables, by) for by in ("original", "thesis")}
    sources = {by: _orders(one, _doubt(tables, by)) for by, one in printed.items()}
    here = _orders(evidence, None)
    if here.found:
        sources["here"] = here
    own = {name.lower() for name in evidence.centric}
    shows = {name: one for by in printed.values() for name, one in by.centric.items()}
    shows = {name: shows[name] for name in PAPERS if name not in own} | dict(evidence.centric)
    remarks = [
        f"Rows were not given the same task on {name}, and their order says little: "
        + "; ".join(f"{row}: {task}" for row, task in tasks.items())
        for name, tasks in evidence.tasks.items()
        if len(set(tasks.values())) > 1
    ]
    remarks += [
        f"{name} has no place in the tree: nobody said what its pictures show (--reader-option {name}.centric=scene, "
        "or object)"
        for name, kind in evidence.centric.items()
        if not kind
    ]
    return Further([_relative(sources, list(shows)), _tree(sources, shows)], remarks=remarks)


def _orders(evidence: Evidence, doubt: Mapping[tuple[str, str], float] | None) -> Orders:
    """Return a source's orders; ``doubt`` is how far apart printed numbers have to be."""
    found = {}
    for name, column in product(evidence.centric, _COLUMNS):
        first, second = (evidence.figure(row, f"{name} {column}") for row in PAIR)
        if first is None or second is None:
            continue
        apart = round(first.mean - second.mean, _DIGITS)
        if doubt is None:
            formula = Formula.parse("[x-vlm] > [clip]", f"{name} {column}")
            near = formula.judge(evidence, seeded=False).status == "undecided"
        else:
            near = abs(apart) <= doubt.get((name, column), -1.0)
        found[name.lower(), column] = Order(apart, near)
    return Orders(found, evidence.centric)


def _doubt(tables: Sequence[PublishedTable], by: str) -> dict[tuple[str, str], float]:
    """Return how far apart two printed recalls of independent queries have to be."""
    variances: dict[tuple[str, str], float] = {}
    for row in (row for table in tables for row in table.rows if row.on.by == by):
        for column, cell in row.cells.items():
            if "R@" in column:
                queries = row.on.images if column.startswith("i2t") else row.on.captions
                place = row.on.dataset, column
                variances[place] = variances.get(place, 0.0) + cell.value * (100 - cell.value) / queries
    return {place: _Z * math.sqrt(variance) for place, variance in variances.items()}


def _relative(sources: Mapping[str, Orders], names: Sequence[str]) -> Table:
    original, rows = sources["original"].found, []
    for name, (source, given) in product(names, sources.items()):
        cells = []
        for place in ((name.lower(), column) for column in _COLUMNS):
            order, before = given.found.get(place), original.get(place)
            if order is None:
                cells.append("–")
                continue
            mark = ""
            if before is not None and source != "original":
                mark = " ✓" if order.ahead == before.ahead else " ✗"
            cells.append(f"{order.ahead} {'~' if order.near else ''}{abs(order.apart):.2f}{mark}")
        if set(cells) != {"–"}:
            rows.append((name, source, *cells))
    return Table.of(
        "Relative results",
        "Who is ahead and by how much. ✓ the same model as originally, ✗ the other one; ~ a near tie: so many "
        "queries cannot tell (printed recalls: two independent shares, 95 %; here: paired t-test over images, "
        "p > 0.05). Printed sums have no such test.",
        ("collection", "source", *_COLUMNS),
        rows,
    )


def _tree(sources: Mapping[str, Orders], shows: Mapping[str, str]) -> Table:
    original, rows = sources["original"], []
    for number, title, question, pairs in _nodes(original, shows):
        found = [pairs(given) for given in sources.values()]
        if any(found):
            words = [Cell(title, words=True), Cell(question, words=True)]
            rows.append([Cell(number), *words, *(_agreement(one) for one in found)])
    after = (
        "Figure 2.2 from its leaves to its root: of how many comparisons (of R@1, R@5 and R@10) the statement "
        "holds. ✓ of all, ◐ of some, ✗ of none."
    )
    return Table("Up the tree", ("node", "", "is found again", *sources), rows, after=after)


def _nodes(original: Orders, shows: Mapping[str, str]) -> Iterator[tuple[str, str, str, Pairs]]:
    """Yield the nodes, leaves first: number, title, what is found again, and a source's pairs of orders."""

    def again(name: str, others: Sequence[str], way: str) -> Pairs:
        names = [(name, other) for other in others]
        return lambda given: [] if given is original else _pairs(given, original, names, [way])

    def alike(kind: str, way: str) -> Pairs:
        return lambda given: _pairs(given, given, combinations(given.on(kind), 2), [way])

    def across(*ways: str) -> Pairs:
        return lambda given: _pairs(given, given, product(given.on("scene"), given.on("object")), ways)

    known = list(PAPERS)
    for place, (way, kind) in enumerate(product(WAYS, KINDS)):
        leaves = [name for name, own in shows.items() if own == kind]
        for name in sorted(leaves, key=lambda one: known.index(one.lower()) if one.lower() in known else 99):
            low = name.lower()
            number = str(7 + 5 * (place // 2) + known.index(low)) if low in known else ""
            has_own = (low, f"{way} R@1") in original.found
            others = [low] if has_own else original.on("scene")
            question = "the original's order"
            if not has_own:
                question = "the originals' orders on scene-centric collections"
            yield number, f"{PAPERS.get(low, name)} ({way})", question, again(low, others, way)
    for place, (way, kind) in enumerate(product(WAYS, KINDS)):
        question = "one order, from collection to collection"
        yield str(3 + place), f"{KINDS[kind]} ({way})", question, alike(kind, way)
    question = "scene-centric orders, on object-centric collections"
    for place, (way, title) in enumerate(WAYS.items(), 1):
        yield str(place), title, question, across(way)
    yield "0", "Image-text CMR", question, across(*WAYS)


def _pairs(
    one: Orders, other: Orders, names: Iterable[tuple[str, str]], ways: Iterable[str]
) -> list[tuple[Order, Order]]:
    """Return the recalls' orders on pairs of collections, where both are known."""
    columns = [f"{way} {name}" for way in ways for name in _RECALLS]
    places = [((first, column), (second, column)) for first, second in names for column in columns]
    return [
        (one.found[here], other.found[there])
        for here, there in places
        if here in one.found and there in other.found
    ]


def _agreement(pairs: Sequence[tuple[Order, Order]]) -> Cell:
    """Return in how many pairs the same model is ahead."""
    same = sum(one.ahead == other.ahead for one, other in pairs)
    sign, colour = ("✓", "right") if same == len(pairs) else ("◐", "orange") if same else ("✗", "wrong")
    return Cell(f"{sign} {same} of {len(pairs)}", shade=0.35, colour=colour) if pairs else Cell("–")
