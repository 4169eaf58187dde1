"""R@k, P@k, R-precision and R-cap@k: what is found among the first.

Where every query has one positive, R-cap@k is R@k. For images with five captions R-cap@1 is the hit rate and
R-cap@5 the share of the five captions that are found: what thesis Table 5.2 prints as image-to-text R@5 and
R@10, beside an R@1 that it shares with everyone.
"""

from __future__ import annotations

import numpy as np

from diptych.metrics.measuring import MEASURES, Measure, Sum
from diptych.metrics.ties import TieGroups, found_within


def _found(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    assert cutoff is not None
    values = np.zeros(groups.n_queries)
    best = groups.best
    values[groups.query[best]] = found_within(
        groups.before[best], groups.negatives[best], groups.positives[best], cutoff
    )
    return values


def _precision(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    assert cutoff is not None
    values: np.ndarray = groups.hits(np.full(groups.n_queries, cutoff)) / cutoff
    return values


def _r_precision(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    values: np.ndarray = groups.hits(groups.relevant) / np.maximum(groups.relevant, 1)
    return values


def _capped(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    assert cutoff is not None
    hits = groups.hits(np.full(groups.n_queries, cutoff))
    values: np.ndarray = hits / np.maximum(np.minimum(groups.relevant, cutoff), 1)
    return values


RECALL = MEASURES.add(
    Measure(
        name="R@k",
        description="share of queries with at least one positive among the first k (any-of-k; "
        "elsewhere called success or hit rate at k)",
        citation="Hodosh, Young and Hockenmaier, JAIR 2013; Karpathy and Fei-Fei, CVPR 2015",
        positives="best",
        per_query=_found,
    )
)

RSUM = MEASURES.add(
    Sum(
        name="rsum",
        description="R@1 + R@5 + R@10 of both directions, in per cent: 600 at most",
        citation="Faghri et al., VSE++, BMVC 2018 (model selection in the published code)",
        parts=("R@1", "R@5", "R@10"),
    )
)

PRECISION = MEASURES.add(
    Measure(
        name="P@k",
        description="share of positives among the first k, always divided by k",
        citation="Manning, Raghavan and Schütze, Introduction to Information Retrieval, section 8.4",
        positives="all",
        per_query=_precision,
    )
)

R_PRECISION = MEASURES.add(
    Measure(
        name="R-precision",
        description="share of positives among the first R, R being the positives of the query",
        citation="Musgrave, Belongie and Lim, ECCV 2020; Chun et al., ECCV Caption, ECCV 2022",
        positives="all",
        per_query=_r_precision,
    )
)

CAPPED_RECALL = MEASURES.add(
    Measure(
        name="R-cap@k",
        description="positives among the first k over min(k, positives of the query): what the thesis's "
        "Table 5.2 prints as recall",
        citation="Thakur et al., BEIR, NeurIPS 2021 (capped recall); published code of thesis chapter 5",
        positives="all",
        per_query=_capped,
        compat=True,
    )
)
