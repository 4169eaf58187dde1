"""The measures, declared; docs/evaluation.md says what each of them is, and of which values compare.

DCG_CM: a labelled match has gain 1, any other item the cosine of query and candidate: by the evaluated model
(thesis Eq. 5.1), whose scale values depend on, or by a relevance model that is named in the protocol.

nDCG: the gain of an item is its grade (CxC's ratings from 0 to 5 with ``--positives cxc:FOLDER``), 0 for an
item without one, and the highest grade for a labelled match without one. Without grades a match has grade 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from diptych.metrics.bootstrap import FLOOR_MEDIAN, MEDIAN
from diptych.metrics.measuring import MEASURES, Gain, GainMeasure, Measure, Sum
from diptych.metrics.ranks import TieGroups, expected_reciprocal, found_within
from diptych.metrics.runs import blocks


def _measure(name: str, description: str, citation: str, looks_at: Any, per_query: Any, **more: Any) -> None:
    kind, what = (GainMeasure, "gain") if isinstance(looks_at, Gain) else (Measure, "positives")
    given = {"name": name, "description": description, "citation": citation, what: looks_at, **more}
    MEASURES.add(kind(per_query=per_query, **given))


def _of_best(
    groups: TieGroups, of: Callable[..., np.ndarray], cutoff: int | None, nothing: float = 0.0
) -> np.ndarray:
    """Return (n_queries,) a function of each query's best group; ``nothing`` for a query without a positive."""
    values, best = np.full(groups.n_queries, nothing), groups.best
    values[groups.query[best]] = of(
        groups.before[best], groups.negatives[best], groups.positives[best], cutoff
    )
    return values


_measure(
    "R@k",
    "share of queries with at least one positive among the first k (any-of-k; "
    "elsewhere called success or hit rate at k)",
    "Hodosh, Young and Hockenmaier, JAIR 2013; Karpathy and Fei-Fei, CVPR 2015",
    "best",
    lambda groups, k: _of_best(groups, found_within, k),
)

MEASURES.add(
    Sum(
        name="rsum",
        description="R@1 + R@5 + R@10 of both directions, in per cent: 600 at most",
        citation="Faghri et al., VSE++, BMVC 2018 (model selection in the published code)",
        parts=("R@1", "R@5", "R@10"),
    )
)

_measure(
    "P@k",
    "share of positives among the first k, always divided by k",
    "Manning, Raghavan and Schütze, Introduction to Information Retrieval, section 8.4",
    "all",
    lambda groups, k: groups.hits(np.full(groups.n_queries, k)) / k,
)

_measure(
    "R-precision",
    "share of positives among the first R, R being the positives of the query",
    "Musgrave, Belongie and Lim, ECCV 2020; Chun et al., ECCV Caption, ECCV 2022",
    "all",
    lambda groups, _: groups.hits(groups.relevant) / np.maximum(groups.relevant, 1),
)

_measure(
    "R-cap@k",
    "positives among the first k over min(k, positives of the query): what the thesis's "
    "Table 5.2 prints as recall",
    "Thakur et al., BEIR, NeurIPS 2021 (capped recall); published code of thesis chapter 5",
    "all",
    lambda groups, k: (
        groups.hits(np.full(groups.n_queries, k)) / np.maximum(np.minimum(groups.relevant, k), 1)
    ),
    compat=True,
)


_VOORHEES = "Voorhees, TREC-8 question answering track report, 1999"


def best_ranks(groups: TieGroups) -> np.ndarray:
    """Return (n_queries,) the rank of the best, expected where ties leave it open; after the last without one."""
    # Negatives fall evenly into the gaps before, between and behind the group's positives.
    return _of_best(
        groups,
        lambda before, negatives, positives, _: before + 1 + negatives / (positives + 1),
        None,
        groups.gallery + 1.0,
    )


def _chance_median(relevant: np.ndarray, gallery: int, ranked: int) -> float:
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


_measure(
    "medr",
    "median rank of the best positive (any-of-k), the mean of the middle two for an "
    "even number of queries; its chance level is the median over all queries and orders",
    "Hodosh, Young and Hockenmaier, JAIR 2013",
    "best",
    lambda groups, _: best_ranks(groups),
    kind="rank",
    aggregate=MEDIAN,
    chance_of=_chance_median,
)

_measure(
    "medr-floor",
    "median rank of the best positive (any-of-k) rounded down, as published code does",
    "Faghri et al., VSE++, BMVC 2018 (published code)",
    "best",
    lambda groups, _: best_ranks(groups),
    kind="rank",
    aggregate=FLOOR_MEDIAN,
    chance_of=_chance_median,
    compat=True,
)

_measure(
    "meanr",
    "mean rank of the best positive (any-of-k)",
    "Faghri et al., VSE++, BMVC 2018",
    "best",
    lambda groups, _: best_ranks(groups),
    kind="rank",
)

_measure(
    "MRR",
    "mean of 1 / rank of the best positive (any-of-k)",
    _VOORHEES,
    "best",
    lambda groups, _: _of_best(groups, expected_reciprocal, None),
)

_measure(
    "MRR@k",
    "mean of 1 / rank of the best positive (any-of-k), 0 when it is not among the first k",
    _VOORHEES,
    "best",
    lambda groups, k: _of_best(groups, expected_reciprocal, k),
)


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
    for here in blocks(len(cut), _CHUNK_NUMBERS // (limit + 1)):
        some = cut[here]
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


_AP_CITATION = "Buckley and Voorhees, SIGIR 2000; ties: McSherry and Najork, ECIR 2008"

_measure(
    "mAP",
    "mean over queries of the mean over all positives of the precision at its rank",
    _AP_CITATION,
    "all",
    _average_precision,
)

_measure(
    "mAP@k",
    "mean over queries of the summed precision at each positive among the first k, "
    "divided by min(k, positives of the query)",
    _AP_CITATION,
    "all",
    _average_precision,
)

_measure(
    "mAP@R",
    "mean over queries of the summed precision at each positive among the first R, "
    "divided by R, the positives of the query",
    "Musgrave, Belongie and Lim, ECCV 2020; Chun et al., ECCV Caption, ECCV 2022",
    "all",
    lambda groups, _: _sum_up_to(groups, groups.relevant) / np.maximum(groups.relevant, 1),
)

_measure(
    "mAP-cutoff@k",
    "as mAP@k, but divided by k, however few positives the query has",
    "a reading of mAP@k that published code takes; ties: McSherry and Najork, ECIR 2008",
    "all",
    lambda groups, k: _sum_at(groups, k) / k,
    compat=True,
)

_measure(
    "mAP-positives@k",
    "as mAP@k, but divided by all positives of the query, however many more than k there are",
    "trec_eval's map_cut; Buckley and Voorhees, SIGIR 2000",
    "all",
    lambda groups, k: _sum_at(groups, k) / np.maximum(groups.relevant, 1),
)

_measure(
    "mAP-hits@k",
    "as mAP@k, but divided by the positives found among the first k, 0 when there are "
    "none: what Bleeker and de Rijke (ECIR 2022), Table 1, print as mAP@5",
    "Bleeker and de Rijke, ECIR 2022 (published code)",
    "all",
    _over_hits,
    compat=True,
)


_CM_CITATION = "Hendriksen, Multimodal machine learning for information retrieval, 2025, Eq. 5.1 and 5.2"
_DIGITS = 4


def discounts(depth: int) -> np.ndarray:
    """Return (depth,) 1 / log2(place + 1), places from 1 (Järvelin and Kekäläinen, TOIS 2002; thesis Eq. 5.2)."""
    weights: np.ndarray = 1.0 / np.log2(np.arange(2, depth + 2))
    return weights


def discounted_gain(gains: np.ndarray, best: np.ndarray | None = None) -> np.ndarray:
    """Return (n,) sums of (n, places) gains, each divided by log2(place + 1)."""
    total: np.ndarray = gains @ discounts(gains.shape[1])
    return total


def normalised_gain(gains: np.ndarray, best: np.ndarray | None) -> np.ndarray:
    """Return (n,) discounted gain over that of the (n, places) ``best`` gains, descending; 0 where that is 0."""
    assert best is not None
    most = discounted_gain(best)
    ratio = np.divide(discounted_gain(gains), most, out=np.zeros(len(most)), where=most > 0)
    normalised: np.ndarray = np.minimum(ratio, 1.0)  # what rounding may add in the last digit
    return normalised


CLAMPED = Gain("similarity", lambda similarity: np.clip(similarity, 0.0, 1.0), "clamped to [0, 1]")
ROUNDED = Gain(
    "similarity", lambda similarity: np.round(similarity, _DIGITS), "rounded to 4 digits and not clamped"
)
LINEAR = Gain("grade", lambda grade: grade, "the grade")
EXPONENTIAL = Gain("grade", lambda grade: np.exp2(grade) - 1.0, "2^grade - 1")

_measure(
    "DCG_CM@k",
    "discounted gain of the first k: 1 for a match, else the cosine of query and item (clamped "
    "to [0, 1]) by the evaluated model, or by the one of --relevance; over log2(place + 1)",
    _CM_CITATION,
    CLAMPED,
    discounted_gain,
)

_measure(
    "DCG_CM-published@k",
    "as DCG_CM@k with cosines rounded to 4 digits and not clamped, and the sum rounded to 4; "
    "published with a fixed CLIP ViT-B/32 as relevance model",
    f"{_CM_CITATION} (published code)",
    ROUNDED,
    lambda gains, _: np.round(discounted_gain(gains), _DIGITS),
    compat=True,
)

_measure(
    "nDCG_CM@k",
    "DCG_CM@k over the greatest that any order of the gallery reaches under the same gains "
    "(all matches first, then the most similar): 1 at most, and 0 where nothing has any gain",
    _CM_CITATION,
    CLAMPED,
    normalised_gain,
    needs_best=True,
)

_measure(
    "nDCG@k",
    "discounted gain of the first k over the greatest there is, the gain being the grade (1 for "
    "a match without --positives that have grades); 0 where nothing has a grade",
    "Järvelin and Kekäläinen, ACM TOIS 2002",
    LINEAR,
    normalised_gain,
    needs_best=True,
)

_measure(
    "nDCG-exponential@k",
    "as nDCG@k with 2^grade - 1 as the gain, which tells the highest grades apart",
    "Burges et al., ICML 2005",
    EXPONENTIAL,
    normalised_gain,
    needs_best=True,
)
