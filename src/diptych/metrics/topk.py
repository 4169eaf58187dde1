"""The k best of a gallery for each query: exact, in blocks, ties broken by the lower row.

A float32 product proposes a few more than k candidates (:mod:`diptych.metrics.topk`); they are scored
exactly (see :mod:`diptych.metrics.products`). Where the rounding bound cannot exclude that something better was
left out, the whole gallery is scored again for that query, first in float64, then exactly whatever
still lies within that type's bound: rare with real embeddings, the rule with a collapsed model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.core.context import track
from diptych.core.errors import DataError, UsageError
from diptych.metrics.products import check_rows, distinct, pair_scores, rounding_band

# Which rows may be among the k best: a fast product, a running threshold, and what is left out bounded.
#
# A tile of scores is compared with each query's threshold, the least score that it holds so far. Once some tiles are
# seen hardly anything passes, so that nearly all of the time is the matrix product's own.

_MANY = 4  # times as many new candidates as are kept: then a tile's own best are found first


def propose(
    queries: np.ndarray, gallery: np.ndarray, count: int, columns: int, allowed: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose float32 scores are the largest, in no order.

    Args:
        queries: (n, d) float32.
        gallery: (m, d) float32, read once, in blocks.
        allowed: (m,) booleans, the rows that can be found; None: all.

    Returns:
        (n, count) int64 rows, and (n,) float64 of what none of the rows left out exceeds: infinite where the product
        overflowed so that fewer were found, whose rows then say nothing.
    """
    can = len(gallery) if allowed is None else int(np.count_nonzero(allowed))
    if count == can:  # nothing to leave out
        every = np.arange(len(gallery)) if allowed is None else np.flatnonzero(allowed)
        return np.tile(every, (len(queries), 1)), np.full(len(queries), -np.inf)
    kept = _Kept(len(queries), count)
    buffer = np.empty(len(queries) * columns, dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for begin in range(0, len(gallery), columns):
            block = gallery[begin : begin + columns]
            scores = buffer[: len(queries) * len(block)].reshape(len(queries), len(block))
            np.matmul(queries, block.T, out=scores)
            kept.add(begin, scores, None if allowed is None else allowed[begin : begin + columns])
    return kept.finish()


class _Kept:
    """The best so far: flat arrays of pairs, at most ``count`` of each query, and those not yet looked at."""

    def __init__(self, n: int, count: int) -> None:
        self.n, self.count = n, count
        self.threshold = np.full(n, -np.inf, dtype=np.float32)  # what is not above it is left out
        self.pairs = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
        self.pending: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.waiting = 0

    def add(self, begin: int, scores: np.ndarray, allowed: np.ndarray | None) -> None:
        """Take the columns of a tile that pass; ``begin`` is its first row, ``allowed`` says which may."""
        places = np.flatnonzero(scores > self.threshold[:, None])  # what is no number does not pass
        if len(places) > _MANY * self.n * self.count and scores.shape[1] > self.count:
            # the first tile, or rows that get better and better: only a tile's own best can stay
            if allowed is not None:
                scores[:, ~allowed] = -np.inf
            best = np.partition(scores, -self.count, axis=1)[:, -self.count]
            limit = np.maximum(self.threshold, np.nextafter(best, -np.inf))
            places = np.flatnonzero(scores > limit[:, None])
        owner, column = np.divmod(places, scores.shape[1])
        if allowed is not None:
            can = allowed[column]
            places, owner, column = places[can], owner[can], column[can]
        self.pending.append((owner, column + begin, scores.reshape(-1)[places]))
        self.waiting += len(owner)
        if self.waiting > self.n * self.count:
            self.prune()

    def prune(self) -> None:
        """Look at what waits, and keep the best ``count`` of each query."""
        owner, rows, scores = (np.concatenate(parts) for parts in zip(self.pairs, *self.pending, strict=True))
        self.pending, self.waiting = [], 0
        order = np.lexsort((-scores, owner))
        owner, rows, scores = owner[order], rows[order], scores[order]
        starts = np.searchsorted(owner, np.arange(self.n + 1))
        stay = np.arange(len(owner)) - starts[owner] < self.count
        full = np.flatnonzero(np.diff(starts) >= self.count)
        self.threshold[full] = scores[starts[full] + self.count - 1]
        self.pairs = (owner[stay], rows[stay], scores[stay])

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        """As :func:`propose` returns."""
        self.prune()
        owner, rows, _ = self.pairs
        starts = np.searchsorted(owner, np.arange(self.n + 1))
        table = np.zeros((self.n, self.count), dtype=np.int64)
        table[owner, np.arange(len(owner)) - starts[owner]] = rows
        few = np.diff(starts) < self.count
        return table, np.where(few, np.inf, self.threshold.astype(np.float64))


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
        allowed: (m,) booleans, the gallery rows that can be found, which are then the m that count; None: all.

    Returns:
        (n, min(k, m)) int64 gallery rows, and their exact scores, float64.
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
