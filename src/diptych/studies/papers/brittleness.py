"""Hendriksen et al. (2024): claims about all encoders and collections that were measured, and tables besides.

What has no numbers is left out; the bag of words is a control, and no encoder that a claim is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, product
from typing import TYPE_CHECKING, Any

from diptych.core.table import Cell, Table
from diptych.studies import claims
from diptych.studies.compare import Further
from diptych.studies.evidence import Evidence
from diptych.studies.formulas import Finding, Formula
from diptych.studies.papers import judged
from diptych.studies.published import document
from diptych.studies.study import Study
from diptych.studies.verdict import printed_by

if TYPE_CHECKING:
    from diptych.evaluation.stress import StressResult, StressRow

_LISTS, _NOTES = (document("brittleness")[name] for name in ("lists", "further"))
_KINDS = [*_LISTS["shuffles"], *_LISTS["means"]]
_GAIN = "[{row}: {pair.fine} {column}] / [{row}: {pair.coarse} {column}]"
_NEEDED = "an encoder measured on every collection that is compared"
_NEARLY_ALL = 0.9  # where this share of queries was changed, the drop over all is as good as that over those
_SIGNS = {"worse": " ↓", "better": " ↑", "": ""}
_FULL = 0.6  # the drop that is drawn in full colour


def _there(evidence: Evidence, text: str, **each: str | Sequence[Any]) -> list[str]:
    """Return a text for each encoder and combination of variables that has numbers for all its places."""
    rows = [row for row in evidence.figures if row != "bag"]
    named = claims.combinations({"row": rows, **each}, {**_LISTS, **claims.lists_of(evidence)})
    places = {one: Formula.parse(f"{one} > 0").places for one in (text.format(**values) for values in named)}
    return [one for one, of in places.items() if all(evidence.figure(*place) is not None for place in of)]


def _judged(evidence: Evidence, formulas: Iterable[str]) -> list[Finding]:
    return judged(evidence, formulas) or [Finding.missing("comparisons of encoders", _NEEDED)]


def _means(evidence: Evidence, terms: Mapping[str, Sequence[str]], sign: str) -> list[Finding]:
    """Judge whether means of terms are above or below 0, by what that says in words."""
    there = {what: f"mean({', '.join(of)}) {sign} 0" for what, of in terms.items() if of}
    found = [Formula.parse(one).judge(evidence, len(terms)) for one in there.values()]
    named = [replace(one, what=what) for one, what in zip(found, there, strict=True)]
    return [*named, *(Finding.missing(what, _NEEDED) for what in terms if what not in there)]


def finer_raises(evidence: Evidence) -> list[Finding]:
    """Judge whether finer captions raise R@1, of each encoder in each direction."""
    return _judged(evidence, _there(evidence, f"{_GAIN} > 1", pair="pairs", column="r@1"))


def text_gains_more(evidence: Evidence) -> list[Finding]:
    """Judge whether the mean relative gain in R@1 by finer captions is larger from text than from images."""
    term = " - ".join(_GAIN.replace("{column}", column) for column in ("t2i R@1", "i2t R@1"))
    what = "finer captions raise R@1 more from text than from images, on average"
    return _means(evidence, {what: _there(evidence, term, pair="pairs")}, ">")


def named_gains(evidence: Evidence, printed: str) -> list[Finding]:
    """Judge whether mean relative gains are those that the text names, to half a per cent."""
    findings = []
    for column, gain, names in _LISTS[printed]:
        places = product(_LISTS["models"], names)
        gains = [
            f"[{one['key']}: {name}-fg {column}] / [{one['key']}: {name} {column}]" for one, name in places
        ]
        what = f"finer captions raise {column} on {' and '.join(names)} by {100 * gain:.2f} % on average"
        formula = f"{1 + gain - 0.005:.4f} <= mean({', '.join(gains)}) <= {1 + gain + 0.005:.4f}"
        findings.append(replace(judged(evidence, [formula])[0], what=what))
    return findings


def below(
    evidence: Evidence, lower: Sequence[str], higher: Sequence[str], mean: bool = False
) -> list[Finding]:
    """Judge whether columns are below others: on each collection, or in the mean share of clean sums."""
    text = "[{row}: {name} {low}] < [{row}: {name} {high}]"
    if mean:
        text = "([{row}: {name} {low}] - [{row}: {name} {high}]) / [{row}: {name} none]"
    there = {}
    for low, high in product(lower, higher):
        if low != high:
            found = _there(evidence, text, name="collections", low=[low], high=[high])
            there[f"{low} is below {high}, on average"] = found
    return _means(evidence, there, "<") if mean else _judged(evidence, chain(*there.values()))


def finer_drops(evidence: Evidence, flickr30k: bool) -> list[Finding]:
    """Judge whether mean relative drops are smaller with finer captions: Flickr30k's, or all others.

    All thirteen perturbations are compared where they were run, else the kinds that are printed.
    """
    fine = "[{row}: {pair.fine} {kind}] / [{row}: {pair.fine} none]"
    term = f"{fine} - {fine.replace('fine', 'coarse')}"
    known = claims.lists_of(evidence)["pairs"]
    pairs = [one for one in known if (one["coarse"].lower() == "flickr30k") == flickr30k]
    thirteen, kinds = (
        {f"{one} costs less if finer": _there(evidence, term, pair=pairs, kind=[one]) for one in of}
        for of in (_LISTS["perturbations"], _KINDS)
    )
    return _means(evidence, thirteen if all(thirteen.values()) else kinds, ">")


# Tables and heat maps besides ------------------------------------------------------------------------


def granularity(study: Study, evidence: Evidence) -> Further:
    """Return a comparison of each pair of coarse and finer collections that was measured, and the definitions."""
    from diptych.analysis.granularity import Granularity, choose_features, compare_granularity
    from diptych.analysis.granularity.tables import comparison_table

    printed, tables = printed_by(study.published, "thesis"), []
    for pair in claims.lists_of(evidence)["pairs"]:
        folders = [evidence.kept.get(f"{name} captions", ()) for name in pair.values()]
        if not all(folders):
            continue
        compared = compare_granularity(*(Granularity.open(found[0]) for found in folders))
        shown, rows = comparison_table(compared), []
        for feature, difference, relative, *sizes, _ in shown.rows:
            coarse, fine = (
                printed.figure("captions", f"{name.lower()} {feature.text}") for name in pair.values()
            )
            gain = f"{100 * (fine.mean / coarse.mean - 1):+.1f}" if coarse and fine else ""
            rows.append((feature.text, difference.line, relative.line, gain, *(one.text for one in sizes)))
        after = f"By the right definitions; {shown.after} {'; '.join(compared.notes)}."
        columns = (*shown.columns[:3], "printed %", *shown.columns[3:-1])
        tables.append(Table.of(shown.caption, after, columns, rows))
    columns, rows = ("feature", "counted", "printed"), []
    for one in choose_features():
        rows.append((one.name, one.description, one.published_description or "not known"))
    return Further([*tables, Table.of("What is counted", _NOTES["features"], columns, rows)])


def perturbed(study: Study, evidence: Evidence) -> Further:
    """Return relative drops of the sum from text, and heat maps of them here and as printed."""
    runs, remarks = _stress_runs(evidence)
    rows = []
    for name in _LISTS["perturbations"]:
        found = [next((one for one in run.rows if one.name == name), None) for run in runs.values()]
        shares = [one.changed_share for one in found if one is not None]
        if shares:
            ends = dict.fromkeys(f"{100 * one:.0f}" for one in (min(shares), max(shares)))
            rows.append((name, f"{'–'.join(ends)} %", *map(_drop, found)))
    columns = ("perturbation", "changed", *(f"{row}, {name}" for row, name in runs))
    printed = printed_by(study.published, "thesis")
    here = _heat_map("here", study, evidence, _LISTS["perturbations"])
    maps = [here, _heat_map("printed", study, printed, _KINDS)]
    return Further(
        [Table.of("Drops", _NOTES["drops"], columns, rows)] if rows else [],
        [one for one in maps if len(one.columns) > 1],
        remarks,
        "Heat map",
        _NOTES["map"],
    )


def _places(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Return rows with collections, in the order of columns."""
    return product(evidence.figures, sorted(evidence.centric, key=str.lower))


def _stress_runs(evidence: Evidence) -> tuple[dict[tuple[str, str], StressResult], list[str]]:
    """Return the runs of the suite behind rows and collections, of the first seed, and what they left out."""
    from diptych.evaluation.stress import StressResult

    runs, remarks = {}, []
    for row, name in _places(evidence):
        folders = evidence.kept.get(f"{name} {row}", ())
        if folders and (folders[0] / StressResult.marker()).is_file():
            runs[row, name] = StressResult.open(folders[0])
            left_out = runs[row, name].left_out
            remarks += [f"{row} on {name}: {one} was left out: {why}" for one, why in left_out.items()]
    return runs, remarks


def _drop(row: StressRow | None) -> str:
    from diptych.evaluation.stress.queries import RSUM

    if row is None:
        return "–"
    drop, changed = row.drop(RSUM), row.changed_drops.get(RSUM)
    if row.sizes["unchanged"] == 1:
        return "0"  # no query moves; a mean of 0 of queries that do is another thing
    if drop.relative is None:
        return f"{drop.difference:+.1f} of 0{_SIGNS[drop.verdict]}"
    text = f"{100 * drop.relative:+.1f} %"
    if drop.relative_low is not None and drop.relative_high is not None:
        text += f" ({100 * drop.relative_low:+.1f} to {100 * drop.relative_high:+.1f})"
    if changed is not None and changed.relative is not None and row.changed_share < _NEARLY_ALL:
        text += f" [{100 * changed.relative:+.1f}]"
    return text + _SIGNS[drop.verdict]


def _heat_map(title: str, study: Study, evidence: Evidence, kinds: Sequence[str]) -> Table:
    """Return a row per perturbation, a column per row and collection."""
    changes = {}
    for row, name in _places(evidence):
        clean, *sums = (evidence.figure(row, f"{name} {kind}") for kind in ("none", *kinds))
        if clean is not None and clean.mean > 0 and any(sums):
            changes[row, name] = [None if one is None else one.mean / clean.mean - 1 for one in sums]
    rows = [[Cell(kind), *map(_changed, line)] for kind, *line in zip(kinds, *changes.values(), strict=True)]
    owners = [study.row(row).label for row, _ in changes]
    groups = [("", 1), *((owner, owners.count(owner)) for owner in dict.fromkeys(owners))]
    return Table(f"Change, {title}", ("perturbation", *(name for _, name in changes)), rows, groups)


def _changed(change: float | None) -> Cell:
    if not change:
        return Cell("–" if change is None else "0", value=change)
    shade, colour = min(1.0, abs(change) / _FULL), "orange" if change < 0 else "blue"
    return Cell.number(100 * change, 1, sign="+", shade=shade, colour=colour)


def agreement(study: Study, evidence: Evidence) -> Further:
    """Return similarities beside those of sets as large that have nothing to do with each other."""
    runs, remarks = _stress_runs(evidence)
    rows = []
    for (row, name), result in runs.items():
        for group in _LISTS["groups"] if "t2i" in result.agreement else ():
            shares = [one.sizes[group] for one in result.rows if one.direction == "t2i"]
            found, chance = getattr(result.agreement["t2i"], group), chance_similarity(shares)
            of = f"{100 * min(shares):.1f}–{100 * max(shares):.1f} %"
            ratio = "–" if found is None or not chance else f"{found / chance:.1f} ×"
            numbers = (Cell.number(one, 4).text for one in (found, chance))
            rows.append((row, name, group, of, *numbers, ratio))
    columns = ("row", "collection", "group", "share of queries", "similarity", "by chance", "ratio")
    tables = [Table.of("Against chance", _NOTES["chance"], columns, rows)] if rows else []
    return Further(tables, remarks=remarks)


def chance_similarity(shares: Sequence[float]) -> float | None:
    """Return the mean Jaccard similarity of independent sets with these shares of all queries, ``ab / (a + b − ab)``,
    over all pairs that are not both empty; None where there is no such pair."""
    found = [a * b / (a + b - a * b) for a, b in combinations(shares, 2) if a + b]
    return sum(found) / len(found) if found else None
