"""Scores of single pairs of a document and a query, and the best in order."""

from typing import Any

import numpy as np
from numba import float32, int32, int64, types, uint16

from diptych.index.kernels.jit import ROWS, Array, Rows, jit
from diptych.index.kernels.simd import prefetch


@jit(uint16, uint16[::1], int64, int64)
def kth_largest(values: Array, count: int, k: int) -> int:
    """The k-th largest of the first ``count`` values (Hoare's selection)."""
    room = values[:count].copy()
    low, high, place = 0, count - 1, k - 1
    while low < high:
        pivot = room[(low + high) >> 1]
        left, right = low, high
        while left <= right:
            while room[left] > pivot:
                left += 1
            while room[right] < pivot:
                right -= 1
            if left <= right:
                room[left], room[right] = room[right], room[left]
                left += 1
                right -= 1
        if place <= right:
            high = right
        elif place >= left:
            low = left
        else:
            break
    return int(room[place])


@jit(types.void, float32[::1], int64[::1], int64, int64[::1], float32[::1], int64)
def ordered(scores: Array, slots: Array, count: int, best: Array, best_scores: Array, k: int) -> None:
    """The first ``k`` of ``count`` positive scores and their slots, larger scores first, equal ones by slot.

    The bits of a positive float32 are in the order of its value, so that a score and a slot below 2^32 are
    one whole number to sort.
    """
    keys = np.empty(count, dtype=np.uint64)
    bits = scores.view(np.uint32)
    for place in range(count):
        keys[place] = (np.uint64(0xFFFFFFFF - bits[place]) << np.uint64(32)) | np.uint64(slots[place])
    keys.sort()
    best_bits = best_scores.view(np.uint32)
    for place in range(min(k, count)):
        best[place] = np.int64(keys[place] & np.uint64(0xFFFFFFFF))
        best_bits[place] = np.uint32(np.uint64(0xFFFFFFFF) - (keys[place] >> np.uint64(32)))


# Slots and scores of the best, and how many they are.
BEST = int64[:, ::1], float32[:, ::1], int64[::1]

_AHEAD = 8  # candidates


@jit(int64, int64)
def _power(width: int) -> int:
    power = 1
    while power < width:
        power *= 2
    return power


@jit(inline=True)
def _score(columns: Any, weights: Any, start: int, end: int, table: Any) -> Any:
    """Σ of the products, in double precision and always in this order: the same pair, the same score.

    The table's length is a power of two, so that a column of a corrupt file reads no other memory.
    """
    last = np.int32(len(table) - 1)
    first = second = third = fourth = 0.0
    position = start
    while position + 4 <= end:
        first += np.float64(weights[position]) * np.float64(table[columns[position] & last])
        second += np.float64(weights[position + 1]) * np.float64(table[columns[position + 1] & last])
        third += np.float64(weights[position + 2]) * np.float64(table[columns[position + 2] & last])
        fourth += np.float64(weights[position + 3]) * np.float64(table[columns[position + 3] & last])
        position += 4
    while position < end:
        first += np.float64(weights[position]) * np.float64(table[columns[position] & last])
        position += 1
    return np.float32((first + second) + (third + fourth))


@jit(inline=True)
def _fetch(columns: Any, weights: Any, start: int, end: int) -> None:
    """Have a row brought into the cache; without it reading rows here and there waits for memory."""
    for line in range(4 * start, 4 * end, 64):
        prefetch(columns.ctypes.data + line)
        prefetch(weights.ctypes.data + line)


@jit(types.void, ROWS, ROWS, int64, int64, int32[:, ::1], int64, *BEST)
def rescore(
    rows: Rows,
    queries: Rows,
    first: int,
    width: int,
    slots: Array,
    k: int,
    best: Array,
    best_scores: Array,
    found: Array,
) -> None:
    """The ``k`` best of each query's candidates, scored one by one; ``found`` becomes how many these are.

    Candidates that share no term with the query are not among them; a query with ``found`` below 0 is skipped.
    ``first`` is the query that the first row of ``slots`` is for.
    """
    indptr, columns, weights = rows
    query_indptr, query_columns, query_weights = queries
    table = np.zeros(_power(width), dtype=np.float32)
    scores = np.empty(slots.shape[1], dtype=np.float32)
    kept = np.empty(slots.shape[1], dtype=np.int64)
    for query in range(len(found)):
        if found[query] <= 0:
            continue
        start, end = query_indptr[first + query], query_indptr[first + query + 1]
        for position in range(start, end):
            table[query_columns[position]] = query_weights[position]
        size = 0
        for place in range(found[query]):
            if place + _AHEAD < found[query]:
                later = slots[query, place + _AHEAD]
                _fetch(columns, weights, indptr[later], indptr[later + 1])
            slot = np.int64(slots[query, place])
            score = _score(columns, weights, indptr[slot], indptr[slot + 1], table)
            if score > 0:
                scores[size] = score
                kept[size] = slot
                size += 1
        for position in range(start, end):
            table[query_columns[position]] = 0
        ordered(scores, kept, size, best[query], best_scores[query], k)
        found[query] = min(size, k)
