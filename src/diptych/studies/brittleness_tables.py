"""What tables 5.3 and 5.4 are shown with: drops with intervals, and agreements that chance alone would give."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.studies.brittleness_rows import THIRTEEN
from diptych.studies.evidence import Evidence
from diptych.studies.further import FurtherTable

if TYPE_CHECKING:
    from diptych.evaluation.stress import StressResult, StressRow

_SIGNS = {"worse": " ↓", "better": " ↑", "": ""}


def runs_of(evidence: Evidence) -> Iterator[tuple[str, str, StressResult]]:
    """Row, collection and the run of the suite behind them, of the first seed."""
    from diptych.evaluation.stress import StressResult
    from diptych.evaluation.stress.result import MARKER

    for row in evidence.figures:
        for name in sorted(evidence.centric, key=str.lower):  # a collection before its finer one
            folders: list[Path] = list(evidence.kept.get(f"{name} {row}", ()))
            if folders and (folders[0] / MARKER).is_file():
                yield row, name, StressResult.open(folders[0])


def remarks_on_runs(evidence: Evidence) -> list[str]:
    """What could not be perturbed, and why."""
    return [
        f"{row} on {name}: {perturbation} was left out: {why}"
        for row, name, result in runs_of(evidence)
        for perturbation, why in result.left_out.items()
    ]


def drop_tables(evidence: Evidence) -> list[FurtherTable]:
    """Relative drops of the sum from text, perturbation by perturbation; nothing where nothing was run."""
    runs = list(runs_of(evidence))
    if not runs:
        return []
    cells = {(row, name): {one.name: one for one in result.rows} for row, name, result in runs}
    rows = []
    for perturbation in THIRTEEN:
        share = [of[perturbation].changed_share for of in cells.values() if perturbation in of]
        if share:
            ends = dict.fromkeys(f"{100 * one:.0f}" for one in (min(share), max(share)))
            found = (_cell(of.get(perturbation)) for of in cells.values())
            rows.append((perturbation, f"{'–'.join(ends)} %", *found))
    return [
        FurtherTable(
            "Drops",
            "What a perturbation costs of the sum R@1 + R@5 + R@10 from text, relative to the clean one, with 95 % "
            "intervals (paired bootstrap over pictures with their captions). ↓ worse, ↑ better: p ≤ 0.05 by random "
            "swaps, Holm over the perturbations of the run. A folder of diptych stress with every query is kept "
            "beside each row. Changed: captions that could be; in brackets the change over those alone, where fewer "
            "than 90 % were.",
            ("perturbation", "changed", *(f"{row}, {name}" for row, name in cells)),
            tuple(rows),
        )
    ]


def _cell(row: StressRow | None) -> str:
    from diptych.evaluation.stress.queries import RSUM
    from diptych.evaluation.stress.summary_text import NEARLY_ALL

    if row is None:
        return "–"
    drop = row.drop(RSUM)
    if row.sizes["unchanged"] == 1:
        return "0"  # no query moves; a mean of 0 of queries that do is another thing
    if drop.relative is None:
        return f"{drop.difference:+.1f} of 0{_SIGNS[drop.verdict]}"
    ends = ""
    if drop.relative_low is not None and drop.relative_high is not None:
        ends = f" ({100 * drop.relative_low:+.1f} to {100 * drop.relative_high:+.1f})"
    changed = row.changed_drops.get(RSUM)
    if changed is not None and changed.relative is not None and row.changed_share < NEARLY_ALL:
        ends += f" [{100 * changed.relative:+.1f}]"
    return f"{100 * drop.relative:+.1f} %{ends}{_SIGNS[drop.verdict]}"


def agreement_tables(evidence: Evidence) -> list[FurtherTable]:
    """Similarities beside those of sets as large that have nothing to do with each other."""
    rows = []
    for row, name, result in runs_of(evidence):
        agreement = result.agreement.get("t2i")
        if agreement is None:
            continue
        for group in ("decreased", "increased", "unchanged"):
            shares = [one.sizes[group] for one in result.rows if one.direction == "t2i"]
            found, chance = getattr(agreement, group), chance_similarity(shares)
            rows.append(
                (
                    row,
                    name,
                    group,
                    f"{100 * min(shares):.1f}–{100 * max(shares):.1f} %",
                    "–" if found is None else f"{found:.4f}",
                    "–" if chance is None else f"{chance:.4f}",
                    "–" if found is None or not chance else f"{found / chance:.1f} ×",
                )
            )
    if not rows:
        return []
    return [
        FurtherTable(
            "Against chance",
            "How large the sets are decides most of a similarity: two sets of 80 % of the queries share 67 % of "
            "their union if they are drawn independently. So that the unchanged have the highest similarity says "
            "first of all that most queries stay. Chance: the same shares of queries, drawn independently.",
            ("row", "collection", "group", "share of queries", "similarity", "by chance", "ratio"),
            tuple(rows),
        )
    ]


def chance_similarity(shares: list[float]) -> float | None:
    """Mean Jaccard similarity of independent sets with these shares of all queries, ``ab / (a + b − ab)``, over
    all pairs that are not both empty; None where there is no such pair."""
    found = [
        one * other / (one + other - one * other) for one, other in combinations(shares, 2) if one + other
    ]
    return sum(found) / len(found) if found else None
