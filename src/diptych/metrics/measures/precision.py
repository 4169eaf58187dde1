"""P@k and R-precision: the share of positives among the first."""

from __future__ import annotations

import numpy as np

from diptych.metrics.measuring import MEASURES, Measure
from diptych.metrics.ties import TieGroups


def expected_hits(groups: TieGroups, cutoff: np.ndarray) -> np.ndarray:
    """Positives expected among the first ``cutoff[query]`` of each query."""
    inside = np.clip(cutoff[groups.query] - groups.before, 0, groups.size)
    hits = groups.positives * inside / groups.size
    expected: np.ndarray = np.bincount(groups.query, weights=hits, minlength=groups.n_queries)
    return expected


def _precision(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    assert cutoff is not None
    values: np.ndarray = expected_hits(groups, np.full(groups.n_queries, cutoff)) / cutoff
    return values


def _r_precision(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    values: np.ndarray = expected_hits(groups, groups.relevant) / np.maximum(groups.relevant, 1)
    return values


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
