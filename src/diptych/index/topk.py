"""The k rows of largest inner product, exactly: blocked products, a running threshold, one rule for ties.

A matrix product rounds the same two vectors differently at different places of the matrix, so its
scores can neither find ties nor order them. Here they only choose candidates, with a margin for
their rounding error; a candidate's score is then computed from its two vectors alone. So equal rows
have equal scores wherever they stand, and the result does not depend on how queries are batched.
"""

from __future__ import annotations

import numpy as np

from diptych.index.vectors import RowStore

_QUERIES = 1024
_SCORES = 1 << 22  # floats in one block of scores: 16 MB
_FEWEST_ROWS = 4096
_MOST_ROWS = 65_536
_PAIR_FLOATS = 1 << 22  # floats gathered at a time to score candidates
_SPARE = 32  # nearly equal candidates a query may carry along beyond 2k


def top_k(
    rows: RowStore, queries: np.ndarray, k: int, alive: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The best ``k`` rows for each query.

    Memory: one block of scores beside the result, whatever the number of rows, and the candidates,
    about k per query (up to one block more where very many scores are nearly equal, which also takes
    longer: each such pair is scored by itself).

    Args:
        queries: (q, d) float32.
        alive: (n,) bool, the rows that can be found; None: all.

    Returns:
        (q, k) int64 slots, best first, equal scores by slot, and (q, k) float32 scores.
    """
    slots = np.empty((len(queries), k), dtype=np.int64)
    scores = np.empty((len(queries), k), dtype=np.float32)
    for start in range(0, len(queries), _QUERIES):
        part = slice(start, start + _QUERIES)
        slots[part], scores[part] = _Search(rows, queries[part], k).run(alive)
    return slots, scores


def pair_scores(rows: RowStore, slots: np.ndarray, queries: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """(m,) float32: the inner product of row ``slots[i]`` and query ``owner[i]``, each pair by itself."""
    scores = np.empty(len(slots), dtype=np.float32)
    size = max(1, _PAIR_FLOATS // rows.width)
    for start in range(0, len(slots), size):
        part = slice(start, start + size)
        scores[part] = np.vecdot(rows.take(slots[part]), queries[owner[part]])
    return scores


def order_hits(slots: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """(q, m) int64: places along each row, larger scores first, equal ones by slot."""
    return np.lexsort((slots, -scores), axis=-1)


class _Search:
    """Candidates for one batch of queries: flat arrays, sorted by query, then by slot.

    So a stable sort by score is all that the rule for ties needs.
    """

    def __init__(self, rows: RowStore, queries: np.ndarray, k: int) -> None:
        self.rows, self.queries, self.k = rows, queries, k
        # |computed - true| <= d * u / (1 - d * u) * |x| * |y| for a float32 inner product in any order
        # of summation (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1), so twice
        # that may lie between two ways of computing it. Rounding of the norms and underflow: rounded up.
        width = rows.width
        self.unit = 2.1 * (width + 2) * np.finfo(np.float32).eps / 2
        self.floor = 4 * width * float(np.finfo(np.float32).tiny)
        self.query_norms = np.sqrt(np.vecdot(queries, queries)).astype(np.float64)
        self.threshold = np.full(len(queries), -np.inf)  # at most the true k-th best score
        self.owner = np.empty(0, dtype=np.int64)
        self.slots = np.empty(0, dtype=np.int64)
        self.scores = np.empty(0, dtype=np.float32)
        self.pending: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.pending_pairs = 0

    def run(self, alive: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        count = len(self.queries)
        size = min(_MOST_ROWS, max(_FEWEST_ROWS, _SCORES // count))
        buffer = np.empty(count * size, dtype=np.float32)
        for start, block in self.rows.blocks(size):
            scores = buffer[: count * len(block)].reshape(count, len(block))
            np.matmul(self.queries, block.T, out=scores)
            self._collect(start, scores, None if alive is None else alive[start : start + len(block)])
            if self.pending_pairs > len(self.slots):
                self._prune()
        self._prune()
        return self._finish()

    def _collect(self, start: int, scores: np.ndarray, alive: np.ndarray | None) -> None:
        if alive is not None and not alive.all():
            scores[:, ~alive] = -np.inf
        longest = float(self.rows.norms[start : start + scores.shape[1]].max())
        limit = self.threshold - self._error(self.query_norms, longest)
        if not np.isfinite(limit).all() and scores.shape[1] > self.k:
            limit = np.maximum(limit, self._first_limit(scores, longest))
        places = np.flatnonzero(scores >= np.nextafter(limit.astype(np.float32), -np.inf)[:, None])
        owner, column = np.divmod(places, scores.shape[1])
        found = scores.reshape(-1)[places]
        if alive is not None:
            kept = np.flatnonzero(alive[column])
            owner, column, found = owner[kept], column[kept], found[kept]
        self.pending.append((owner, column + start, found))
        self.pending_pairs += len(owner)

    def _first_limit(self, scores: np.ndarray, longest: float) -> np.ndarray:
        """Below it nothing of this block can be among its own k best."""
        kth = np.partition(scores, -self.k, axis=1)[:, -self.k].astype(np.float64)
        return np.asarray(kth - 2 * self._error(self.query_norms, longest))

    def _error(self, query_norms: np.ndarray, row_norms: np.ndarray | float) -> np.ndarray:
        return np.asarray(self.unit * query_norms * row_norms + self.floor)

    def _prune(self) -> None:
        """Keep of kept and pending candidates those that can still be among the best k."""
        parts = [(self.owner, self.slots, self.scores), *self.pending]
        owner, slots, scores = (np.concatenate([part[i] for part in parts]) for i in range(3))
        self.pending, self.pending_pairs = [], 0
        order = np.argsort(owner, kind="stable")
        self.owner, self.slots, self.scores = owner[order], slots[order], scores[order]
        error = self._error(self.query_norms[self.owner], self.rows.norms[self.slots])
        lowest = self._padded(self.scores - error, -np.inf)
        if lowest.shape[1] > self.k:
            lowest = np.partition(lowest, -self.k, axis=1)[:, -self.k :]
        if lowest.shape[1] == self.k:
            np.maximum(self.threshold, lowest.min(axis=1), out=self.threshold)
        self._keep(np.flatnonzero(self.scores + error >= self.threshold[self.owner]))
        if len(self.owner) > len(self.queries) * (2 * self.k + _SPARE):
            self._settle()

    def _settle(self) -> None:
        """Too many nearly equal: score the candidates for good and keep exactly k for each query."""
        self.scores = pair_scores(self.rows, self.slots, self.queries, self.owner)
        order = np.lexsort((-self.scores, self.owner))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = self._places()
        self._keep(np.flatnonzero(rank < self.k))

    def _keep(self, kept: np.ndarray) -> None:
        self.owner, self.slots, self.scores = self.owner[kept], self.slots[kept], self.scores[kept]

    def _places(self) -> np.ndarray:
        """0, 1, … within each query's candidates."""
        starts = np.searchsorted(self.owner, np.arange(len(self.queries)))
        return np.arange(len(self.owner)) - starts[self.owner]

    def _padded(self, values: np.ndarray, filler: float) -> np.ndarray:
        places = self._places()
        table = np.full((len(self.queries), int(places.max(initial=-1)) + 1), filler, dtype=values.dtype)
        table[self.owner, places] = values
        return table

    def _finish(self) -> tuple[np.ndarray, np.ndarray]:
        scores = self._padded(pair_scores(self.rows, self.slots, self.queries, self.owner), -np.inf)
        slots = self._padded(self.slots, -1)
        best = np.argsort(-scores, axis=1, kind="stable")[:, : self.k]
        return np.take_along_axis(slots, best, axis=1), np.take_along_axis(scores, best, axis=1)
