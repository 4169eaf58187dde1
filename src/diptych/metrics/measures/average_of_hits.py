"""mAP-hits@k: average precision as published code for several papers computes it.

The precision at each positive among the first k is averaged over *those* positives, not over all that
could be there: a query with one positive at rank 1 and four beyond k has 1, where mAP@5 has 1/5. A
query with no positive among the first k has 0. Table 1 of Bleeker and de Rijke (ECIR 2022) prints
this number for images asking for captions, under the name mAP@5.
"""

from __future__ import annotations

import numpy as np

from diptych.metrics.measures.average_precision import summed_precision
from diptych.metrics.measuring import MEASURES, Measure
from diptych.metrics.ties import TieGroups

_CHUNK_NUMBERS = 1 << 20


def _average_of_hits(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    """The expectation of a ratio: over how many hits there are, and then over where they are.

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
    """(c,) values of queries whose group is cut after ``places`` of its items."""
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


AVERAGE_OF_HITS = MEASURES.add(
    Measure(
        name="mAP-hits@k",
        description="as mAP@k, but divided by the positives found among the first k, 0 when there are "
        "none: what Bleeker and de Rijke (ECIR 2022), Table 1, print as mAP@5",
        citation="Bleeker and de Rijke, ECIR 2022 (published code)",
        positives="all",
        per_query=_average_of_hits,
        compat=True,
    )
)
