"""Hendriksen et al. (2024): claims about all encoders and collections that were measured, and further tables.

What has no numbers is left out; the bag of words is a control, and no encoder that a claim is about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

from diptych.analysis.granularity import Granularity, choose_features, compare_granularity
from diptych.analysis.granularity.tables import comparison_table
from diptych.core.table import Cell, Table
from diptych.evaluation.stress import StressResult, StressRow
from diptych.evaluation.stress.queries import RSUM
from diptych.studies import claims
from diptych.studies.compare import Further
from diptych.studies.evidence import Evidence, Figure
from diptych.studies.formulas import Finding, Formula
from diptych.studies.published import document, printed_by
from diptych.studies.study import Study

_LISTS, _NOTES = (document("brittleness")[name] for name in ("lists", "further"))
_NEEDED = "an encoder measured on every collection that is compared"
_NEARLY_ALL = 0.9  # where this share of queries was changed, the drop over all is as good as that over those
_SIGNS = {"worse": " ↓", "better": " ↑", "": ""}
_FULL = 0.6  # the drop that is drawn in full colour

Each = Mapping[str, Any]
"""Variable → the name of a list, or its members."""


def _measured(evidence: Evidence, text: str, each: Each) -> list[str]:
    """Return a text for each combination of variables that has numbers for all its places."""
    rows = [row for row in evidence.figures if row != "bag"]
    named = claims.combinations(each, {**_LISTS, **claims.lists_of(evidence), "rows": rows})
    places = {one: Formula.parse(f"{one} > 0").places for one in (text.format(**values) for values in named)}
    return [one for one, of in places.items() if all(evidence.figure(*place) is not None for place in of)]


def compared(evidence: Evidence, formula: str, each: Each) -> list[str] | list[Finding]:
    """Return a formula for each combination of variables that was measured."""
    formulas = _measured(evidence, formula, each)
    return formulas or [Finding.missing("comparisons of encoders", _NEEDED)]


def averaged(
    evidence: Evidence, what: str, term: str, each: Each, of: Each | None = None, sign: str = ">"
) -> list[Finding]:
    """Judge whether the mean of a term over ``each`` is above or below 0, for every combination of ``of``."""
    found, named = [], {what.format(**values): values for values in claims.combinations(of or {}, _LISTS)}
    for name, values in named.items():
        terms = _measured(evidence, term, {**each, **{key: [value] for key, value in values.items()}})
        if terms:
            formula = replace(Formula.parse(f"mean({', '.join(terms)}) {sign} 0"), text=name)
            found.append(formula.judge(evidence, len(named)))
        else:
            found.append(Finding.missing(name, _NEEDED))
    return found


def finer_drops(evidence: Evidence, what: str, term: str, flickr30k: bool) -> list[Finding]:
    """Judge whether relative drops are smaller with finer captions, on average: Flickr30k's, or all others'.

    All thirteen perturbations are compared where they were run, else the kinds that are printed.
    """
    known = claims.lists_of(evidence)["pairs"]
    pairs = [one for one in known if (one["coarse"].lower() == "flickr30k") == flickr30k]
    each = {"row": "rows", "pair": pairs}
    thirteen = averaged(evidence, what, term, each, {"kind": "perturbations"})
    is_whole = all(one.status != "not tested" for one in thirteen)
    return thirteen if is_whole else averaged(evidence, what, term, each, {"kind": "kinds"})


# Further tables and heat maps ------------------------------------------------------------------------


def granularity(study: Study, evidence: Evidence) -> Further:
    """Compare each pair of coarse and finer collections, and define the features."""
    printed, tables = printed_by(study.published, "thesis"), []
    for pair in claims.lists_of(evidence)["pairs"]:
        names = pair.values()
        found = compare_granularity(
            *(Granularity.open(evidence.kept[f"{name} captions"][0]) for name in names)
        )
        shown, rows = comparison_table(found), []
        for feature, difference, relative, *sizes, _ in shown.rows:
            coarse, fine = (printed.figure("captions", f"{name.lower()} {feature.text}") for name in names)
            gain = f"{100 * (fine.mean / coarse.mean - 1):+.1f}" if coarse and fine else ""
            rows.append((feature.text, difference.line, relative.line, gain, *(one.text for one in sizes)))
        after = f"By the right definitions; {shown.after} {'; '.join(found.notes)}."
        columns = (*shown.columns[:3], "printed %", *shown.columns[3:-1])
        tables.append(Table.of(shown.caption, after, columns, rows))
    columns, features = ("feature", "counted", "printed"), choose_features()
    counted = [(one.name, one.description, one.published_description or "not known") for one in features]
    return Further([*tables, Table.of("What is counted", _NOTES["features"], columns, counted)])


def perturbed(study: Study, evidence: Evidence) -> Further:
    """Return relative drops of the sum from text, and heat maps of them here and as printed."""
    runs, remarks = _stress_runs(evidence)
    of_runs, rows = [{row.name: row for row in run.rows} for run in runs.values()], []
    for name in _LISTS["perturbations"]:
        found = [of_run.get(name) for of_run in of_runs]
        shares = [row.changed_share for row in found if row is not None]
        if shares:
            ends = dict.fromkeys(f"{100 * share:.0f}" for share in (min(shares), max(shares)))
            rows.append((name, f"{'–'.join(ends)} %", *map(_drop, found)))
    columns = ("perturbation", "changed", *(f"{row}, {name}" for row, name in runs))
    drops = [Table.of("Drops", _NOTES["drops"], columns, rows)] if rows else []
    maps = [
        _heat_map("here", study, evidence, _LISTS["perturbations"]),
        _heat_map("printed", study, printed_by(study.published, "thesis"), _LISTS["kinds"]),
    ]
    return Further(drops, [one for one in maps if len(one.columns) > 1], remarks, "Heat map", _NOTES["map"])


def _stress_runs(evidence: Evidence) -> tuple[dict[tuple[str, str], StressResult], list[str]]:
    """Return the runs of the suite behind rows and collections, of the first seed, and what they left out."""
    runs, remarks = {}, []
    for row, name in product(evidence.figures, sorted(evidence.centric, key=str.lower)):
        folders = evidence.kept.get(f"{name} {row}", ())
        if folders and (folders[0] / StressResult.marker()).is_file():
            runs[row, name] = StressResult.open(folders[0])
            left_out = runs[row, name].left_out
            remarks += [f"{row} on {name}: {one} was left out: {why}" for one, why in left_out.items()]
    return runs, remarks


def _drop(row: StressRow | None) -> str:
    if row is None:
        return "–"
    if row.sizes["unchanged"] == 1:
        return "0"  # no query moves; a mean of 0 of queries that do is another thing
    drop, changed = row.drop(RSUM), row.changed_drops.get(RSUM)
    sign = _SIGNS[drop.verdict]
    if drop.relative is None:
        return f"{drop.difference:+.1f} of 0{sign}"
    text = f"{100 * drop.relative:+.1f} %"
    if drop.relative_low is not None and drop.relative_high is not None:
        text += f" ({100 * drop.relative_low:+.1f} to {100 * drop.relative_high:+.1f})"
    if changed is not None and changed.relative is not None and row.changed_share < _NEARLY_ALL:
        text += f" [{100 * changed.relative:+.1f}]"
    return text + sign


def _heat_map(title: str, study: Study, evidence: Evidence, kinds: Sequence[str]) -> Table:
    """Return a row per perturbation, a column per row and collection."""
    changes = {}
    for row, name in product(evidence.figures, sorted(evidence.centric, key=str.lower)):
        clean, *sums = (evidence.figure(row, f"{name} {kind}") for kind in ("none", *kinds))
        if clean is not None and clean.mean > 0 and any(sums):
            changes[row, name] = [_changed(one, clean) for one in sums]
    rows = [[Cell(kind), *cells] for kind, *cells in zip(kinds, *changes.values(), strict=True)]
    owners = Counter(study.row(row).label for row, _ in changes)
    columns = ("perturbation", *(name for _, name in changes))
    return Table(f"Change, {title}", columns, rows, [("", 1), *owners.items()])


def _changed(figure: Figure | None, clean: Figure) -> Cell:
    change = None if figure is None else figure.mean / clean.mean - 1
    if not change:
        return Cell("–" if change is None else "0", value=change)
    shade, colour = min(1.0, abs(change) / _FULL), "orange" if change < 0 else "blue"
    return Cell.number(100 * change, 1, sign="+", shade=shade, colour=colour)


def agreement(study: Study, evidence: Evidence) -> Further:
    """Compare similarities with those of independent sets of the same sizes."""
    runs, remarks = _stress_runs(evidence)
    rows = []
    for (row, name), result in runs.items():
        for group in _LISTS["groups"] if "t2i" in result.agreement else ():
            shares = [one.sizes[group] for one in result.rows if one.direction == "t2i"]
            found, chance = getattr(result.agreement["t2i"], group), chance_similarity(shares)
            of = f"{100 * min(shares):.1f}–{100 * max(shares):.1f} %"
            ratio = "–" if found is None or not chance else f"{found / chance:.1f} ×"
            rows.append((row, name, group, of, *(Cell.number(one, 4).text for one in (found, chance)), ratio))
    columns = ("row", "collection", "group", "share of queries", "similarity", "by chance", "ratio")
    tables = [Table.of("Against chance", _NOTES["chance"], columns, rows)] if rows else []
    return Further(tables, remarks=remarks)


def chance_similarity(shares: Sequence[float]) -> float | None:
    """Return the mean Jaccard similarity of independent sets with these shares of all queries, ``ab / (a + b − ab)``,
    over all pairs that are not both empty; None where there is no such pair."""
    found = [a * b / (a + b - a * b) for a, b in combinations(shares, 2) if a + b]
    return sum(found) / len(found) if found else None
