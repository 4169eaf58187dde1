"""What the numbers of thesis chapter 5 say besides: finer captions compared, drops, heat maps, chance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.table import Cell, Table
from diptych.studies.claims import lists_of
from diptych.studies.compare import Further
from diptych.studies.evidence import Evidence
from diptych.studies.published import document
from diptych.studies.study import Study
from diptych.studies.verdict import printed_by

if TYPE_CHECKING:
    from diptych.evaluation.stress import StressResult, StressRow

_LISTS = document("brittleness")["lists"]
_CAPTIONS = "captions"  # the row of table 5.1
_NEARLY_ALL = 0.9  # where this share of queries was changed, the drop over all is as good as that over those
_SIGNS = {"worse": " ↓", "better": " ↑", "": ""}
_FULL = 0.6  # the drop that is drawn in full colour


def granularity(study: Study, evidence: Evidence) -> Further:
    """Return a comparison of each pair of coarse and finer collections that was measured, and the definitions."""
    from diptych.analysis.granularity import choose_features

    tables = []
    for pair in lists_of(evidence)["pairs"]:
        folders = [evidence.kept.get(f"{name} {_CAPTIONS}", ()) for name in pair.values()]
        if all(folders):
            tables.append(_compared(study, pair.values(), [found[0] for found in folders]))
    rows = [
        (one.name, one.description, one.published_description or "not known") for one in choose_features()
    ]
    after = "Per caption. The printed adjectives and complement phrases are of no count of tags that was tried: they "
    after += "stand beside the right ones."
    return Further([*tables, Table.of("What is counted", after, ("feature", "counted", "printed"), rows)])


def _compared(study: Study, names: Iterable[str], folders: Sequence[Path]) -> Table:
    from diptych.analysis.granularity import Granularity, compare_granularity
    from diptych.analysis.granularity.tables import comparison_table

    compared = compare_granularity(*(Granularity.open(folder) for folder in folders))
    printed, shown, rows = printed_by(study.published, "thesis"), comparison_table(compared), []
    for row in shown.rows:
        feature = row[0].text
        places = [f"{name.lower()} {feature}" for name in names]
        known = [one.mean for place in places if (one := printed.figure(_CAPTIONS, place)) is not None]
        gain = f"{100 * (known[1] / known[0] - 1):+.1f}" if len(known) == 2 else ""
        rows.append((feature, row[1].line, row[2].line, gain, *(cell.text for cell in row[3:-1])))
    after = f"By the right definitions; {shown.after} {'; '.join(compared.notes)}."
    columns = (*shown.columns[:3], "printed %", *shown.columns[3:-1])
    return Table.of(shown.caption, after, columns, rows)


def _runs(evidence: Evidence) -> list[tuple[str, str, StressResult]]:
    """Return rows, collections and the runs of the suite behind them, of the first seed."""
    from diptych.evaluation.stress import StressResult

    found = []
    for row, name in product(evidence.figures, sorted(evidence.centric, key=str.lower)):
        folders = evidence.kept.get(f"{name} {row}", ())
        if folders and (folders[0] / StressResult.marker()).is_file():
            found.append((row, name, StressResult.open(folders[0])))
    return found


def _remarks(runs: Sequence[tuple[str, str, StressResult]]) -> list[str]:
    return [
        f"{row} on {name}: {perturbation} was left out: {why}"
        for row, name, result in runs
        for perturbation, why in result.left_out.items()
    ]


def drops(study: Study, evidence: Evidence) -> Further:
    """Return relative drops of the sum from text, and heat maps of them here and as printed."""
    runs = _runs(evidence)
    found = {(row, name): {one.name: one for one in result.rows} for row, name, result in runs}
    rows = []
    for perturbation in _LISTS["perturbations"]:
        shares = [of[perturbation].changed_share for of in found.values() if perturbation in of]
        if shares:
            ends = dict.fromkeys(f"{100 * one:.0f}" for one in (min(shares), max(shares)))
            cells = (_drop(of.get(perturbation)) for of in found.values())
            rows.append((perturbation, f"{'–'.join(ends)} %", *cells))
    after = (
        "What a perturbation costs of the sum R@1 + R@5 + R@10 from text, relative to the clean one, with 95 % "
        "intervals (paired bootstrap over images with their captions). ↓ worse, ↑ better: p ≤ 0.05 by random swaps, "
        "Holm over the perturbations of the run. A folder of diptych analyse stress with every query is kept beside "
        "each row. Changed: captions that could be; in brackets the change over those alone, where fewer than 90 % "
        "were."
    )
    columns = ("perturbation", "changed", *(f"{row}, {name}" for row, name in found))
    maps: list[Any] = [
        _heat_map("here", study, evidence, _LISTS["perturbations"]),
        _heat_map(
            "printed", study, printed_by(study.published, "thesis"), [*_LISTS["shuffles"], *_LISTS["means"]]
        ),
    ]
    return Further(
        [Table.of("Drops", after, columns, rows)] if rows else [],
        [one for one in maps if len(one.columns) > 1],
        _remarks(runs),
        "Heat map",
        "Change of the sum R@1 + R@5 + R@10 from text, in per cent of the clean one: orange where it drops, full "
        "colour at 60 %; blue where it rises. Printed: kinds as in Table 5.3; here: all thirteen perturbations.",
    )


def _drop(row: StressRow | None) -> str:
    from diptych.evaluation.stress.queries import RSUM

    if row is None:
        return "–"
    drop, changed = row.drop(RSUM), row.changed_drops.get(RSUM)
    if row.sizes["unchanged"] == 1:
        return "0"  # no query moves; a mean of 0 of queries that do is another thing
    if drop.relative is None:
        return f"{drop.difference:+.1f} of 0{_SIGNS[drop.verdict]}"
    ends = ""
    if drop.relative_low is not None and drop.relative_high is not None:
        ends = f" ({100 * drop.relative_low:+.1f} to {100 * drop.relative_high:+.1f})"
    if changed is not None and changed.relative is not None and row.changed_share < _NEARLY_ALL:
        ends += f" [{100 * changed.relative:+.1f}]"
    return f"{100 * drop.relative:+.1f} %{ends}{_SIGNS[drop.verdict]}"


def _heat_map(title: str, study: Study, evidence: Evidence, kinds: Sequence[str]) -> Table:
    """Return a row per perturbation, a column per row and collection."""
    changes = {}
    for row, name in product(evidence.figures, sorted(evidence.centric, key=str.lower)):
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
    runs, rows = _runs(evidence), []
    for row, name, result in runs:
        for group in _LISTS["groups"] if "t2i" in result.agreement else ():
            shares = [one.sizes[group] for one in result.rows if one.direction == "t2i"]
            found, chance = getattr(result.agreement["t2i"], group), chance_similarity(shares)
            of = f"{100 * min(shares):.1f}–{100 * max(shares):.1f} %"
            numbers = ("–" if one is None else f"{one:.4f}" for one in (found, chance))
            ratio = "–" if found is None or not chance else f"{found / chance:.1f} ×"
            rows.append((row, name, group, of, *numbers, ratio))
    after = (
        "How large the sets are decides most of a similarity: two sets of 80 % of the queries share 67 % of their "
        "union if they are drawn independently. So that the unchanged have the highest similarity says first of all "
        "that most queries stay. Chance: the same shares of queries, drawn independently."
    )
    columns = ("row", "collection", "group", "share of queries", "similarity", "by chance", "ratio")
    tables = [Table.of("Against chance", after, columns, rows)] if rows else []
    return Further(tables, remarks=_remarks(runs))


def chance_similarity(shares: Sequence[float]) -> float | None:
    """Return the mean Jaccard similarity of independent sets with these shares of all queries, ``ab / (a + b − ab)``,
    over all pairs that are not both empty; None where there is no such pair."""
    found = [
        one * other / (one + other - one * other) for one, other in combinations(shares, 2) if one + other
    ]
    return sum(found) / len(found) if found else None
