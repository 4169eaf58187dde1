"""Hendriksen et al. (2024): further tables and heat maps."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product

from diptych.analysis.granularity.compare import compare_granularity
from diptych.analysis.granularity.features import choose_features
from diptych.analysis.granularity.result import Granularity, comparison_table
from diptych.core.table import Cell, Table
from diptych.evaluation.stress.queries import RSUM
from diptych.evaluation.stress.result import StressResult, StressRow
from diptych.evaluation.stress.tables import percent
from diptych.studies.claims import lists_of
from diptych.studies.compare import Further
from diptych.studies.evidence import Evidence
from diptych.studies.published import document, printed_by
from diptych.studies.study import Study

_LISTS, _NOTES = (document("brittleness")[name] for name in ("lists", "further"))
_NEARLY_ALL = 0.9  # where this share of queries was changed, the drop over all is as good as that over those
_SIGNS = {"worse": " ↓", "better": " ↑", "": ""}


def granularity(study: Study, evidence: Evidence) -> Further:
    """Compare each pair of coarse and finer collections, and define the features."""
    printed, tables = printed_by(study.published, "thesis"), []
    for pair in lists_of(evidence)["pairs"]:
        names = pair.values()
        found = compare_granularity(*(Granularity.open(evidence.kept[f"{one} captions"][0]) for one in names))
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
    rows = []
    for name in _LISTS["perturbations"]:
        found = [next((row for row in run.rows if row.name == name), None) for run in runs.values()]
        if shares := [row.changed_share for row in found if row is not None]:
            ends = dict.fromkeys(f"{100 * share:.0f}" for share in (min(shares), max(shares)))
            rows.append((name, f"{'–'.join(ends)} %", *map(_drop, found)))
    columns = ("perturbation", "changed", *(f"{row}, {name}" for row, name in runs))
    tables = [Table.of("Drops", _NOTES["drops"], columns, rows)] if rows else []
    here = _heat_map("here", study, evidence, _LISTS["perturbations"])
    printed = _heat_map("printed", study, printed_by(study.published, "thesis"), _LISTS["kinds"])
    maps = [one for one in (here, printed) if len(one.columns) > 1]
    return Further(tables, maps, remarks, "Heat map", _NOTES["map"])


def _stress_runs(evidence: Evidence) -> tuple[dict[tuple[str, str], StressResult], list[str]]:
    runs = {
        (row, name): StressResult.open(folder)
        for row, name in product(evidence.figures, sorted(evidence.centric, key=str.lower))
        for folder in evidence.kept.get(f"{name} {row}", ())[:1]
        if (folder / StressResult.marker()).is_file()
    }
    left_out = [(place, *one) for place, run in runs.items() for one in run.left_out.items()]
    return runs, [f"{row} on {name}: {one} was left out: {why}" for (row, name), one, why in left_out]


def _drop(row: StressRow | None) -> str:
    if row is None or row.sizes["unchanged"] == 1:
        return "–" if row is None else "0"  # no query moves; a mean of 0 of queries that do is another thing
    drop, changed = row.drop(RSUM), row.changed_drops.get(RSUM)
    whole = percent(drop.relative, drop.relative_low, drop.relative_high)
    text = f"{drop.difference:+.1f} of 0" if drop.relative is None else f"{whole.text} % ({whole.note})"
    if changed is not None and changed.relative is not None and row.changed_share < _NEARLY_ALL:
        text += f" [{100 * changed.relative:+.1f}]"
    return text + _SIGNS[drop.verdict]


def _heat_map(title: str, study: Study, evidence: Evidence, kinds: Sequence[str]) -> Table:
    places = product(evidence.figures, sorted(evidence.centric, key=str.lower))
    clean = {(row, name): evidence.figure(row, f"{name} none") for row, name in places}
    means = {place: figure.mean for place, figure in clean.items() if figure and figure.mean > 0}
    rows = []
    for kind in kinds:
        found = [(evidence.figure(row, f"{name} {kind}"), mean) for (row, name), mean in means.items()]
        shares = [figure.mean / mean - 1 if figure else None for figure, mean in found]
        rows.append([Cell(kind), *(percent(share, greatest=0.6) for share in shares)])
    owners = Counter(study.row(row).label for row, _ in means)
    columns = ("perturbation", *(name for _, name in means))
    return Table(f"Change, {title}", columns, rows, [("", 1), *owners.items()])


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
    """Return the mean Jaccard similarity of pairs of independent sets with these shares, not both 0, of all queries."""
    found = [a * b / (a + b - a * b) for a, b in combinations(shares, 2) if a + b]
    return sum(found) / len(found) if found else None
