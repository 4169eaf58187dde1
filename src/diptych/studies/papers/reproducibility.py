"""Hendriksen et al. (ECIR 2023): which of CLIP and X-VLM is ahead, in the originals, in the thesis, and here.

Figure 2.2: per direction and collection whether an original's order is found again (RQ1.1, RQ1.2), whether
collections of one kind have one order, and whether the order on scene-centric collections is that on object-centric
ones (RQ1.3). Claims count such comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any, NamedTuple

from diptych.core.table import Cell, Table
from diptych.studies.claims import combinations as combinations_of
from diptych.studies.claims import lists_of
from diptych.studies.compare import Further
from diptych.studies.evidence import Evidence
from diptych.studies.formulas import Finding, Formula, Status
from diptych.studies.published import PublishedTable, document, printed_by, published_table
from diptych.studies.study import Study

_LISTS, _FURTHER = (document("reproducibility")[name] for name in ("lists", "further"))
_RECALLS, _SCORES, _LEAVES = _LISTS["recalls"], _LISTS["scores"], _FURTHER["leaves"]
_PRINTED = ("original", "thesis")
_DIGITS = 9  # of a difference: sums of the same recalls in another order are no order
_Z = 1.96

Place = tuple[str, str, str]  # source, collection in small letters, column
Pairs = Mapping[str, Iterable[tuple[tuple[str, str], tuple[str, str]]]]  # by source: sources and collections


class _Order(NamedTuple):
    ahead: str  # a model, or ``tie``
    apart: float
    near: bool  # so many queries cannot tell


# Claims ----------------------------------------------------------------------------------------------


def share(
    evidence: Evidence,
    what: str,
    formula: str,
    each: Mapping[str, Any],
    above: float = 0,
    below: float = math.inf,
) -> Iterator[Finding]:
    """Judge whether the share of comparisons that hold is between two bounds, both excluded."""
    named = combinations_of(each, {**_LISTS, **lists_of(evidence)})
    found = [Formula.parse(formula.format(**values)).judge(evidence) for values in named]
    holds, fails = (sum(one.status == status for one in found) for status in ("holds", "fails"))
    missing = next((one for one in found if one.status == "not tested"), None)
    if missing is not None:
        yield replace(missing, what=what)
    elif not found:
        yield Finding.missing(what, "a scene-centric and an object-centric collection")
    else:
        least, most = holds / len(found), 1 - fails / len(found)
        margin = min(least - above, below - most)
        is_open = above < most and least < below
        status: Status = "holds" if margin > 0 else "undecided" if is_open else "fails"
        yield Finding(what, status, f"{holds} of {len(found)} comparisons", margin)


def odd_one_out(evidence: Evidence) -> list[Finding]:
    """Judge whether X-VLM is ahead in every recall on MS COCO, and CLIP on every other collection."""
    ahead = {
        name: "[x-vlm] > [clip]" if name.lower() == "coco" else "[clip] > [x-vlm]"
        for name in evidence.centric
    }
    if len(set(ahead.values())) < 2:
        return [Finding.missing("coco is the odd one out", "coco", "another collection")]
    formulas = [Formula.parse(ahead[name], f"{name} {recall}") for name, recall in product(ahead, _RECALLS)]
    return [one.judge(evidence, len(formulas)) for one in formulas]


# Tables ----------------------------------------------------------------------------------------------


def orders(study: Study, evidence: Evidence) -> Further:
    """Return relative results per collection and up the tree, and what speaks against them."""
    tables = [published_table(study.paper.key, name) for name in ("table-2.1", "table-2.2")]
    sources = {by: printed_by(tables, by) for by in _PRINTED} | {"here": evidence}
    found = _orders(sources, _doubt(tables))
    if not any(by == "here" for by, *_ in found):
        del sources["here"]
    printed = {name: kind for by in _PRINTED for name, kind in sources[by].centric.items()}
    ours = {name.lower() for name in evidence.centric}
    shows = {name: printed[name] for name in _LEAVES if name not in ours} | dict(evidence.centric)
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
    return Further([_relative(found, sources, shows), _tree(found, sources, shows)], remarks=remarks)


def _doubt(tables: Sequence[PublishedTable]) -> dict[Place, float]:
    """Return how far apart two printed recalls of independent queries have to be, by source, collection and column."""
    variances: dict[Place, float] = {}
    for row in (row for table in tables for row in table.rows):
        for column, cell in row.cells.items():
            if "R@" in column:
                queries = row.on.images if column.startswith("i2t") else row.on.captions
                place = row.on.by, row.on.dataset, column
                variances[place] = variances.get(place, 0.0) + cell.value * (100 - cell.value) / queries
    return {place: _Z * math.sqrt(variance) for place, variance in variances.items()}


def _orders(sources: Mapping[str, Evidence], doubt: Mapping[Place, float]) -> dict[Place, _Order]:
    found = {}
    for by, evidence in sources.items():
        for name, column in product(evidence.centric, _SCORES):
            x_vlm, clip = (evidence.figure(row, f"{name} {column}") for row in ("x-vlm", "clip"))
            if x_vlm is None or clip is None:
                continue
            apart = round(x_vlm.mean - clip.mean, _DIGITS)
            near = abs(apart) <= doubt.get((by, name, column), -1.0)
            if not evidence.exact:
                formula = Formula.parse("[x-vlm] > [clip]", f"{name} {column}")
                near = formula.judge(evidence, seeded=False).status == "undecided"
            ahead = "X-VLM" if apart > 0 else "CLIP" if apart < 0 else "tie"
            found[by, name.lower(), column] = _Order(ahead, abs(apart), near)
    return found


def _relative(found: Mapping[Place, _Order], sources: Iterable[str], names: Iterable[str]) -> Table:
    rows = []
    for name, by in product(names, sources):
        cells = []
        for column in _SCORES:
            order = found.get((by, name.lower(), column))
            original = None if by == "original" else found.get(("original", name.lower(), column))
            if order is None:
                cells.append("–")
                continue
            mark = "" if original is None else " ✓" if order.ahead == original.ahead else " ✗"
            cells.append(f"{order.ahead} {'~' if order.near else ''}{order.apart:.2f}{mark}")
        if set(cells) != {"–"}:
            rows.append((name, by, *cells))
    return Table.of("Relative results", _FURTHER["relative"], ("collection", "source", *_SCORES), rows)


def _tree(found: Mapping[Place, _Order], sources: Mapping[str, Evidence], shows: Mapping[str, str]) -> Table:
    """Return of how many comparisons a statement holds, leaf by leaf, then up the tree; ``shows``: of all."""
    rows = []
    of_kind = {
        (by, kind): [(by, name.lower()) for name, shown in one.centric.items() if shown == kind]
        for by, one in sources.items()
        for kind in ("object", "scene")
    }

    def add(number: str, title: str, question: str, ways: Sequence[str], pairs: Pairs) -> None:
        cells = []
        for by in sources:
            columns = [name for name in _RECALLS if name.startswith(tuple(ways))]
            places = [((*a, name), (*b, name)) for a, b in pairs.get(by, ()) for name in columns]
            same = [found[a].ahead == found[b].ahead for a, b in places if a in found and b in found]
            sign, colour = ("✓", "right") if all(same) else ("◐", "orange") if any(same) else ("✗", "wrong")
            cell = Cell(f"{sign} {sum(same)} of {len(same)}", shade=0.35, colour=colour)
            cells.append(cell if same else Cell("–"))
        if any(cell.shade for cell in cells):
            rows.append([Cell(number), Cell(title, words=True), Cell(question, words=True), *cells])

    number_of = {name: number for number, name in enumerate(_LEAVES)}
    leaves = sorted(filter(shows.get, shows), key=lambda one: (shows[one], number_of.get(one.lower(), 99)))
    for (way, first), title in product((("t2i", 7), ("i2t", 12)), leaves):
        name = title.lower()
        question, others = "the original's order", [("original", name)]
        if ("original", name, f"{way} R@1") not in found:
            question = "the originals' orders on scene-centric collections"
            others = of_kind["original", "scene"]
        pairs = {by: [((by, name), one) for one in others] for by in sources if by != "original"}
        number = str(first + number_of[name]) if name in number_of else ""
        add(number, f"{_LEAVES.get(name, title)} ({way})", question, [way], pairs)
    for node in _FURTHER["nodes"]:
        if "kind" in node:
            pairs = {by: list(combinations(of_kind[by, node["kind"]], 2)) for by in sources}
        else:
            pairs = {by: list(product(of_kind[by, "scene"], of_kind[by, "object"])) for by in sources}
        add(node["number"], node["title"], node["question"], node["ways"], pairs)
    return Table("Up the tree", ("node", "", "is found again", *sources), rows, after=_FURTHER["tree"])
