"""A query's candidates: taking in what is above its threshold, raising the threshold, dropping what is below."""

from __future__ import annotations

import numpy as np
from numba import boolean, int32, int64, uint16, uint32

from diptych.index.kernels.jit import jit, mapped
from diptych.index.kernels.select import kth_largest
from diptych.index.kernels.simd import trailing_zeros

__all__ = ["BINS", "collected", "settled"]

_BIN = 7  # sums are counted by their upper 9 bits
BINS = (65_535 >> _BIN) + 1


@jit(int64, uint16[::1], int64, int64, int64[::1])
def _about_kth(values: np.ndarray, size: int, k: int, bins: np.ndarray) -> int:
    """At most the k-th largest value and less than a bin below it; cheaper than finding it."""
    bins[:] = 0
    for place in range(size):
        bins[values[place] >> _BIN] += 1
    above = 0
    for number in range(len(bins) - 1, -1, -1):
        above += bins[number]
        if above >= k:
            return number << _BIN
    return 0


@jit(int64, uint16[::1], int32[::1], int64, int64, int64, int64[::1], int64[::1], int64)
def _pruned(
    values: np.ndarray,
    slots: np.ndarray,
    size: int,
    k: int,
    window: int,
    bins: np.ndarray,
    thresholds: np.ndarray,
    query: int,
) -> int:
    """Raise the threshold and drop what is below it; returns how many candidates are left, still by slot."""
    if size < k:
        return size
    thresholds[query] = max(thresholds[query], _about_kth(values, size, k, bins) - window)
    left = 0
    for place in range(size):
        if values[place] >= thresholds[query]:
            values[left] = values[place]
            slots[left] = slots[place]
            left += 1
    return left


@jit(int64, uint16[::1], int32[::1], int64, int64, int64, boolean, int64[::1], int64)
def settled(
    values: np.ndarray,
    slots: np.ndarray,
    size: int,
    k: int,
    window: int,
    final: bool,
    thresholds: np.ndarray,
    query: int,
) -> int:
    """As :func:`_pruned`, with the k-th largest value itself; ``final``: exactly k are left."""
    if size < k:
        return size
    kth = np.int64(kth_largest(values, size, k))
    least = kth if final else max(np.int64(1), kth - window)
    equal = k
    for place in range(size):
        if values[place] > kth:
            equal -= 1  # of those equal to the k-th so many first ones stay
    left = 0
    for place in range(size):
        value = np.int64(values[place])
        if value < least:
            continue
        if final and value == kth:
            if equal == 0:
                continue
            equal -= 1
        values[left] = values[place]
        slots[left] = slots[place]
        left += 1
    # Later ones that are only equal would come behind.
    thresholds[query] = max(thresholds[query], kth + 1 if final else least)
    return left


@jit(
    int64,
    uint16[::1],
    uint32[::1],
    int64,
    int64,
    mapped(boolean),
    uint16[::1],
    int32[::1],
    int64,
    int64,
    int64,
    boolean,
    int64[::1],
    int64[::1],
    int64[::1],
    int64,
)
def collected(
    totals: np.ndarray,
    masks: np.ndarray,
    first: int,
    count: int,
    alive: np.ndarray,
    values: np.ndarray,
    slots: np.ndarray,
    size: int,
    k: int,
    window: int,
    final: bool,
    bins: np.ndarray,
    thresholds: np.ndarray,
    limits: np.ndarray,
    query: int,
) -> int:
    """Add a block's documents above the threshold; returns how many candidates there are, -1: too many."""
    capacity = len(values)
    for word in range(len(masks)):
        mask = masks[word]
        while mask:
            local = 32 * word + np.int64(trailing_zeros(mask))
            mask &= mask - np.uint32(1)
            value = totals[local]
            slot = first + local
            if slot >= count or value < thresholds[query] or (len(alive) and not alive[slot]):
                continue
            if size >= limits[query]:
                size = _pruned(values, slots, size, k, 0 if final else window, bins, thresholds, query)
                if size > capacity - (capacity >> 2) and capacity < count:
                    if not final:
                        return -1
                    size = settled(values, slots, size, k, window, final, thresholds, query)
                limits[query] = min(capacity, max(2 * size, limits[query]))
                if value < thresholds[query]:
                    continue
            values[size] = value
            slots[size] = slot
            size += 1
    return size
