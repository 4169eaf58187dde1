"""mAP, mAP@k, mAP@R and what else published code divides an average precision by.

mAP@k divides by the most that could be found, min(k, positives): a query with one positive, at rank 1, has
1, and so has one with twelve positives of which the first five are right at k = 5. ``mAP-cutoff@k`` gives
the first 1/k, ``mAP-positives@k`` the second 5/12. ``mAP-hits@k`` averages over the positives that were
found: a query with one positive at rank 1 and four beyond k has 1, where mAP@5 has 1/5.
"""

from __future__ import annotations

import numpy as np

from diptych.metrics.measuring import MEASURES, Measure
from diptych.metrics.ties import TieGroups

_CHUNK_NUMBERS = 1 << 20


def summed_precision(groups: TieGroups, limit: np.ndarray) -> np.ndarray:
    """Return (g,) expected sums of precisions in each group; McSherry and Najork, ECIR 2008, in closed form.

    In a group of N items, M of them positives, that starts after s others of which p are positives,
    rank i holds a positive with probability M / N, and then p + 1 + (i - s - 1)(M - 1)/(N - 1)
    positives are expected up to and including it. Summed over i, only harmonic numbers remain.
    Counted are the group's positives among the first ``limit`` (g,).
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
    """Return (n_queries,) expected sums of precisions at the positives among the first ``limit``."""
    gain = summed_precision(groups, limit[groups.query])
    total: np.ndarray = np.bincount(groups.query, weights=gain, minlength=groups.n_queries)
    return total


def _sum_at(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    limit = groups.gallery if cutoff is None else min(cutoff, groups.gallery)
    return _sum_up_to(groups, np.full(groups.n_queries, limit))


def _average_precision(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    limit = groups.gallery if cutoff is None else min(cutoff, groups.gallery)
    values: np.ndarray = _sum_at(groups, cutoff) / np.maximum(np.minimum(groups.relevant, limit), 1)
    return values


def _average_precision_at_r(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    values: np.ndarray = _sum_up_to(groups, groups.relevant) / np.maximum(groups.relevant, 1)
    return values


def _over_cutoff(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    assert cutoff is not None
    values: np.ndarray = _sum_at(groups, cutoff) / cutoff
    return values


def _over_positives(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    values: np.ndarray = _sum_at(groups, cutoff) / np.maximum(groups.relevant, 1)
    return values


def _over_hits(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    """Return the expectation of a ratio: over how many hits there are, and then over where they are.

    Only the group that the cut-off runs through leaves the number of hits open. Of its N items, M of
    them positives, x places count, and h of these are hits with the hypergeometric probability
    C(M, h) C(N - M, x - h) / C(N, x). Given h, the hits lie anywhere among the x places.
    """
    assert cutoff is not None
    limit = min(cutoff, groups.gallery)
    open_places = np.clip(limit - groups.before, 0, groups.size)
    through = (open_places > 0) & (open_places < groups.size)
    inside = open_places == groups.size
    sums = np.bincount(
        groups.query[inside],
        weights=summed_precision(groups, np.full(len(groups.query), limit))[inside],
        minlength=groups.n_queries,
    )
    hits = np.bincount(groups.query[inside], weights=groups.positives[inside], minlength=groups.n_queries)
    values: np.ndarray = sums / np.maximum(hits, 1)
    cut = np.flatnonzero(through)  # at most one group of a query
    step = max(1, _CHUNK_NUMBERS // (limit + 1))
    for begin in range(0, len(cut), step):
        some = cut[begin : begin + step]
        query = groups.query[some]
        values[query] = _cut_group(groups, some, open_places[some], sums[query], hits[query])
    return values


def _cut_group(
    groups: TieGroups, some: np.ndarray, places: np.ndarray, sums: np.ndarray, hits: np.ndarray
) -> np.ndarray:
    """Return (c,) values of queries whose group is cut after ``places`` of its items."""
    positives, negatives, before, found = (
        values[some, None] for values in (groups.positives, groups.negatives, groups.before, groups.found)
    )
    x = places[:, None]
    h = np.arange(int(min(places.max(), positives.max())) + 1)[None, :]
    possible = (h <= np.minimum(x, positives)) & (x - h <= negatives)
    # Each probability from its neighbour's, all up to one factor, which the sum takes out again: nothing
    # has to be divided by a huge binomial.
    ratio = (positives - h + 1.0) * (x - h + 1.0) / (np.maximum(h, 1) * np.maximum(negatives - x + h, 1.0))
    steps = np.log(np.where(possible, ratio, 1.0))
    logs = np.where(possible, np.cumsum(steps, axis=1), -np.inf)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    # Precision at the places s + 1 … s + x, h of which are hits; see summed_precision.
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, int((before + x).max()) + 1))])
    slope = (h - 1) / np.maximum(x - 1, 1)
    reciprocals = harmonic[before + x] - harmonic[before]
    gain = ((1 + found - slope * (before + 1)) * reciprocals + slope * x) * h / x
    ratios = (sums[:, None] + gain) / np.maximum(hits[:, None] + h, 1)
    expected: np.ndarray = np.sum(weights * np.where(possible, ratios, 0.0), axis=1)
    return expected


_CITATION = "Buckley and Voorhees, SIGIR 2000; ties: McSherry and Najork, ECIR 2008"

AVERAGE_PRECISION = MEASURES.add(
    Measure(
        name="mAP",
        description="mean over queries of the mean over all positives of the precision at its rank",
        citation=_CITATION,
        positives="all",
        per_query=_average_precision,
    )
)

AVERAGE_PRECISION_AT = MEASURES.add(
    Measure(
        name="mAP@k",
        description="mean over queries of the summed precision at each positive among the first k, "
        "divided by min(k, positives of the query)",
        citation=_CITATION,
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

AVERAGE_OF_CUTOFF = MEASURES.add(
    Measure(
        name="mAP-cutoff@k",
        description="as mAP@k, but divided by k, however few positives the query has",
        citation="a reading of mAP@k that published code takes; ties: McSherry and Najork, ECIR 2008",
        positives="all",
        per_query=_over_cutoff,
        compat=True,
    )
)

AVERAGE_OF_POSITIVES = MEASURES.add(
    Measure(
        name="mAP-positives@k",
        description="as mAP@k, but divided by all positives of the query, however many more than k there are",
        citation="trec_eval's map_cut; Buckley and Voorhees, SIGIR 2000",
        positives="all",
        per_query=_over_positives,
    )
)

AVERAGE_OF_HITS = MEASURES.add(
    Measure(
        name="mAP-hits@k",
        description="as mAP@k, but divided by the positives found among the first k, 0 when there are "
        "none: what Bleeker and de Rijke (ECIR 2022), Table 1, print as mAP@5",
        citation="Bleeker and de Rijke, ECIR 2022 (published code)",
        positives="all",
        per_query=_over_hits,
        compat=True,
    )
)
