"""The k-th largest of a query's candidates, and the candidates in order."""

from __future__ import annotations

import numpy as np
from numba import float32, int64, types, uint16

from diptych.index.kernels.jit import jit


@jit(uint16, uint16[::1], int64, int64)
def kth_largest(values: np.ndarray, count: int, k: int) -> int:
    """The k-th largest of the first ``count`` values (Hoare's selection)."""
    room = values[:count].copy()
    low, high, wanted = 0, count - 1, k - 1
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
        if wanted <= right:
            high = right
        elif wanted >= left:
            low = left
        else:
            break
    return int(room[wanted])


@jit(types.void, float32[::1], int64[::1], int64, int64[::1], float32[::1], int64)
def ordered(
    scores: np.ndarray, slots: np.ndarray, count: int, best: np.ndarray, best_scores: np.ndarray, k: int
) -> None:
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
