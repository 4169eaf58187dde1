"""mAP@k: precision at every positive among the first k."""

from __future__ import annotations

import numpy as np

from diptych.evaluation.measuring import MEASURES, Measure
from diptych.evaluation.ties import TieGroups

__all__ = ["AVERAGE_PRECISION", "AVERAGE_PRECISION_AT"]


def _average_precision(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    """Expected average precision; McSherry and Najork, ECIR 2008, in closed form.

    In a group of N items, M of them positives, that starts after s others of which p are positives,
    rank i holds a positive with probability M / N, and then p + 1 + (i - s - 1)(M - 1)/(N - 1)
    positives are expected up to and including it. Summed over i, only harmonic numbers remain.
    """
    limit = groups.gallery if cutoff is None else min(cutoff, groups.gallery)
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, limit + 1))])
    size, before, found = groups.size, groups.before, groups.found
    begin, end = np.minimum(before, limit), np.minimum(before + size, limit)
    slope = (groups.positives - 1) / np.maximum(size - 1, 1)
    reciprocals = harmonic[end] - harmonic[begin]
    gain = (1 + found - slope * (before + 1)) * reciprocals + slope * (end - begin)
    alone = (end > begin) * (1 + found) / (before + 1)  # one item: no difference of harmonic numbers
    gain = np.where(size == 1, alone, gain * groups.positives / size)
    total = np.bincount(groups.query, weights=gain, minlength=groups.n_queries)
    values: np.ndarray = total / np.maximum(np.minimum(groups.relevant, limit), 1)
    return values


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
