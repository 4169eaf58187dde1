"""mAP, mAP@k and mAP@R: precision at every positive, or at those among the first."""

from __future__ import annotations

import numpy as np

from diptych.metrics.measuring import MEASURES, Measure
from diptych.metrics.ties import TieGroups


def summed_precision(groups: TieGroups, limit: np.ndarray) -> np.ndarray:
    """Expected sum of precisions in each group; McSherry and Najork, ECIR 2008, in closed form.

    In a group of N items, M of them positives, that starts after s others of which p are positives,
    rank i holds a positive with probability M / N, and then p + 1 + (i - s - 1)(M - 1)/(N - 1)
    positives are expected up to and including it. Summed over i, only harmonic numbers remain.

    Args:
        groups: the ranking.
        limit: (g,) how far to look, per group.

    Returns:
        (g,) float64: of the positives among the first ``limit`` that are in the group.
    """
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, limit.max(initial=0) + 1))])
    size, before, found = groups.size, groups.before, groups.found
    begin, end = np.minimum(before, limit), np.minimum(before + size, limit)
    slope = (groups.positives - 1) / np.maximum(size - 1, 1)
    reciprocals = harmonic[end] - harmonic[begin]
    gain = (1 + found - slope * (before + 1)) * reciprocals + slope * (end - begin)
    alone = (end > begin) * (1 + found) / (before + 1)  # one item: no difference of harmonic numbers
    gains: np.ndarray = np.where(size == 1, alone, gain * groups.positives / size)
    return gains


def _sum_up_to(groups: TieGroups, limit: np.ndarray) -> np.ndarray:
    """(n_queries,) expected sum of precisions at the positives among the first ``limit``, (n_queries,)."""
    gain = summed_precision(groups, limit[groups.query])
    total: np.ndarray = np.bincount(groups.query, weights=gain, minlength=groups.n_queries)
    return total


def precision_sum_at(groups: TieGroups, cutoff: int) -> np.ndarray:
    """(n_queries,) expected sum of precisions at the positives among the first ``cutoff``, to be divided."""
    return _sum_up_to(groups, np.full(groups.n_queries, min(cutoff, groups.gallery)))


def _up_to(groups: TieGroups, limit: np.ndarray) -> np.ndarray:
    """Summed precision over min(positives, limit); ``limit`` is (n_queries,)."""
    values: np.ndarray = _sum_up_to(groups, limit) / np.maximum(np.minimum(groups.relevant, limit), 1)
    return values


def _average_precision(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    limit = groups.gallery if cutoff is None else min(cutoff, groups.gallery)
    return _up_to(groups, np.full(groups.n_queries, limit))


def _average_precision_at_r(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    return _up_to(groups, groups.relevant)


AVERAGE_PRECISION = MEASURES.add(
    Measure(
        name="mAP",
        description="mean over queries of the mean over all positives of the precision at its rank",
        citation="Buckley and Voorhees, SIGIR 2000; ties: McSherry and Najork, ECIR 2008",
        positives="all",
        per_query=_average_precision,
    )
)

AVERAGE_PRECISION_AT = MEASURES.add(
    Measure(
        name="mAP@k",
        description="mean over queries of the summed precision at each positive among the first k, "
        "divided by min(k, positives of the query)",
        citation="Buckley and Voorhees, SIGIR 2000; ties: McSherry and Najork, ECIR 2008",
        positives="all",
        per_query=_average_precision,
    )
)

AVERAGE_PRECISION_AT_R = MEASURES.add(
    Measure(
        name="mAP@R",
        description="mean over queries of the summed precision at each positive among the first R, "
        "divided by R, the positives of the query",
        citation="Musgrave, Belongie and Lim, ECCV 2020; Chun et al., ECCV Caption, ECCV 2022",
        positives="all",
        per_query=_average_precision_at_r,
    )
)
