"""The measures; ``measures.toml`` describes each and names its source.

DCG_CM: a labelled match has gain 1, any other item the cosine of query and candidate: by the evaluated model
(thesis Eq. 5.1), whose scale values depend on, or by a relevance model that is named in the protocol.

nDCG: the gain of an item is its grade (CxC's ratings from 0 to 5 with ``--positives cxc:FOLDER``), 0 for an
item without one, and the highest grade for a labelled match without one. Without grades a match has grade 1.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.reading import read_toml
from diptych.metrics.bootstrap import FLOOR_MEDIAN, MEDIAN
from diptych.metrics.measuring import MEASURES, Gain, GainMeasure, Measure, Sum
from diptych.metrics.ranks import TieGroups, expected_reciprocal, found_within
from diptych.metrics.runs import blocks

_CHUNK_NUMBERS = 1 << 20
_DIGITS = 4

_PerQuery = Callable[[TieGroups, Any], np.ndarray]  # from tie groups and cut-off to one value per query


def _of_best(
    groups: TieGroups, of: Callable[..., np.ndarray], cutoff: int | None, nothing: float = 0.0
) -> np.ndarray:
    """Return (n_queries,) a function of each query's best group; ``nothing`` for a query without a positive."""
    values, best = np.full(groups.n_queries, nothing), groups.best
    values[groups.query[best]] = of(
        groups.before[best], groups.negatives[best], groups.positives[best], cutoff
    )
    return values


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
    single = (end > begin) * (1 + found) / (before + 1)  # one item: no difference of harmonic numbers
    return np.asarray(np.where(size == 1, single, gain * groups.positives / size))


def _sum_up_to(groups: TieGroups, limit: np.ndarray) -> np.ndarray:
    """Return (n_queries,) expected sums of precisions at the positives among the first ``limit``."""
    gain = summed_precision(groups, limit[groups.query])
    return np.asarray(np.bincount(groups.query, weights=gain, minlength=groups.n_queries))


def _sum_at(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    limit = groups.gallery if cutoff is None else min(cutoff, groups.gallery)
    return _sum_up_to(groups, np.full(groups.n_queries, limit))


def _average_precision(groups: TieGroups, cutoff: int | None) -> np.ndarray:
    limit = groups.gallery if cutoff is None else min(cutoff, groups.gallery)
    return np.asarray(_sum_at(groups, cutoff) / np.maximum(np.minimum(groups.relevant, limit), 1))


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
    from scipy.stats import hypergeom

    positives, negatives, before, found = (
        values[some, None] for values in (groups.positives, groups.negatives, groups.before, groups.found)
    )
    x = places[:, None]
    h = np.arange(int(min(places.max(), positives.max())) + 1)[None, :]
    weights = hypergeom.pmf(h, positives + negatives, positives, x)
    # Precision at the places s + 1 … s + x, h of which are hits; see summed_precision.
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, int((before + x).max()) + 1))])
    slope = (h - 1) / np.maximum(x - 1, 1)
    reciprocals = harmonic[before + x] - harmonic[before]
    gain = ((1 + found - slope * (before + 1)) * reciprocals + slope * x) * h / x
    ratios = (sums[:, None] + gain) / np.maximum(hits[:, None] + h, 1)
    return np.asarray(np.sum(weights * ratios, axis=1))


def discounts(depth: int) -> np.ndarray:
    """Return (depth,) 1 / log2(place + 1), places from 1 (Järvelin and Kekäläinen, TOIS 2002; thesis Eq. 5.2)."""
    return np.asarray(1.0 / np.log2(np.arange(2, depth + 2)))


def discounted_gain(gains: np.ndarray, best: np.ndarray | None = None) -> np.ndarray:
    """Return (n,) sums of (n, places) gains, each divided by log2(place + 1)."""
    return np.asarray(gains @ discounts(gains.shape[1]))


def normalised_gain(gains: np.ndarray, best: np.ndarray | None) -> np.ndarray:
    """Return (n,) discounted gain over that of the (n, places) ``best`` gains, descending; 0 where that is 0."""
    assert best is not None
    most = discounted_gain(best)
    ratio = np.divide(discounted_gain(gains), most, out=np.zeros(len(most)), where=most > 0)
    return np.asarray(np.minimum(ratio, 1.0))  # what rounding may add in the last digit


def _best(of: Callable[..., np.ndarray]) -> _PerQuery:
    return lambda groups, k: _of_best(groups, of, k)


def _hits(groups: TieGroups, k: int) -> np.ndarray:
    return groups.hits(np.full(groups.n_queries, k))


_MEASURES: Mapping[str, _PerQuery] = {
    "R@k": _best(found_within),
    "P@k": lambda groups, k: _hits(groups, k) / k,
    "R-precision": lambda groups, _: groups.hits(groups.relevant) / np.maximum(groups.relevant, 1),
    "R-cap@k": lambda groups, k: _hits(groups, k) / np.clip(groups.relevant, 1, k),
    "medr": lambda groups, _: best_ranks(groups),
    "medr-floor": lambda groups, _: best_ranks(groups),
    "meanr": lambda groups, _: best_ranks(groups),
    "MRR": _best(expected_reciprocal),
    "MRR@k": _best(expected_reciprocal),
    "mAP": _average_precision,
    "mAP@k": _average_precision,
    "mAP@R": lambda groups, _: _sum_up_to(groups, groups.relevant) / np.maximum(groups.relevant, 1),
    "mAP-cutoff@k": lambda groups, k: _sum_at(groups, k) / k,
    "mAP-positives@k": lambda groups, k: _sum_at(groups, k) / np.maximum(groups.relevant, 1),
    "mAP-hits@k": _over_hits,
}
_MEDIANS = {"medr": MEDIAN, "medr-floor": FLOOR_MEDIAN}

_CLAMPED = Gain("similarity", lambda similarity: np.clip(similarity, 0.0, 1.0), "clamped to [0, 1]")
_ROUNDED = Gain(
    "similarity", lambda similarity: np.round(similarity, _DIGITS), "rounded to 4 digits and not clamped"
)
_GAINS: Mapping[str, tuple[Gain, Callable[[np.ndarray, Any], np.ndarray]]] = {
    "DCG_CM@k": (_CLAMPED, discounted_gain),
    "DCG_CM-published@k": (_ROUNDED, lambda gains, _: np.round(discounted_gain(gains), _DIGITS)),
    "nDCG_CM@k": (_CLAMPED, normalised_gain),
    "nDCG@k": (Gain("grade", lambda grade: grade, "the grade"), normalised_gain),
    "nDCG-exponential@k": (Gain("grade", lambda grade: np.exp2(grade) - 1.0, "2^grade - 1"), normalised_gain),
}

for _name, _given in read_toml(Path(__file__).with_suffix(".toml")).items():
    if _name in _GAINS:
        _gain, _of = _GAINS[_name]
        _best_too = _of is normalised_gain
        MEASURES.add(GainMeasure(name=_name, gain=_gain, per_query=_of, needs_best=_best_too, **_given))
    elif _name in _MEASURES:
        _more: dict[str, Any] = {}
        if _name in _MEDIANS:
            _more = {"aggregate": _MEDIANS[_name], "chance_of": _chance_median}
        MEASURES.add(Measure(name=_name, per_query=_MEASURES[_name], **_more, **_given))
    else:
        MEASURES.add(Sum(name=_name, **{**_given, "parts": tuple(_given["parts"])}))
