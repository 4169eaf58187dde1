"""Find the documents that can be among a query's best: integer sums over all documents, block by block."""

from __future__ import annotations

import numpy as np
from numba import boolean, int32, int64, types, uint8, uint16, uint32

from diptych.index.kernels import GROUP
from diptych.index.kernels.jit import PREPARED, jit, mapped
from diptych.index.kernels.rows import kth_largest
from diptych.index.kernels.simd import ROUND, add_rows, prefetch, trailing_zeros

_BIN = 7  # sums are counted by their upper 9 bits
BINS = (65_535 >> _BIN) + 1

_SUMS = uint16[::1], uint32[::1]
_CANDIDATES = uint16[::1], int32[::1], int64, int64, int64
_COUNTERS = int64[::1], int64[::1], int64[::1]
_CODES = mapped(uint16), mapped(uint8)
POSTINGS = mapped(uint8, 3), mapped(uint8, 3), mapped(int64), mapped(int32, 2), *_CODES, int64
_FOUND = uint16[:, ::1], int32[:, ::1], int64[::1], int64[::1]


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


@jit(int64, *_CANDIDATES, int64[::1], int64[::1], int64)
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


@jit(int64, *_CANDIDATES, boolean, int64[::1], int64)
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


@jit(int64, *_SUMS, int64, int64, mapped(boolean), *_CANDIDATES, boolean, *_COUNTERS, int64)
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


# Queries whose sums over a span of documents are kept together: while they pass, rows come from the cache.
_TILE = 64

_SPARE = 32  # candidates beyond 2k before the threshold is raised for the first time


@jit(boolean, *_CODES, int64, mapped(int32), int32[::1], uint32[::1], int64, int64, uint16[::1])
def _scatter(
    documents: np.ndarray,
    codes: np.ndarray,
    base: int,
    offsets: np.ndarray,
    lists: np.ndarray,
    weights: np.ndarray,
    start: int,
    end: int,
    sums: np.ndarray,
) -> bool:
    """Add the posting lists of a query to its sums over one span; returns whether there were any postings.

    The number of sums is a power of two, so that a number of a corrupt file writes nowhere else.
    """
    last = np.int64(len(sums) - 1)
    touched = False
    for term in range(start, end):  # lists lie here and there: their reads shall wait for memory together
        begin = base + offsets[lists[term]]
        for position in range(begin, base + offsets[lists[term] + 1], 32):
            prefetch(documents.ctypes.data + 2 * position)
            prefetch(codes.ctypes.data + position)
    for term in range(start, end):
        begin = base + offsets[lists[term]]
        stop = base + offsets[lists[term] + 1]
        touched = touched or stop > begin
        weight = weights[term]
        for position in range(begin, stop):
            document = np.int64(documents[position]) & last
            sums[document] += np.uint16((weight * np.uint32(codes[position])) >> np.uint32(8))
    return touched


@jit(types.void, mapped(uint8, 2), int64[::1], uint16[::1], int64, int64, int64, uint16[:, ::1])
def _bound(
    bounds: np.ndarray,
    rows: np.ndarray,
    weights: np.ndarray,
    block: int,
    start: int,
    end: int,
    rests: np.ndarray,
) -> None:
    """Per round and group, what a query's hubs of that round and of later ones can add to a document's sum."""
    total = np.zeros(bounds.shape[1], dtype=np.uint16)
    for term in range(end - 1, start - 1, -1):
        weight, codes = np.uint32(weights[term]), bounds[rows[term] // block]
        for group in range(len(total)):
            total[group] += np.uint16(np.uint32(weight * np.uint32(codes[group])) >> np.uint32(8))
        if (term - start) % ROUND == 0:
            rests[(term - start) // ROUND] = total


@jit(inline=True)
def _any(masks: np.ndarray) -> bool:
    found = np.uint32(0)
    for word in range(len(masks)):
        found |= masks[word]
    return bool(found != 0)


@jit(types.void, *POSTINGS, mapped(boolean), int64, *PREPARED, int64[::1], boolean, int64, *_FOUND)
def scan(
    hubs: np.ndarray,
    bounds: np.ndarray,
    starts: np.ndarray,
    offsets: np.ndarray,
    documents: np.ndarray,
    codes: np.ndarray,
    span: int,
    alive: np.ndarray,
    count: int,
    hub_rows: np.ndarray,
    hub_weights: np.ndarray,
    hub_ends: np.ndarray,
    lists: np.ndarray,
    list_weights: np.ndarray,
    list_ends: np.ndarray,
    windows: np.ndarray,
    final: bool,
    k: int,
    values: np.ndarray,
    slots: np.ndarray,
    found: np.ndarray,
    thresholds: np.ndarray,
) -> None:
    """Per query the documents whose sum can belong to one of the ``k`` best.

    Args:
        hubs: (blocks, hubs, block) codes of frequent terms, laid out for :func:`add_rows`.
        bounds: (spans, hubs, span // GROUP) the largest code of each hub in each group of documents.
        offsets: (spans, lists + 1) where each list begins within its span's postings.
        alive: (documents,) which can be found; empty: all.
        values, slots: (queries, room) the candidates' sums and numbers, at least 2k wide or a column for each
            document.
        found: (queries,) how many they are; -1: more than there is room for.
        thresholds: (queries,) the least sum of a candidate.
    """
    block = hubs.shape[2]
    sums = np.zeros((min(_TILE, len(found)), span), dtype=np.uint16)
    touched = np.zeros(_TILE, dtype=np.bool_)
    totals = np.zeros(block, dtype=np.uint16)
    masks = np.zeros(block // 32, dtype=np.uint32)
    bins = np.empty(BINS, dtype=np.int64)
    limits = np.full(len(found), min(values.shape[1], 2 * k + _SPARE))
    sum_address, total_address, mask_address = sums.ctypes.data, totals.ctypes.data, masks.ctypes.data
    row_address, weight_address = hub_rows.ctypes.data, hub_weights.ctypes.data
    longest = hub_ends[0] if len(found) else 0
    for query in range(1, len(found)):
        longest = max(longest, hub_ends[query] - hub_ends[query - 1])
    rests = np.empty((len(sums), 1 + longest // ROUND, bounds.shape[2]), dtype=np.uint16)
    hub_address, rest_address = hubs.ctypes.data, rests.ctypes.data
    found[:] = 0
    thresholds[:] = 1
    for number in range(len(starts) - 1):
        for begun in range(0, len(found), _TILE):
            tile = range(begun, min(begun + _TILE, len(found)))
            for query in tile:
                place = query - begun
                sums[place] = 0
                start = list_ends[query - 1] if query else 0
                touched[place] = found[query] >= 0 and _scatter(
                    documents,
                    codes,
                    starts[number],
                    offsets[number],
                    lists,
                    list_weights,
                    start,
                    list_ends[query],
                    sums[place],
                )
                start = hub_ends[query - 1] if query else 0
                _bound(bounds[number], hub_rows, hub_weights, block, start, hub_ends[query], rests[place])
            first = number * (span // block)
            for piece in range(first, min(first + span // block, hubs.shape[0])):
                for query in tile:
                    start = hub_ends[query - 1] if query else 0
                    if found[query] < 0 or not (touched[query - begun] or hub_ends[query] > start):
                        continue
                    add_rows(
                        sum_address + 2 * ((query - begun) * span + (piece - first) * block),
                        total_address,
                        mask_address,
                        hub_address + piece * hubs.shape[1] * block,
                        row_address + 8 * start,
                        weight_address + 2 * start,
                        rest_address
                        + 2 * ((query - begun) * rests.shape[1] * bounds.shape[2])
                        + 2 * (piece - first) * (block // GROUP),
                        2 * bounds.shape[2],
                        hub_ends[query] - start,
                        np.uint16(thresholds[query]),
                        block // GROUP,
                    )
                    if not _any(masks):
                        continue
                    found[query] = collected(
                        totals,
                        masks,
                        piece * block,
                        count,
                        alive,
                        values[query],
                        slots[query],
                        found[query],
                        k,
                        windows[query],
                        final,
                        bins,
                        thresholds,
                        limits,
                        query,
                    )
    for query in range(len(found)):
        if found[query] > 0:
            found[query] = settled(
                values[query], slots[query], found[query], k, windows[query], final, thresholds, query
            )
