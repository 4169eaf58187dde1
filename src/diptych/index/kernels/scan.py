"""Find the documents that can be among a query's best: integer sums over all documents, block by block."""

import numpy as np
from numba import boolean, int32, int64, types, uint8, uint16, uint32

from diptych.index.kernels import GROUP
from diptych.index.kernels.jit import PREPARED, Array, Prepared, jit, mapped
from diptych.index.kernels.rows import kth_largest
from diptych.index.kernels.simd import ROUND, add_rows, prefetch, trailing_zeros

_CODES = mapped(uint16), mapped(uint8)
POSTINGS = mapped(uint8, 3), mapped(uint8, 3), mapped(int64), mapped(int32, 2), *_CODES, int64
_Postings = tuple[Array, Array, Array, Array, Array, Array, int]

# The candidates of each query: their sums and numbers, how many they are, and the least sum that matters.
_BEST = types.Tuple((uint16[:, ::1], int32[:, ::1], int64[::1], int64[::1]))
_Best = tuple[Array, Array, Array, Array]


@jit(types.void, _BEST, int64, int64, int64, boolean)
def _settle(best: _Best, query: int, k: int, window: int, final: bool) -> None:
    """Raise a query's threshold and drop what is below it; ``final``: exactly k are left. They are still by slot."""
    values, slots, found, thresholds = best[0][query], best[1][query], best[2], best[3]
    if found[query] < k:
        return
    kth = np.int64(kth_largest(values, found[query], k))
    least = kth if final else max(thresholds[query], kth - window)
    equal = k
    for place in range(found[query] if final else 0):
        if values[place] > kth:
            equal -= 1  # of those equal to the k-th so many first ones stay
    left = 0
    for place in range(found[query]):
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
    found[query] = left


_SUMS = uint16[::1], uint32[::1]


@jit(types.void, _BEST, int64, *_SUMS, int64, int64, mapped(boolean), int64, int64, boolean, int64[::1])
def _collect(
    best: _Best,
    query: int,
    totals: Array,
    masks: Array,
    first: int,
    count: int,
    alive: Array,
    k: int,
    window: int,
    final: bool,
    limits: Array,
) -> None:
    """Add a block's documents above the threshold to a query's; ``found`` becomes -1 where they are too many."""
    values, slots, found, thresholds = best[0][query], best[1][query], best[2], best[3]
    capacity, size = len(values), found[query]
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
                found[query] = size
                _settle(best, query, k, 0 if final else window, False)
                if found[query] > capacity - (capacity >> 2) and capacity < count:
                    if not final:
                        found[query] = -1
                        return
                    _settle(best, query, k, window, final)
                size = found[query]
                limits[query] = min(capacity, max(2 * size, limits[query]))
                if value < thresholds[query]:
                    continue
            values[size] = value
            slots[size] = slot
            size += 1
    found[query] = size


# Queries whose sums over a span of documents are kept together: while they pass, rows come from the cache.
_TILE = 64

_SPARE = 32  # candidates beyond 2k before the threshold is raised for the first time


@jit(boolean, *_CODES, int64, mapped(int32), int32[::1], uint32[::1], int64, int64, uint16[::1])
def _scatter(
    documents: Array,
    codes: Array,
    base: int,
    offsets: Array,
    lists: Array,
    weights: Array,
    start: int,
    end: int,
    sums: Array,
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
    bounds: Array, rows: Array, weights: Array, block: int, start: int, end: int, rests: Array
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
def _any(masks: Array) -> bool:
    found = np.uint32(0)
    for word in range(len(masks)):
        found |= masks[word]
    return bool(found != 0)


@jit(types.void, types.Tuple(POSTINGS), mapped(boolean), int64, PREPARED, int64[::1], boolean, int64, _BEST)
def scan(
    postings: _Postings,
    alive: Array,
    count: int,
    prepared: Prepared,
    windows: Array,
    final: bool,
    k: int,
    best: _Best,
) -> None:
    """Per query the documents whose sum can belong to one of the ``k`` best.

    Args:
        postings: (blocks, hubs, block) codes of frequent terms, laid out for :func:`add_rows`, and of each hub the
            largest code in each group of documents, (spans, hubs, span // GROUP); where each list begins, in
            postings and, (spans, lists + 1), within its span's; numbers, codes; documents in a span.
        alive: (documents,) which can be found; empty: all.
        best: without candidates, every least sum 1; (queries, room) at least 2k wide or a column for each document.
            Of how many become -1 there are more than there is room for.
    """
    hubs, bounds, starts, offsets, documents, codes, span = postings
    hub_rows, hub_weights, hub_ends, lists, list_weights, list_ends, _, _ = prepared
    found, thresholds = best[2], best[3]
    block = hubs.shape[2]
    sums = np.zeros((min(_TILE, len(found)), span), dtype=np.uint16)
    touched = np.zeros(_TILE, dtype=np.bool_)
    totals = np.zeros(block, dtype=np.uint16)
    masks = np.zeros(block // 32, dtype=np.uint32)
    limits = np.full(len(found), min(best[0].shape[1], 2 * k + _SPARE))
    sum_address, total_address, mask_address = sums.ctypes.data, totals.ctypes.data, masks.ctypes.data
    row_address, weight_address = hub_rows.ctypes.data, hub_weights.ctypes.data
    longest = hub_ends[0] if len(found) else 0
    for query in range(1, len(found)):
        longest = max(longest, hub_ends[query] - hub_ends[query - 1])
    rests = np.empty((len(sums), 1 + longest // ROUND, bounds.shape[2]), dtype=np.uint16)
    hub_address, rest_address = hubs.ctypes.data, rests.ctypes.data
    for number in range(len(starts) - 1):
        first, base = number * (span // block), starts[number]
        for begun in range(0, len(found), _TILE):
            tile = range(begun, min(begun + _TILE, len(found)))
            for query in tile:
                place = query - begun
                sums[place] = 0
                start, end = list_ends[query - 1] if query else 0, list_ends[query]
                touched[place] = found[query] >= 0 and _scatter(
                    documents, codes, base, offsets[number], lists, list_weights, start, end, sums[place]
                )
                start = hub_ends[query - 1] if query else 0
                _bound(bounds[number], hub_rows, hub_weights, block, start, hub_ends[query], rests[place])
            for piece in range(first, min(first + span // block, hubs.shape[0])):
                for query in tile:
                    place, start = query - begun, hub_ends[query - 1] if query else 0
                    if found[query] < 0 or not (touched[place] or hub_ends[query] > start):
                        continue
                    groups = place * rests.shape[1] * bounds.shape[2] + (piece - first) * (block // GROUP)
                    add_rows(
                        sum_address + 2 * (place * span + (piece - first) * block),
                        total_address,
                        mask_address,
                        hub_address + piece * hubs.shape[1] * block,
                        row_address + 8 * start,
                        weight_address + 2 * start,
                        rest_address + 2 * groups,
                        2 * bounds.shape[2],
                        hub_ends[query] - start,
                        np.uint16(thresholds[query]),
                        block // GROUP,
                    )
                    if _any(masks):
                        begin, window = piece * block, windows[query]
                        _collect(best, query, totals, masks, begin, count, alive, k, window, final, limits)
    for query in range(len(found)):
        if found[query] > 0:
            _settle(best, query, k, windows[query], final)
