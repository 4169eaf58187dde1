"""MRR: the mean of one over the rank of the best positive."""

from __future__ import annotations

import numpy as np

from diptych.metrics.chances import expected_reciprocal
from diptych.metrics.measuring import MEASURES, Measure
from diptych.metrics.ties import TieGroups

_CITATION = "Voorhees, TREC-8 question answering track report, 1999"


def _reciprocal(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    values = np.zeros(groups.n_queries)
    best = groups.best
    values[groups.query[best]] = expected_reciprocal(
        groups.before[best], groups.negatives[best], groups.positives[best], cutoff
    )
    return values


RECIPROCAL_RANK = MEASURES.add(
    Measure(
        name="MRR",
        description="mean of 1 / rank of the best positive (any-of-k)",
        citation=_CITATION,
        positives="best",
        per_query=_reciprocal,
    )
)

RECIPROCAL_RANK_AT = MEASURES.add(
    Measure(
        name="MRR@k",
        description="mean of 1 / rank of the best positive (any-of-k), 0 when it is not among the first k",
        citation=_CITATION,
        positives="best",
        per_query=_reciprocal,
    )
)
