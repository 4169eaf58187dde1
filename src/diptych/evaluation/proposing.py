"""Which rows may be among the k best: a fast product, a running threshold, and what is left out bounded.

A tile of scores is compared with each query's threshold, the least score that it holds so far. Once some tiles are
seen hardly anything passes, so that nearly all of the time is the matrix product's own.
"""

from __future__ import annotations

import numpy as np

__all__ = ["propose"]

_MANY = 4  # times as many new candidates as are kept: then a tile's own best are found first


def propose(
    queries: np.ndarray, gallery: np.ndarray, count: int, columns: int, allowed: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose float32 scores are the largest, in no order.

    Args:
        queries: (n, d) float32.
        gallery: (m, d) float32, read once, in blocks.
        count: how many of each query, from 1 to the number of rows that can be found.
        columns: rows of a block.
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
