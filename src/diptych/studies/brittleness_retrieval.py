"""Hendriksen et al., Assessing Brittleness of Image-Text Retrieval Benchmarks (2024): thesis ch. 5, tables 5.2–5.4.

diptych study run brittleness.table-5.3 --quick                                             two minutes
diptych study run brittleness.table-5.3 --data coco=COCO --data coco-fg=COCO_FG --set clip=CLIP --set align=ALIGN
diptych study run brittleness.table-5.4 --data my=MINE --data my-fg=FINER --set encoder=RUN --set bag=CONTROL

What do finer captions and thirteen changes of captions do to retrieval from text, and do they change the same
queries? Expect the bag of words to be exactly indifferent to shuffles; the thesis prints 116.09 clean and 85.78
with all words shuffled (ALIGN on COCO). All three share what is given and embedded, tables 5.3 and 5.4 the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.core.table import Cell, Table
from diptych.studies.brittleness_checks import (
    average_gain,
    finer_drops_less,
    finer_raises,
    gain_of,
    gains_more,
    highest,
    hurts_most,
    hurts_most_everywhere,
    indifferent,
    lowers_always,
    mostly_lower,
)
from diptych.studies.brittleness_measuring import MEASURED_BY, PATHS, Clean, Suite, check_chosen
from diptych.studies.brittleness_rows import (
    CLEAN_COLUMNS,
    CLEAN_NOTES,
    HOME,
    JACCARD_COLUMNS,
    KINDS,
    NOTES,
    ROWS,
    RSUM_COLUMNS,
    SETTINGS,
    SHUFFLES,
    THIRTEEN,
    relative_change,
)
from diptych.studies.claims import Claim, all_of
from diptych.studies.published import published_table
from diptych.studies.study import STUDIES, Study
from diptych.studies.verdict import Evidence, printed_by

if TYPE_CHECKING:
    from diptych.evaluation.stress import StressResult, StressRow


_NEARLY_ALL = 0.9  # where this share of queries was changed, the drop over all is as good as that over those
_SIGNS = {"worse": " ↓", "better": " ↑", "": ""}


def runs_of(evidence: Evidence) -> Iterator[tuple[str, str, StressResult]]:
    """Row, collection and the run of the suite behind them, of the first seed."""
    from diptych.evaluation.stress import StressResult

    for row in evidence.figures:
        for name in sorted(evidence.centric, key=str.lower):  # a collection before its finer one
            folders: list[Path] = list(evidence.kept.get(f"{name} {row}", ()))
            if folders and (folders[0] / StressResult.marker()).is_file():
                yield row, name, StressResult.open(folders[0])


def remarks_on_runs(evidence: Evidence) -> list[str]:
    """What could not be perturbed, and why."""
    return [
        f"{row} on {name}: {perturbation} was left out: {why}"
        for row, name, result in runs_of(evidence)
        for perturbation, why in result.left_out.items()
    ]


def drop_tables(evidence: Evidence) -> list[Table]:
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
        Table.of(
            "Drops",
            "What a perturbation costs of the sum R@1 + R@5 + R@10 from text, relative to the clean one, with 95 % "
            "intervals (paired bootstrap over pictures with their captions). ↓ worse, ↑ better: p ≤ 0.05 by random "
            "swaps, Holm over the perturbations of the run. A folder of diptych analyse stress with every query is "
            "kept beside each row. Changed: captions that could be; in brackets the change over those alone, where "
            "fewer than 90 % were.",
            ("perturbation", "changed", *(f"{row}, {name}" for row, name in cells)),
            tuple(rows),
        )
    ]


def _cell(row: StressRow | None) -> str:
    from diptych.evaluation.stress.queries import RSUM

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
    if changed is not None and changed.relative is not None and row.changed_share < _NEARLY_ALL:
        ends += f" [{100 * changed.relative:+.1f}]"
    return f"{100 * drop.relative:+.1f} %{ends}{_SIGNS[drop.verdict]}"


def agreement_tables(evidence: Evidence) -> list[Table]:
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
        Table.of(
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


_FULL = 0.6
"""The drop that is drawn in full colour."""


@dataclass(frozen=True)
class HeatMaps:
    """One table of what was measured here, one of what is printed."""

    name: str = "heat-map"
    title: str = "Heat map"
    note: str = (
        "Change of the sum R@1 + R@5 + R@10 from text, in per cent of the clean one: orange where it drops, full "
        "colour at 60 %; blue where it rises. Printed: kinds as in Table 5.3; here: all thirteen perturbations."
    )

    def draw(self, evidence: Evidence, labels: Mapping[str, str]) -> list[Table]:
        """Return the tables; the printed one is always there."""
        printed = printed_by([published_table("brittleness", "table-5.3")], "thesis")
        maps = (_heat_map("here", evidence, THIRTEEN, labels), _heat_map("printed", printed, KINDS, labels))
        return [table for table in maps if len(table.columns) > 1]


FIGURE = HeatMaps()


def _heat_map(title: str, evidence: Evidence, kinds: Sequence[str], labels: Mapping[str, str]) -> Table:
    """A row per perturbation, a column per row and collection."""
    cases = [
        (row, name)
        for row in evidence.figures
        for name in sorted(evidence.centric, key=str.lower)  # before its finer one
        if any(relative_change(evidence, row, name, kind) is not None for kind in kinds)
    ]
    rows = [
        [Cell(kind), *(_changed(relative_change(evidence, row, name, kind)) for row, name in cases)]
        for kind in kinds
    ]
    owners = [labels.get(row, row) for row, _ in cases]
    groups = [("", 1), *((owner, owners.count(owner)) for owner in dict.fromkeys(owners))]
    return Table(f"Change, {title}", ("perturbation", *(name for _, name in cases)), rows, groups)


def _changed(change: float | None) -> Cell:
    if change is None:
        return Cell("–")
    shade, colour = min(1.0, abs(change) / _FULL), "orange" if change < 0 else "blue"
    return Cell(f"{100 * change:+.1f}" if change else "0", shade=shade, colour=colour, value=change)


_RESULTS = "Section 5.5.3"
_I2T, _T2I = "i2t R@1", "t2i R@1"
_PAPERS = ("coco", "flickr30k")
_ALL_WORDS, _LEXICAL = "shuffle-all-words", "synonyms"

TABLE_5_2 = STUDIES.add(
    Study(
        name="brittleness.table-5.2",
        asks="Do finer captions of the same pictures make retrieval easier?",
        topic="retrieval by finer captions",
        rows=ROWS,
        columns=CLEAN_COLUMNS,
        published=(published_table("brittleness", "table-5.2"),),
        claims=(
            Claim(
                "finer captions",
                "Refining captions improves R@1 in most cases",
                finer_raises(_I2T, _T2I),
                f"{_RESULTS}; most: more than half of all models, collections and directions",
            ),
            Claim(
                "from text",
                "The greatest benefits are from text: R@1 gains a larger share than from pictures",
                gains_more(_T2I, _I2T),
                f"{_RESULTS}; means over models and collections",
            ),
            Claim(
                "named",
                "R@1 gains 16.23 % from text and 6.44 % from pictures on average",
                all_of(average_gain(_T2I, 0.1623, *_PAPERS), average_gain(_I2T, 0.0644, *_PAPERS)),
                f"{_RESULTS}; to half a per cent",
                on=("thesis",),
            ),
            Claim(
                "named, collections",
                "R@1 gains 8.14 % (pictures) and 17.11 % (text) on MS-COCO, 4.75 % and 15.35 % on Flickr30k",
                all_of(
                    average_gain(_I2T, 0.0814, "coco"),
                    average_gain(_T2I, 0.1711, "coco"),
                    average_gain(_I2T, 0.0475, "flickr30k"),
                    average_gain(_T2I, 0.1535, "flickr30k"),
                ),
                f"{_RESULTS}; to half a per cent",
                on=("thesis",),
            ),
            Claim(
                "named, highest",
                "The highest gain is 29.11 %, of CLIP from text on Flickr30k",
                gain_of("clip", "flickr30k", _T2I, 0.2911),
                f"{_RESULTS}; to half a per cent",
                on=("thesis",),
            ),
        ),
        settings=SETTINGS,
        measure=Clean(),
        notes=CLEAN_NOTES,
        several=True,
        measured_by=MEASURED_BY,
        paths=PATHS,
        check_measuring=check_chosen,
    )
)

TABLE_5_3 = STUDIES.add(
    Study(
        name=HOME,
        asks="What do thirteen changes of captions do to retrieval from text, with coarse and with finer captions?",
        topic="what changed captions cost",
        rows=ROWS,
        columns=RSUM_COLUMNS,
        published=(published_table("brittleness", "table-5.3"),),
        claims=(
            Claim(
                "the control",
                "A bag of words is exactly indifferent to all five shuffles: no query moves",
                indifferent(),
                "a check of the suite, not of the paper",
            ),
            Claim(
                "drops",
                "Perturbations lower the sum for most pairs of perturbation and collection",
                mostly_lower(),
                f"{_RESULTS}; most: more than half, over models too",
            ),
            Claim(
                "word order",
                "Word order matters: every shuffle lowers the sum of every model, against Yuksekgonul et al. (2023)",
                lowers_always(SHUFFLES),
                _RESULTS,
            ),
            Claim(
                "shuffle all words",
                "Shuffling all words leads to the largest drop",
                hurts_most(_ALL_WORDS),
                f"{_RESULTS}; the mean relative drop over models and collections",
            ),
            Claim(
                "shuffle all words, everywhere",
                "Shuffling all words leads to the largest drop of every model on every collection",
                hurts_most_everywhere(_ALL_WORDS),
                _RESULTS,
            ),
            Claim(
                "lexical variation",
                "Lexical variation (synonyms) has the smallest effect",
                hurts_most(_LEXICAL, least=True),
                f"{_RESULTS}; the mean relative drop over models and collections",
            ),
            Claim(
                "lexical variation, everywhere",
                "Lexical variation has the smallest effect on every model and collection",
                hurts_most_everywhere(_LEXICAL, least=True),
                _RESULTS,
            ),
            Claim(
                "finer captions",
                "With finer captions relative drops are smaller (said of MS-COCO)",
                finer_drops_less(leave_out=("flickr30k",)),
                f"{_RESULTS}; for more than half of the perturbations, means over models",
            ),
            Claim(
                "Flickr30k",
                "On Flickr30k-FG drops are smaller for only 5 of 13 perturbations",
                finer_drops_less(only="flickr30k", most=False),
                f"{_RESULTS}; for fewer than half, means over models; eight kinds are printed",
            ),
        ),
        settings=SETTINGS,
        measure=Suite("rsum"),
        notes=NOTES,
        figure=FIGURE,
        remarks=remarks_on_runs,
        several=True,
        measured_by=MEASURED_BY,
        paths=PATHS,
        check_measuring=check_chosen,
        tables=drop_tables,
    )
)

TABLE_5_4 = STUDIES.add(
    Study(
        name="brittleness.table-5.4",
        asks="Do different changes of captions hurt, help and spare the same queries?",
        topic="queries that changes hurt",
        rows=ROWS,
        columns=JACCARD_COLUMNS,
        published=(published_table("brittleness", "table-5.4"),),
        claims=(
            Claim(
                "unchanged",
                "The highest similarity is that of captions whose queries stay",
                highest("unchanged"),
                "Section 5.5.4; of every model on every collection",
            ),
            Claim(
                "increased",
                "The lowest similarity is that of captions whose queries gain",
                highest("increased", lowest=True),
                "Section 5.5.4; of every model on every collection",
            ),
        ),
        settings=SETTINGS,
        measure=Suite("jaccard"),
        notes=NOTES,
        remarks=remarks_on_runs,
        several=True,
        measured_by=MEASURED_BY,
        paths=PATHS,
        check_measuring=check_chosen,
        tables=agreement_tables,
    )
)
