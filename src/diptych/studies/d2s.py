"""Nguyen, Hendriksen, Yates and de Rijke, Multimodal Learned Sparse Retrieval (ECIR 2024): dense to sparse (D2S).

diptych study run d2s.table-3.1 --quick                                 a minute of a processor core
diptych study run d2s.table-3.2 --data FLICKR8K                         a few minutes of a core per head
diptych study run d2s.table-3.1 --data coco --set dense=EMBEDDINGS      the paper's own training, on BLIP's rows

Chapter 3 of Hendriksen's thesis. Small heads turn dense rows into bags of terms; expect R@1 of 51.8 at 11.5
FLOPs for BLIP's rows of MS-COCO with η = 1e-3, and 57.3 for the dense rows (table 3.1). Tables 3.1 to 3.6 and
figure 3.2 share dense rows and heads.
"""

from __future__ import annotations

from diptych.studies.claims import Check, Claim, all_of, at_most, beats, similar
from diptych.studies.published import published_table
from diptych.studies.shortcut_checks import at_least
from diptych.studies.sparse_checks import exceeds_by, significantly
from diptych.studies.sparse_retrieval import RETRIEVAL, SparseRetrieval
from diptych.studies.sparse_rows import DENSE, EXPANSIONS, HOME, NOTES, SETTINGS, head_name, head_row
from diptych.studies.study import STUDIES, Column, Study

_COLUMNS = (
    *(Column(name) for name in RETRIEVAL),
    Column("FLOPs"),
    Column("terms per image", short="image terms"),
    Column("terms per caption", short="caption terms"),
)
_MEASURE = SparseRetrieval()
_BLIP = ("coco-blip", "flickr30k-blip")
_TWO_ETAS = ("1e-3", "1e-5")

# Table 3.1 --------------------------------------------------------------------------------------

_SPARSE, _DENSER = head_name("1e-3"), head_name("1e-5")
_BASELINES = ("VisualSparta", "STAIR (zero-shot)", "LexLIP (4.3M)", "LexLIP (14.3M)")
_RECALLS = ("t2i R@1", "t2i R@5")


def _beat(row: str, *others: str) -> Check:
    return all_of(*(beats(row, other, *_RECALLS) for other in others))


TABLE_3_1 = STUDIES.add(
    Study(
        name=HOME,
        asks="How much of a dense encoder's retrieval do heads keep that make bags of terms of its rows?",
        rows=(DENSE, head_row("1e-3"), head_row("1e-5")),
        columns=_COLUMNS,
        published=(published_table("d2s", "table-3.1"),),
        claims=(
            Claim(
                "below dense",
                "Heads are significantly below the dense rows they are made on",
                significantly([(DENSE.name, row) for row in (_SPARSE, _DENSER)], RETRIEVAL, 0.05),
                "Table 3.1, †: paired t-test, p < 0.05 with Bonferroni correction",
            ),
            Claim(
                "less regularised",
                "A lower η retrieves better and costs more FLOPs",
                beats(_DENSER, _SPARSE, *RETRIEVAL, "FLOPs"),
                "Section 3.5.2, RQ2.1",
            ),
            Claim(
                "baselines",
                "D2S (BLIP, η = 1e-5) beats all sparse baselines",
                _beat(_DENSER, *_BASELINES),
                "Section 3.5.2, RQ2.2",
                on=_BLIP,
            ),
            Claim(
                "weaker baselines",
                "All heads beat VisualSparta and STAIR",
                all_of(*(_beat(row, *_BASELINES[:2]) for row in (_SPARSE, _DENSER))),
                "Section 3.5.2, RQ2.2",
            ),
            Claim(
                "named shares",
                "R@1 of D2S (BLIP, η = 1e-5) on MS-COCO is 21, 5 and 2.8 % above VisualSparta's and LexLIP's",
                all_of(
                    *(
                        exceeds_by(_DENSER, other, "t2i R@1", share, 0.0025)
                        for other, share in (
                            ("VisualSparta", 0.21),
                            ("LexLIP (4.3M)", 0.05),
                            ("LexLIP (14.3M)", 0.028),
                        )
                    )
                ),
                "Section 3.5.2, RQ2.2; to a quarter of a per cent",
                on=("coco-blip",),
            ),
        ),
        settings=SETTINGS,
        measure=_MEASURE,
        notes=NOTES,
    )
)

# Table 3.2 --------------------------------------------------------------------------------------

_ALIKE, _COST_ALIKE, _COMPETITIVE = 0.02, 0.25, 0.95


def _per_eta(*checks: object) -> Check:
    """``check(η)`` for every check and both η of the table."""
    return all_of(*(check(eta) for check in checks for eta in _TWO_ETAS))  # type: ignore[operator]


def _costs_most(eta: str) -> Check:
    others = [head_name(eta, one) for one in EXPANSIONS if one != "1"]
    return all_of(*(beats(head_name(eta, "1"), other, "FLOPs") for other in others))


def _least_and_worst(eta: str) -> Check:
    others = [head_name(eta, one) for one in EXPANSIONS if one != "0"]
    return all_of(*(beats(other, head_name(eta, "0"), "FLOPs", *RETRIEVAL) for other in others))


TABLE_3_2 = STUDIES.add(
    Study(
        name="d2s.table-3.2",
        asks="What does controlling the expansion of captions in training cost, and what does it save?",
        rows=tuple(head_row(eta, expansion) for eta in _TWO_ETAS for expansion in EXPANSIONS),
        bases=(DENSE,),
        columns=_COLUMNS,
        published=(published_table("d2s", "table-3.2"),),
        claims=(
            Claim(
                "exp = 1",
                "Expansion without control costs the most FLOPs at each η",
                _per_eta(_costs_most),
                "Section 3.5.2, RQ2.3",
            ),
            Claim(
                "exp = 0",
                "Without expansion FLOPs are the lowest and retrieval is the worst",
                _per_eta(_least_and_worst),
                "Section 3.5.2, RQ2.3",
            ),
            Claim(
                "control",
                "With c + w FLOPs are at most half of those without control",
                _per_eta(lambda eta: at_most(head_name(eta), head_name(eta, "1"), 0.5, "FLOPs")),
                "Section 3.5.2, RQ2.3",
            ),
            Claim(
                "competitive",
                "And retrieval is competitive with that without control",
                _per_eta(lambda eta: at_least(head_name(eta), head_name(eta, "1"), _COMPETITIVE, *RETRIEVAL)),
                "Section 3.5.2, RQ2.3; competitive: at least 95 %",
            ),
            Claim(
                "c and c + w",
                "Control of words besides captions makes no difference to retrieval",
                _per_eta(lambda eta: similar(head_name(eta), head_name(eta, "c"), *RETRIEVAL, share=_ALIKE)),
                "Section 3.5.2, RQ2.3; none: within 2 %",
            ),
            Claim(
                "c and c + w, FLOPs",
                "Nor to efficiency",
                _per_eta(
                    lambda eta: similar(head_name(eta), head_name(eta, "c"), "FLOPs", share=_COST_ALIKE)
                ),
                "Section 3.5.2, RQ2.3; none: within 25 %",
            ),
            Claim(
                "η",
                "Whatever the expansion, a lower η retrieves better and costs more FLOPs",
                all_of(
                    *(
                        beats(head_name("1e-5", one), head_name("1e-3", one), *RETRIEVAL, "FLOPs")
                        for one in EXPANSIONS
                    )
                ),
                "Section 3.5.2, RQ2.1",
            ),
        ),
        settings=SETTINGS,
        measure=_MEASURE,
        notes=NOTES,
    )
)
