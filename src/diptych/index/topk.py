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


def top_k(
    rows: RowStore, queries: np.ndarray, k: int, alive: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best ``k`` rows for each query.

    Memory: one block of scores beside the result, whatever the number of rows; it takes longer where very many scores
    are nearly equal, for each such pair is scored by itself.

    Args:
        queries: (q, d) float32.
        alive: (n,) bool, the rows that can be found; None: all.

    Returns:
        (q, k) int64 slots, best first, equal scores by slot, and (q, k) float32 scores.
    """
    parts = [
        _best(rows, queries[start : start + _QUERIES], k, alive) for start in range(0, len(queries), _QUERIES)
    ]
    slots, scores = (np.concatenate(one) for one in zip(*parts, strict=True))
    return slots, scores


def _best(
    rows: RowStore, queries: np.ndarray, k: int, alive: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    # |computed - true| <= d * u / (1 - d * u) * |x| * |y| for a float32 inner product in any order of summation
    # (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1), so twice that may lie between two ways of
    # computing it. Rounding of the norms and underflow: rounded up.
    count, width = queries.shape
    lengths = np.sqrt(np.vecdot(queries, queries)).astype(np.float64)
    unit, tiny = 2.1 * (width + 2) * np.finfo(np.float32).eps / 2, float(np.finfo(np.float32).tiny)
    error = unit * lengths * float(rows.norms.max()) + 4 * width * tiny
    best = np.full((count, k), -np.inf, dtype=np.float32)  # scores of products
    size = min(_MOST_ROWS, max(_FEWEST_ROWS, _SCORES // count))
    buffer = np.empty(count * size, dtype=np.float32)
    pending: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # owner, slot and score of candidates

    def settled() -> tuple[np.ndarray, np.ndarray]:
        """Return the k best of the candidates by their scores for good."""
        owner, slots, found = (np.concatenate(part) for part in zip(*pending, strict=True))
        kept = np.flatnonzero(found >= (best.min(axis=1) - 2 * error)[owner])
        kept = kept[np.argsort(owner[kept], kind="stable")]  # by query, then by slot
        owner, slots = owner[kept], slots[kept]
        scores = _table(count, owner, pair_scores(rows, slots, queries, owner), -np.inf)
        # A stable sort by score is all that the rule for ties needs.
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        slots = np.take_along_axis(_table(count, owner, slots, -1), order, axis=1)
        return slots, np.take_along_axis(scores, order, axis=1)

    for start, block in rows.blocks(size):
        scores = buffer[: count * len(block)].reshape(count, len(block))
        np.matmul(queries, block.T, out=scores)
        if alive is not None:
            scores[:, ~alive[start : start + len(block)]] = -np.inf
        least = best.min(axis=1) - 2 * error
        if len(block) > k and not np.isfinite(least).all():
            least = np.maximum(least, np.partition(scores, -k, axis=1)[:, -k] - 2 * error)
        # The largest number is below every score, and above those of what is dead.
        least = np.maximum(np.nextafter(least.astype(np.float32), -np.inf), np.finfo(np.float32).min)
        places = np.flatnonzero(scores >= least[:, None])
        owner, column = np.divmod(places, len(block))
        pending.append((owner, start + column, scores.reshape(-1)[places]))
        best = np.concatenate([best, _table(count, owner, pending[-1][2], -np.inf)], axis=1)
        best = np.partition(best, -k, axis=1)[:, -k:]
        if sum(len(one) for one, _, _ in pending) > max(_SCORES, 2 * best.size):  # very many are nearly equal
            slots, best = settled()
            owner, place = np.nonzero(slots >= 0)
            pending = [(owner, slots[owner, place], best[owner, place])]
    return settled()


def _table(count: int, owner: np.ndarray, values: np.ndarray, filler: float) -> np.ndarray:
    """Return the values of each query, which stand together, as a row."""
    counts = np.bincount(owner, minlength=count)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    table = np.full((count, int(counts.max(initial=0))), filler, dtype=values.dtype)
    table[owner, place] = values
    return table


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
