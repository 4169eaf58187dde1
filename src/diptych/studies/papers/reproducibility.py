"""Hendriksen et al. (ECIR 2023): which of CLIP and X-VLM is ahead, in the originals, in the thesis, and here.

Figure 2.2: per direction and collection whether an original's order is found again (RQ1.1, RQ1.2), whether
collections of one kind have one order, and whether the order on scene-centric collections is that on object-centric
ones (RQ1.3). Claims count such comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product

from diptych.core.table import Cell, Table
from diptych.studies.compare import Further
from diptych.studies.evidence import Evidence
from diptych.studies.formulas import Finding, Formula
from diptych.studies.papers import judged
from diptych.studies.published import PublishedTable, document, published_table
from diptych.studies.study import Study
from diptych.studies.verdict import printed_by

_LISTS, _FURTHER = (document("reproducibility")[name] for name in ("lists", "further"))
_RECALLS, _SCORES = _LISTS["recalls"], _LISTS["scores"]
_WAYS, _KINDS = ("t2i", "i2t"), ("object", "scene")
_LEAVES = {name: (place, title) for place, (name, title) in enumerate(_FURTHER["leaves"].items())}
_DIGITS = 9  # of a difference: sums of the same recalls in another order are no order
_Z = 1.96

Orders = Mapping[tuple[str, str], tuple[str, float, bool]]
"""Of one source, by collection (in small letters) and column: who is ahead, or ``tie``; by how much; whether so many
queries cannot tell."""

Pairs = Mapping[str, list[tuple[str, str]]]
"""Of each source, the collections whose orders are compared."""


# Claims ----------------------------------------------------------------------------------------------


def larger_gains(evidence: Evidence) -> list[Finding]:
    """Judge X-VLM's gains over CLIP on MS COCO: most are above the original ones, that of i2t R@1 is the largest."""
    gains = {name: f"[x-vlm: coco {name}] / [clip: coco {name}]" for name in _RECALLS}
    larger = [f"{gain} > {gain.replace(':', '@original:')}" for gain in gains.values()]
    found = [Formula.parse(one).judge(evidence) for one in larger]
    best = gains.pop("i2t R@1")
    (largest,) = judged(evidence, [f"{best} > max({', '.join(gains.values())})"])
    return [
        _share("X-VLM's gains over CLIP on coco tend to be larger than originally", found, above=0.5),
        replace(largest, what="X-VLM's largest gain over CLIP on coco is that of i2t R@1"),
    ]


def found_again(
    evidence: Evidence, what: str, objects: Sequence[str], scenes: Sequence[str], source: str = ""
) -> list[Finding]:
    """Judge whether some orders on scene-centric collections, but not all, are those on object-centric ones."""
    found = []
    for one, other, name in product(objects, scenes, _RECALLS):
        here = f"[x-vlm: {one} {name}] - [clip: {one} {name}]"
        there = f"[x-vlm{source}: {other} {name}] - [clip{source}: {other} {name}]"
        found.append(Formula.parse(f"({here}) * ({there}) > 0").judge(evidence))
    return [_share(f"{what}, but not all", found, above=0, below=1)]


def odd_one_out(evidence: Evidence) -> list[Finding]:
    """Judge whether X-VLM is ahead in every recall on MS COCO, and CLIP on every other collection."""
    if len({name.lower() == "coco" for name in evidence.centric}) < 2:
        return [Finding.missing("coco is the odd one out", "coco", "another collection")]
    signs = {
        name: "[x-vlm] > [clip]" if name.lower() == "coco" else "[clip] > [x-vlm]"
        for name in evidence.centric
    }
    asked = [Formula.parse(sign, f"{name} {recall}") for name, sign in signs.items() for recall in _RECALLS]
    return [one.judge(evidence, len(asked)) for one in asked]


def _share(what: str, found: Sequence[Finding], above: float, below: float = math.inf) -> Finding:
    """Return whether the share of comparisons that hold is between two bounds, both excluded."""
    if not found:
        return Finding.missing(what, "a scene-centric and an object-centric collection")
    for one in found:
        if one.status == "not tested":
            return replace(one, what=what)
    statuses = [one.status for one in found]
    least, most = statuses.count("holds") / len(found), 1 - statuses.count("fails") / len(found)
    margin = min(least - above, below - most)
    fails = most <= above or least >= below
    detail = f"{statuses.count('holds')} of {len(found)} comparisons"
    return Finding(what, "holds" if margin > 0 else "fails" if fails else "undecided", detail, margin)


# Tables ----------------------------------------------------------------------------------------------


def orders(study: Study, evidence: Evidence) -> Further:
    """Return relative results per collection and up the tree, and what speaks against them."""
    tables = [published_table(study.paper.key, name) for name in ("table-2.1", "table-2.2")]
    numbers = {by: printed_by(tables, by) for by in ("original", "thesis")} | {"here": evidence}
    doubt = _doubt(tables)
    found = {by: _orders(one, by, doubt) for by, one in numbers.items()}
    sources = {by: of for by, of in found.items() if of or by != "here"}
    ours = {name.lower() for name in evidence.centric}
    printed = {**numbers["original"].centric, **numbers["thesis"].centric}
    shows = {name: printed[name] for name in _LEAVES if name not in ours} | dict(evidence.centric)
    centric = {by: numbers[by].centric for by in sources}
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
    return Further([_relative(sources, shows), _tree(sources, shows, centric)], remarks=remarks)


def _doubt(tables: Sequence[PublishedTable]) -> dict[tuple[str, str, str], float]:
    """Return how far apart two printed recalls of independent queries have to be, by source, collection and column."""
    variances: dict[tuple[str, str, str], float] = {}
    for row in (row for table in tables for row in table.rows):
        for column, cell in row.cells.items():
            if "R@" in column:
                queries = row.on.images if column.startswith("i2t") else row.on.captions
                place = row.on.by, row.on.dataset, column
                variances[place] = variances.get(place, 0.0) + cell.value * (100 - cell.value) / queries
    return {place: _Z * math.sqrt(variance) for place, variance in variances.items()}


def _orders(evidence: Evidence, by: str, doubt: Mapping[tuple[str, str, str], float]) -> Orders:
    found = {}
    for name, column in product(evidence.centric, _SCORES):
        first, second = (evidence.figure(row, f"{name} {column}") for row in ("x-vlm", "clip"))
        if first is None or second is None:
            continue
        apart = round(first.mean - second.mean, _DIGITS)
        if evidence.exact:
            near = abs(apart) <= doubt.get((by, name, column), -1.0)
        else:
            formula = Formula.parse("[x-vlm] > [clip]", f"{name} {column}")
            near = formula.judge(evidence, seeded=False).status == "undecided"
        ahead = "X-VLM" if apart > 0 else "CLIP" if apart < 0 else "tie"
        found[name.lower(), column] = (ahead, abs(apart), near)
    return found


def _relative(sources: Mapping[str, Orders], names: Iterable[str]) -> Table:
    rows = []
    for name, (source, found) in product(names, sources.items()):
        cells = []
        for place in ((name.lower(), column) for column in _SCORES):
            before = sources["original"].get(place) if source != "original" else None
            if place not in found:
                cells.append("–")
                continue
            ahead, apart, near = found[place]
            mark = "" if before is None else " ✓" if ahead == before[0] else " ✗"
            cells.append(f"{ahead} {'~' if near else ''}{apart:.2f}{mark}")
        if set(cells) != {"–"}:
            rows.append((name, source, *cells))
    return Table.of("Relative results", _FURTHER["relative"], ("collection", "source", *_SCORES), rows)


def _tree(
    sources: Mapping[str, Orders], shows: Mapping[str, str], centric: Mapping[str, Mapping[str, str]]
) -> Table:
    """Return of how many comparisons a statement holds, leaf by leaf, then up the tree; ``shows``: of all."""
    original, rows = sources["original"], []
    kinds: dict[
        str, dict[str, list[str]]
    ] = {}  # of each source the collections of each kind that have an order
    for by, found in sources.items():
        known = {name.lower(): kind for name, kind in centric[by].items()}
        there = [name for name in known if any(name == of for of, _ in found)]
        kinds[by] = {kind: [name for name in there if known[name] == kind] for kind in _KINDS}

    def add(number: str, title: str, question: str, ways: Sequence[str], pairs: Pairs, again: bool) -> None:
        cells = []
        columns = [name for name in _RECALLS if name.startswith(tuple(ways))]
        for by, found in sources.items():
            then = original if again else found
            places = [((a, name), (b, name)) for a, b in pairs.get(by, ()) for name in columns]
            same = [found[a][0] == then[b][0] for a, b in places if a in found and b in then]
            sign, colour = ("✓", "right") if all(same) else ("◐", "orange") if any(same) else ("✗", "wrong")
            cell = Cell(f"{sign} {sum(same)} of {len(same)}", shade=0.35, colour=colour)
            cells.append(cell if same else Cell("–"))
        if any(cell.shade for cell in cells):
            rows.append([Cell(number), Cell(title, words=True), Cell(question, words=True), *cells])

    for row, (way, kind) in enumerate(product(_WAYS, _KINDS)):
        leaves = [
            (_LEAVES.get(name.lower(), (99, name)), name.lower()) for name in shows if shows[name] == kind
        ]
        for (place, title), name in sorted(leaves, key=lambda leaf: leaf[0][0]):
            question, others = "the original's order", [name]
            if (name, f"{way} R@1") not in original:
                question = "the originals' orders on scene-centric collections"
                others = kinds["original"]["scene"]
            pairs = {by: [(name, one) for one in others] for by in sources if by != "original"}
            number = str(7 + 5 * (row // 2) + place) if name in _LEAVES else ""
            add(number, f"{title} ({way})", question, [way], pairs, again=True)
    for node in _FURTHER["nodes"]:
        pairs = {by: list(product(of["scene"], of["object"])) for by, of in kinds.items()}
        if "kind" in node:
            pairs = {by: list(combinations(of[node["kind"]], 2)) for by, of in kinds.items()}
        add(node["number"], node["title"], node["question"], node["ways"], pairs, again=False)
    return Table("Up the tree", ("node", "", "is found again", *sources), rows, after=_FURTHER["tree"])
