"""The k best of a gallery for each query: exact, in blocks, ties broken by the lower row.

A float32 product proposes a few more than k candidates (:mod:`diptych.evaluation.proposing`); they are scored
exactly (see :mod:`diptych.evaluation.products`). Where the rounding bound cannot exclude that something better was
left out, the whole gallery is scored again for that query, first in float64, then exactly whatever
still lies within that type's bound: rare with real embeddings, the rule with a collapsed model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.core.errors import DataError, UsageError
from diptych.core.progress import track
from diptych.evaluation.products import check_rows, distinct, pair_scores, rounding_band
from diptych.evaluation.proposing import propose

__all__ = ["top_k"]

_SPARE = 16  # candidates beyond k
_QUERIES = 1000
_CAREFUL_NUMBERS = 1 << 20  # float64 numbers of the gallery held at once


def top_k(
    queries: np.ndarray,
    gallery: np.ndarray,
    k: int,
    *,
    block: int = 2_500_000,
    allowed: np.ndarray | None = None,
    query_ids: Sequence[str] | None = None,
    gallery_ids: Sequence[str] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The best ``min(k, m)`` gallery rows of every query, best first.

    Memory: the block, and 8 bytes per gallery row, which is read from its file as often as there are blocks of
    queries.

    Args:
        queries: (n, d) float32 rows, possibly memory-mapped.
        gallery: (m, d) float32 rows.
        k: how many.
        block: scores held at once.
        allowed: (m,) booleans, the gallery rows that can be found, which are then the m that count; None: all.
        query_ids: for messages.
        gallery_ids: for messages.

    Returns:
        (n, min(k, m)) int64 gallery rows, and their exact scores, float64.

    Raises:
        UsageError: k or block below 1.
        DataError: an empty gallery, or nothing in it that can be found, different widths, not float32.
        NumericalError: a row that is not finite, named.
    """
    for what, value in (("k", k), ("block", block)):
        if value < 1:
            raise UsageError(f"{what} is {value}, it must be at least 1")
    queries, gallery = np.asarray(queries), np.asarray(gallery)
    query_norms = check_rows(queries, "query", query_ids)
    gallery_norms = check_rows(gallery, "gallery", gallery_ids)
    if queries.shape[1] != gallery.shape[1] or not len(gallery):
        raise DataError(f"queries of shape {queries.shape} cannot search a gallery of {gallery.shape}")
    can = len(gallery) if allowed is None else int(np.count_nonzero(allowed))
    if allowed is not None and (len(allowed) != len(gallery) or not can):
        raise DataError(f"{can} of {len(allowed)} rows can be found in a gallery of {len(gallery)}")
    k = min(k, can)
    widest = float(gallery_norms.max())
    rows = np.empty((len(queries), k), dtype=np.int64)
    scores = np.empty((len(queries), k), dtype=np.float64)
    step = min(_QUERIES, block)
    for begin in track(range(0, len(queries), step), "top k", unit="blocks"):
        here = slice(begin, begin + step)
        part, norms = queries[here], query_norms[here]
        band = rounding_band(queries.shape[1], np.dtype(np.float32), norms, widest)
        count = min(k + _SPARE, can)
        candidates, worst = propose(part, gallery, count, max(1, block // step), allowed)
        rows[here], scores[here] = _best_of(part, gallery, candidates, k)
        if count == can:
            continue
        # What was left out scores at most `worst` + band; it must be less than the k-th best.
        unsure = np.flatnonzero(~(worst < scores[here][:, -1] - band))
        if not len(unsure):
            continue
        close = rounding_band(queries.shape[1], np.dtype(np.float64), norms, widest)
        parts = -(-len(unsure) * len(gallery) // block)
        for some in np.array_split(unsure, min(parts, len(unsure))):
            again = begin + some
            rows[again], scores[again] = _search_all(queries[again], gallery, k, close[some], allowed)
    return rows, scores


def _best_of(
    queries: np.ndarray, gallery: np.ndarray, candidates: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """The best k of each query's candidates by exact score, then by lower row."""
    which = np.repeat(np.arange(len(queries)), candidates.shape[1])
    scores = pair_scores(queries, gallery, which, candidates.reshape(-1)).reshape(candidates.shape)
    order = np.lexsort((candidates, -scores))[:, :k]
    return np.take_along_axis(candidates, order, axis=1), np.take_along_axis(scores, order, axis=1)


def _search_all(
    queries: np.ndarray, gallery: np.ndarray, k: int, band: np.ndarray, allowed: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Some queries against everything, in float64, then exactly within the float64 bound."""
    rows = np.empty((len(queries), k), dtype=np.int64)
    scores = np.empty((len(queries), k), dtype=np.float64)
    near = np.empty((len(queries), len(gallery)))
    wide = queries.astype(np.float64)
    step = max(1, _CAREFUL_NUMBERS // max(1, queries.shape[1]))
    for begin in range(0, len(gallery), step):
        near[:, begin : begin + step] = wide @ gallery[begin : begin + step].astype(np.float64).T
    if allowed is not None:
        near[:, ~allowed] = -np.inf
    candidates = first = of = np.empty(0, dtype=np.int64)
    for query, values in enumerate(near):
        least = np.partition(values, len(values) - k)[-k] - 2 * band[query]
        found = np.flatnonzero(values >= least)
        if not np.array_equal(found, candidates):  # in a collapsed model every query finds the same
            candidates = found
            first, of = distinct(gallery[candidates])
        this = np.full(len(first), query)
        exact = pair_scores(queries, gallery, this, candidates[first])[of]
        order = np.argsort(-exact, kind="stable")[:k]  # candidates ascend, so the lower row comes first
        rows[query], scores[query] = candidates[order], exact[order]
    return rows, scores
