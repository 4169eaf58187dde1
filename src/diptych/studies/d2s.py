"""Nguyen, Hendriksen, Yates and de Rijke, Multimodal Learned Sparse Retrieval (ECIR 2024): dense to sparse (D2S).

diptych study run d2s.table-3.1 --quick                                 a minute of a processor core
diptych study run d2s.table-3.2 --data FLICKR8K                         a few minutes of a core per head
diptych study run d2s.table-3.1 --data coco --set dense=EMBEDDINGS      the paper's own training, on BLIP's rows

Chapter 3 of Hendriksen's thesis. Small heads turn dense rows into bags of terms; expect R@1 of 51.8 at 11.5
FLOPs for BLIP's rows of MS-COCO with η = 1e-3, and 57.3 for the dense rows (table 3.1). Tables 3.1 to 3.6 and
figure 3.2 share dense rows and heads.
"""

from __future__ import annotations

from diptych.studies.claims import Check, Claim, all_of, at_most, beats, between, similar
from diptych.studies.figures import TradeOff
from diptych.studies.published import published_table
from diptych.studies.shortcut_checks import at_least, less
from diptych.studies.sparse_retrieval import RETRIEVAL, SparseRetrieval
from diptych.studies.sparse_rows import (
    DENSE,
    ETAS,
    EXPANSIONS,
    HOME,
    NOTES,
    PATHS,
    SETTINGS,
    TermExamples,
    every_step,
    exceeds_by,
    head_name,
    head_row,
    narrowing,
    positive,
    significantly,
    tends,
    within,
)
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
        topic="sparse beside dense retrieval",
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
        paths=PATHS,
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
        topic="what expansion control costs",
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
        paths=PATHS,
        measure=_MEASURE,
        notes=NOTES,
    )
)

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
        topic="agreement with dense rows",
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
        paths=PATHS,
        measure=SparseRetrieval(),
        notes=(*NOTES, "Overlap@10 and Kendall's τ, of what both lists of ten have, are not in the table."),
    )
)

FIGURE_3_2 = STUDIES.add(
    Study(
        name="d2s.figure-3.2",
        asks="What does η trade, and how much of the top 10 do heads share with their dense rows?",
        topic="what η trades",
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
        paths=PATHS,
        measure=SparseRetrieval(),
        notes=NOTES,
        figure=TradeOff(rows=_BY_ETA, dense=DENSE.name, printed="coco-blip"),
    )
)

_ETAS = ("1e-5", "1e-3")
_PAIRS = tuple((head_name(eta, "c"), head_name(eta, "1")) for eta in _ETAS)
_TERMS = 20  # Exact@20 of 5 % is one term

_COUNTED = (
    "Terms are WordPiece pieces; special ones take no place among the top k, and neither do terms without "
    "weight. In Semantic@k a term that the caption contains counts 1; captions are held against by whole "
    "words where the static embedding has them.",
    "Semantic@k is by the input embeddings of the vocabulary's masked language model, or by a file of word "
    "vectors (--set measure.words=GLOVE.npz); without either by vectors of which terms stand together in "
    "the training captions, which heads begin with as well. The protocol names them.",
)


def _in_terms(row: str, low: float, high: float) -> Check:
    """Exact@20 as a number of terms, rounded as the text does."""
    return between(row, "Exact@20", 100 * (low - 0.5) / _TERMS, 100 * (high + 0.5) / _TERMS)


TABLE_3_3 = STUDIES.add(
    Study(
        name="d2s.table-3.3",
        asks="Are a head's terms those of the captions, with control of expansion and without?",
        topic="terms that are the captions' own",
        rows=tuple(head_row(eta, expansion) for eta in _ETAS for expansion in ("c", "1")),
        bases=(DENSE,),
        columns=(Column("Exact@20"), Column("Semantic@20")),
        published=(published_table("d2s", "table-3.3"),),
        claims=(
            Claim(
                "Exact@20",
                "With control, more of the top 20 terms are the caption's own",
                significantly(_PAIRS, ("Exact@20",), 0.01),
                "Section 3.5.2, RQ2.3; †: paired t-test, p < 0.01",
            ),
            Claim(
                "Semantic@20",
                "With control, the top 20 terms are nearer to the caption's",
                significantly(_PAIRS, ("Semantic@20",), 0.01),
                "Section 3.5.2, RQ2.3; †: paired t-test, p < 0.01",
            ),
            Claim(
                "three to five",
                "With control, 3 to 5 of the top 20 terms are in the caption",
                all_of(*(_in_terms(row, 3, 5) for row, _ in _PAIRS)),
                "Section 3.5.2, RQ2.3; after rounding to whole terms",
            ),
            Claim(
                "one or none",
                "Without control, only one or none is",
                all_of(*(_in_terms(row, 0, 1) for _, row in _PAIRS)),
                "Section 3.5.2, RQ2.3; after rounding to whole terms",
            ),
        ),
        settings=SETTINGS,
        paths=PATHS,
        measure=SparseRetrieval(),
        notes=(*NOTES, *_COUNTED),
    )
)

_CONTROLLED, _FREE = head_name("1e-3", "c"), head_name("1e-3", "1")

TABLE_3_4 = STUDIES.add(
    Study(
        name="d2s.table-3.4",
        asks="Which terms do captions and pictures become, with control of expansion and without?",
        topic="top terms of captions and images",
        rows=(head_row("1e-3", "c"), head_row("1e-3", "1")),
        bases=(DENSE,),
        columns=(Column("Exact@10"),),
        published=(published_table("d2s", "table-3.4"),),
        claims=(
            Claim(
                "random terms",
                "Without control, at most half as many of the top 10 terms are the caption's own",
                at_most(_FREE, _CONTROLLED, 0.5, "Exact@10"),
                "Section 3.5.2, RQ2.3, of its examples: random terms against relevant ones",
            ),
        ),
        settings=SETTINGS,
        paths=PATHS,
        measure=SparseRetrieval(),
        notes=(
            *NOTES,
            *_COUNTED[:1],
            "Exact@10 is the mean over all captions of the test split; the examples are evenly spaced over "
            "it, chosen by nobody.",
        ),
        figure=TermExamples((_CONTROLLED, _FREE)),
    )
)
