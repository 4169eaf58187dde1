"""Tables 3.3 and 3.4 of chapter 3: do a head's terms say what captions say?

diptych study run d2s.table-3.3 --quick                                 a minute of a processor core
diptych study run d2s.table-3.4 --data FLICKR8K                         a few minutes of a core per head

Dense rows and heads are those of tables 3.1 and 3.2, whose folders are used. Expect Exact@20 of 25.0 with
control of expansion and 2.5 without, of η = 1e-3 on BLIP's rows of MS-COCO.
"""

from __future__ import annotations

from diptych.studies.checks import between
from diptych.studies.claims import Check, Claim, all_of, at_most
from diptych.studies.published import published_table
from diptych.studies.sparse_checks import significantly
from diptych.studies.sparse_retrieval import SparseRetrieval
from diptych.studies.sparse_rows import DENSE, NOTES, SETTINGS, head_name, head_row
from diptych.studies.study import STUDIES, Column, Study
from diptych.studies.term_examples import TermExamples

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
        measure=SparseRetrieval(),
        notes=(*NOTES, *_COUNTED),
    )
)

_CONTROLLED, _FREE = head_name("1e-3", "c"), head_name("1e-3", "1")

TABLE_3_4 = STUDIES.add(
    Study(
        name="d2s.table-3.4",
        asks="Which terms do captions and pictures become, with control of expansion and without?",
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
