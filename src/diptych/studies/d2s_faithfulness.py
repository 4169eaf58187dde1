"""Table 3.5 and figure 3.2 of chapter 3: are heads faithful to their dense rows, and what does η trade?

diptych study run d2s.figure-3.2 --quick                                a minute of a processor core
diptych study run d2s.table-3.5 --data FLICKR8K                         a few minutes of a core per head

Dense rows and heads are those of tables 3.1 and 3.2, whose folders are used. Expect correlations of the values
per caption of .74 for R@1 and .84 for MRR@10 with η = 1e-3 on BLIP's rows of MS-COCO.
"""

from __future__ import annotations

from diptych.studies.claims import Check, Claim, all_of
from diptych.studies.published import published_table
from diptych.studies.shortcut_checks import less
from diptych.studies.sparse_checks import every_step, narrowing, positive, tends, within
from diptych.studies.sparse_retrieval import RETRIEVAL, SparseRetrieval
from diptych.studies.sparse_rows import DENSE, ETAS, NOTES, SETTINGS, head_name, head_row
from diptych.studies.study import STUDIES, Column, Study
from diptych.studies.tradeoff import TradeOff

_BY_ETA = tuple(head_name(eta) for eta in ETAS)
_CORRELATIONS = ("ρ-R@1", "ρ-R@5", "ρ-MRR@10")
_FAITHFUL = (*(Column(name) for name in _CORRELATIONS), Column("overlap@10"), Column("Kendall τ", 2))


def _rise_with_cutoff(row: str) -> Check:
    """Within a row, from R@1 to R@5 and from there to MRR@10."""
    return all_of(less(row, "ρ-R@1", "ρ-R@5"), less(row, "ρ-R@5", "ρ-MRR@10"))


TABLE_3_5 = STUDIES.add(
    Study(
        name="d2s.table-3.5",
        asks="Do heads answer the same captions as their dense rows, and with the same pictures?",
        rows=tuple(head_row(eta) for eta in ETAS),
        bases=(DENSE,),
        columns=_FAITHFUL,
        published=(published_table("d2s", "table-3.5"),),
        claims=(
            Claim(
                "positive",
                "Heads and dense rows correlate positively",
                positive(_BY_ETA, _CORRELATIONS),
                "Section 3.5.2, RQ2.4",
            ),
            Claim(
                "η",
                "The correlation tends to rise as η falls",
                tends(_BY_ETA, _CORRELATIONS),
                "Section 3.5.2, RQ2.4; tends: from first to last, and in two of three steps",
            ),
            Claim(
                "cut-off",
                "The correlation is higher at R@5 than at R@1, and at MRR@10 than at R@5",
                all_of(*(_rise_with_cutoff(row) for row in _BY_ETA)),
                "Section 3.5.2, RQ2.4: tends to increase",
            ),
        ),
        settings=SETTINGS,
        measure=SparseRetrieval(),
        notes=(*NOTES, "Overlap@10 and Kendall's τ, of what both lists of ten have, are not in the table."),
    )
)

FIGURE_3_2 = STUDIES.add(
    Study(
        name="d2s.figure-3.2",
        asks="What does η trade, and how much of the top 10 do heads share with their dense rows?",
        rows=(DENSE, *(head_row(eta) for eta in ETAS)),
        columns=(
            *(Column(name) for name in ("t2i R@1", "t2i R@5", "t2i R@10", "t2i MRR@10")),
            Column("FLOPs"),
            Column("overlap@10"),
        ),
        published=(published_table("d2s", "figure-3.2"), published_table("d2s", "table-3.1")),
        claims=(
            Claim(
                "trade-off",
                "Recall and MRR rise as η falls, and so do FLOPs",
                all_of(
                    *(every_step(_BY_ETA, column, rising=True) for column in (*RETRIEVAL, "FLOPs")),
                ),
                "Section 3.5.2, RQ2.1",
            ),
            Claim(
                "gap",
                "Heads come nearer to their dense rows at higher cut-offs",
                all_of(*(narrowing(row, DENSE.name, ("t2i R@1", "t2i R@5", "t2i R@10")) for row in _BY_ETA)),
                "Section 3.5.2, RQ2.1",
            ),
            Claim(
                "overlap",
                "About 70 % of the top 10 are in both lists",
                within(_BY_ETA, "overlap@10", 60.0, 80.0),
                "Section 3.5.2, RQ2.4, figure 3.2b; about: 60 to 80 %, on average over the rows",
            ),
        ),
        settings=SETTINGS,
        measure=SparseRetrieval(),
        notes=NOTES,
        figure=TradeOff(rows=_BY_ETA, dense=DENSE.name, printed="coco-blip"),
    )
)
