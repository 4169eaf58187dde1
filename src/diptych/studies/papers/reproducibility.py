"""Hendriksen et al. (ECIR 2023): which of CLIP and X-VLM is ahead, in the originals, in the thesis, and here."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import NamedTuple

from diptych.core.table import Cell, Table
from diptych.studies.compare import Further
from diptych.studies.evidence import HIGH, LOW, Evidence, Figure, Formula
from diptych.studies.published import PublishedTable, document, printed_by, published_table
from diptych.studies.study import Study

_LISTS, _FURTHER = (document("reproducibility")[name] for name in ("lists", "further"))
_RECALLS, _SCORES, _LEAVES = _LISTS["recalls"], _LISTS["scores"], _FURTHER["leaves"]
_DIGITS = 9  # of a difference: sums of the same recalls in another order are no order


class _Order(NamedTuple):
    ahead: str  # a model, or ``tie``
    apart: float
    near: bool  # so many queries cannot tell


Orders = Mapping[str, _Order]  # by column
Sources = Mapping[str, Mapping[str, Orders]]  # by source and collection in small letters


def orders(study: Study, evidence: Evidence) -> Further:
    """Return relative results per collection and up the tree of Figure 2.2, and what speaks against them."""
    tables = [published_table(study.paper.key, name) for name in ("table-2.1", "table-2.2")]
    sources = {by: _printed(tables, by) for by in ("original", "thesis")} | {"here": evidence}
    found = {by: of for by, one in sources.items() if (of := _orders(one))}
    ours, printed = {name.lower() for name in evidence.centric}, sources["thesis"].centric
    shows = {name: printed[name] for name in _LEAVES if name not in ours} | dict(evidence.centric)
    tasks = [
        _FURTHER["tasks"].format(name=name, tasks="; ".join(f"{row}: {task}" for row, task in of.items()))
        for name, of in evidence.tasks.items()
        if len(set(of.values())) > 1
    ]
    unknown = [_FURTHER["unknown"].format(name=name) for name, kind in evidence.centric.items() if not kind]
    return Further([_relative(found, shows), _tree(found, shows)], remarks=tasks + unknown)


def _printed(tables: Sequence[PublishedTable], by: str) -> Evidence:
    """Return printed numbers, recalls with their 95 % intervals over independent queries."""
    evidence = printed_by(tables, by)
    figures = {row: dict(columns) for row, columns in evidence.figures.items()}
    for row in (row for table in tables for row in table.rows if row.on.by == by):
        for column, cell in row.cells.items():
            if "R@" in column:
                queries = row.on.images if column.startswith("i2t") else row.on.captions
                half = 1.96 * math.sqrt(cell.value * (100 - cell.value) / queries)
                ends = {LOW: Figure(cell.value - half), HIGH: Figure(cell.value + half)}
                figures[str(row.config)] |= {f"{row.on.dataset} {column}{end}": ends[end] for end in ends}
    return replace(evidence, figures=figures, exact=False)


def _orders(evidence: Evidence) -> Mapping[str, Orders]:
    found: dict[str, dict[str, _Order]] = {}
    for name, column in product(evidence.centric, _SCORES):
        x_vlm, clip = (evidence.figure(row, f"{name} {column}") for row in ("x-vlm", "clip"))
        if x_vlm and clip:
            apart = round(x_vlm.mean - clip.mean, _DIGITS)
            ahead = "X-VLM" if apart > 0 else "CLIP" if apart < 0 else "tie"
            formula = Formula.parse("[x-vlm] > [clip]", f"{name} {column}")
            near = formula.judge(evidence, seeded=False).status == "undecided"
            found.setdefault(name.lower(), {})[column] = _Order(ahead, abs(apart), near)
    return found


def _relative(found: Sources, names: Iterable[str]) -> Table:
    rows = []
    for name, by in product(names, found):
        here, original = (found[source].get(name.lower(), {}) for source in (by, "original"))
        cells = []
        for column in _SCORES if here else ():
            one, other = here.get(column), None if by == "original" else original.get(column)
            mark = "" if not one or not other else " ✓" if one.ahead == other.ahead else " ✗"
            cells.append(f"{one.ahead} {'~' if one.near else ''}{one.apart:.2f}{mark}" if one else "–")
        rows += [(name, by, *cells)] if cells else []
    return Table.of("Relative results", _FURTHER["relative"], ("collection", "source", *_SCORES), rows)


def _tree(found: Sources, shows: Mapping[str, str]) -> Table:
    def of_kind(by: str, kind: str) -> list[Orders]:
        return [found[by].get(name.lower(), {}) for name, shown in shows.items() if shown == kind]

    def add(number: str, title: str, question: str, cells: list[Cell]) -> None:
        rows.append([Cell(number), Cell(title, words=True), Cell(question, words=True), *cells])

    rows: list[list[Cell]] = []
    numbers = {name: number for number, name in enumerate(_LEAVES)}
    leaves = sorted(filter(shows.get, shows), key=lambda one: (shows[one], numbers.get(one.lower(), 99)))
    for (way, first), title in product((("t2i", 7), ("i2t", 12)), leaves):
        name, original = title.lower(), found["original"].get(title.lower())
        others, kind = ([original], "leaf") if original else (of_kind("original", "scene"), "other leaf")
        pairs = {by: product([of.get(name, {})], others) for by, of in found.items() if by != "original"}
        number = str(first + numbers[name]) if name in numbers else ""
        cells = [_held(pairs.get(by, ()), [way]) for by in found]
        add(number, f"{_LEAVES.get(name, title)} ({way})", _FURTHER[kind], cells)
    for node in _FURTHER["nodes"]:
        kinds = [[of_kind(by, kind) for kind in node["kinds"]] for by in found]
        cells = [_held(product(*of) if of[1:] else combinations(of[0], 2), node["ways"]) for of in kinds]
        add(node["number"], node["title"], node["question"], cells)
    rows = [row for row in rows if any(cell.shade for cell in row)]
    return Table("Up the tree", ("node", "", "is found again", *found), rows, after=_FURTHER["tree"])


def _held(pairs: Iterable[Sequence[Orders]], ways: Sequence[str]) -> Cell:
    recalls = {name for name in _RECALLS if name[:3] in ways}
    same = [a[name].ahead == b[name].ahead for a, b in pairs for name in recalls & a.keys() & b.keys()]
    sign, colour = ("✓", "right") if all(same) else ("◐", "orange") if any(same) else ("✗", "wrong")
    return Cell(f"{sign} {sum(same)} of {len(same)}", shade=0.35, colour=colour) if same else Cell("–")
