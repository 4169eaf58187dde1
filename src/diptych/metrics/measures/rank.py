"""Median and mean rank of the best positive, from 1, and the mean of one over it."""

from __future__ import annotations

import numpy as np

from diptych.metrics.bootstrap import FLOOR_MEDIAN, MEDIAN
from diptych.metrics.measuring import MEASURES, Measure
from diptych.metrics.ties import TieGroups, expected_reciprocal, found_within

_VOORHEES = "Voorhees, TREC-8 question answering track report, 1999"


def best_ranks(groups: TieGroups) -> np.ndarray:
    """Return (n_queries,) the rank of the best positive, expected where ties leave it open.

    A query without a positive has the rank after the gallery's last.
    """
    values = np.full(groups.n_queries, groups.gallery + 1.0)
    best = groups.best
    # Negatives fall evenly into the gaps before, between and behind the group's positives.
    first = groups.before[best] + 1 + groups.negatives[best] / (groups.positives[best] + 1)
    values[groups.query[best]] = first
    return values


def _chance_median(relevant: np.ndarray, gallery: int, ranked: int) -> float:
    """Return the median of the distribution of ranks over queries and orders, found by bisection."""
    kinds, counts = np.unique(relevant, return_counts=True)
    low, high = 1, ranked + 1  # what is not ranked, or not there, ranks after the last
    while low < high:
        middle = (low + high) // 2
        nothing = np.zeros_like(kinds)
        within = np.where(kinds > 0, found_within(nothing, gallery - kinds, kinds, middle), 0.0)
        if np.average(within, weights=counts) >= 0.5:
            high = middle
        else:
            low = middle + 1
    return float(low if low <= ranked else gallery + 1)


def _ranks(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    return best_ranks(groups)


def _reciprocal(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    values = np.zeros(groups.n_queries)
    best = groups.best
    values[groups.query[best]] = expected_reciprocal(
        groups.before[best], groups.negatives[best], groups.positives[best], cutoff
    )
    return values


MEDIAN_RANK = MEASURES.add(
    Measure(
        name="medr",
        description="median rank of the best positive (any-of-k), the mean of the middle two for an "
        "even number of queries; its chance level is the median over all queries and orders",
        citation="Hodosh, Young and Hockenmaier, JAIR 2013",
        positives="best",
        per_query=_ranks,
        kind="rank",
        aggregate=MEDIAN,
        chance_of=_chance_median,
    )
)

FLOOR_MEDIAN_RANK = MEASURES.add(
    Measure(
        name="medr-floor",
        description="median rank of the best positive (any-of-k) rounded down, as published code does",
        citation="Faghri et al., VSE++, BMVC 2018 (published code)",
        positives="best",
        per_query=_ranks,
        kind="rank",
        aggregate=FLOOR_MEDIAN,
        chance_of=_chance_median,
        compat=True,
    )
)

MEAN_RANK = MEASURES.add(
    Measure(
        name="meanr",
        description="mean rank of the best positive (any-of-k)",
        citation="Faghri et al., VSE++, BMVC 2018",
        positives="best",
        per_query=_ranks,
        kind="rank",
    )
)

RECIPROCAL_RANK = MEASURES.add(
    Measure(
        name="MRR",
        description="mean of 1 / rank of the best positive (any-of-k)",
        citation=_VOORHEES,
        positives="best",
        per_query=_reciprocal,
    )
)

RECIPROCAL_RANK_AT = MEASURES.add(
    Measure(
        name="MRR@k",
        description="mean of 1 / rank of the best positive (any-of-k), 0 when it is not among the first k",
        citation=_VOORHEES,
        positives="best",
        per_query=_reciprocal,
    )
)
