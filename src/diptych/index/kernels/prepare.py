"""Bags of terms as rows of frequent terms and posting lists, in blocks; a query's weights as whole numbers.

How far sums of these can be from its scores is known, see :func:`prepare`.
"""

import numpy as np
from numba import boolean, float32, float64, int32, int64, types, uint8, uint16

from diptych.index.kernels import GROUP
from diptych.index.kernels.jit import PREPARED, ROWS, Array, Prepared, Rows, jit, mapped

# Terms of a query that can be summed: more leave no room for their roundings.
MOST_TERMS = 16_000

_CAPACITY = 65_535  # of a sum
_LEAST = 256  # the weight with which the smallest 8-bit code still adds 1
_STRONG = 127  # so many terms can have the least weight and leave half of the capacity
_SPACING = 2.0**-149  # of the smallest float32 scores


@jit(types.void, ROWS, int64, mapped(int32), mapped(float32), int64, boolean, PREPARED, int64[::1])
def prepare(
    queries: Rows,
    first: int,
    place_of: Array,
    steps: Array,
    block: int,
    whole: bool,
    prepared: Prepared,
    windows: Array,
) -> None:
    """The terms of queries, from the ``first`` on, as rows of hubs and lists with whole-number weights.

    A document's weight w of term t is kept as the code c = ceil(w / step_t), and the query's weight q becomes
    Q = ceil(256 · q · step_t / unit), so that Q·c >> 8 is above q·w / unit - 1 and below q·(w + step_t) / unit + 1.
    Summed over the query's n terms,

        score / unit - n  <  sum  <  score / unit + Σ_t q·step_t / unit + n,

    and the window is the distance of both ends and two more, for the rounding of scores (and the distance of two
    scores where that is larger, below 1e-38). The unit is such that no sum and no Q reaches 2^16; then the window
    is otherwise at most 260 + 2n.

    A document can share a term and have the sum 0. With ``whole`` it cannot: every Q is at least 256. What that
    adds, up to 255 for a term, widens the window, so it is for queries that few documents answer.
    """
    indptr, columns, weights = queries
    hub_rows, hub_weights, hub_ends, lists, list_weights, list_ends, units, certain = prepared
    hubs = listed = 0
    for query in range(len(units)):
        start, end = indptr[first + query], indptr[first + query + 1]
        total, largest, count = 0.0, 0.0, 0
        for position in range(start, end):
            if place_of[columns[position]] != -1:
                step = np.float64(weights[position]) * np.float64(steps[columns[position]])
                total += step
                largest = max(largest, step)
                count += 1
        certain[query] = count == 0 or (whole and count <= _STRONG)
        spare = (_LEAST + 2) * count if certain[query] else 2 * count
        unit = 1.0
        if count and count <= MOST_TERMS:
            unit = max(255.0 * total / (_CAPACITY - spare), 256.0 * largest / (_CAPACITY - 1))
        raised = 0.0
        for position in range(start, end if count <= MOST_TERMS else start):
            place = place_of[columns[position]]
            if place == -1:
                continue
            exact = 256.0 * np.float64(weights[position]) * np.float64(steps[columns[position]]) / unit
            weight = np.ceil(exact)
            if certain[query] and weight < _LEAST:
                raised += _LEAST - weight
                weight = np.float64(_LEAST)
            if place >= 0:
                hub_rows[hubs] = np.int64(place) * block
                hub_weights[hubs] = np.uint16(weight)
                hubs += 1
            else:
                lists[listed] = -2 - place
                list_weights[listed] = np.uint32(weight)
                listed += 1
        units[query] = unit
        rounding = min(_SPACING / unit, np.float64(_CAPACITY))
        windows[query] = np.int64(np.ceil(total / unit + 2.0 * count + raised + rounding)) + 2
        begun = hub_ends[query - 1] if query else 0
        strongest = begun + np.argsort(hub_weights[begun:hubs])[::-1]
        hub_rows[begun:hubs], hub_weights[begun:hubs] = hub_rows[strongest], hub_weights[strongest]
        hub_ends[query] = hubs
        list_ends[query] = listed


_HUBS = uint8[:, :, ::1], uint8[:, :, ::1]
_LISTS = int64[::1], int32[:, ::1], uint16[::1], uint8[::1]
_LAID_OUT = types.Tuple((*_HUBS, *_LISTS))
_LaidOut = tuple[Array, Array, Array, Array, Array, Array]


@jit(types.void, ROWS, int64[::1], float32[::1])
def frequencies(rows: Rows, documents: Array, largest: Array) -> None:
    """Per term, how many documents have it and its largest weight."""
    indptr, columns, weights = rows
    for position in range(indptr[0], indptr[-1]):
        term = columns[position]
        documents[term] += 1
        largest[term] = max(largest[term], weights[position])


@jit(types.void, ROWS, int32[::1], float32[::1], float64, _LAID_OUT, int64)
def fill(rows: Rows, place_of: Array, steps: Array, shift: float, laid_out: _LaidOut, span: int) -> None:
    """Write the codes ceil(weight / step - shift), from 1 to 255, of all documents where :mod:`scan` looks for them."""
    indptr, columns, weights = rows
    hubs, bounds, starts, offsets, documents, codes = laid_out
    count, block = len(indptr) - 1, hubs.shape[2]
    next_free = np.empty(offsets.shape[1], dtype=np.int64)
    starts[0] = 0
    for number in range(len(offsets)):
        first, last = number * span, min(count, (number + 1) * span)
        next_free[:] = 0
        for position in range(indptr[first], indptr[last]):
            place = place_of[columns[position]]
            if place < -1:
                next_free[-1 - place] += 1
        for term in range(1, len(next_free)):
            next_free[term] += next_free[term - 1]
        for term in range(len(next_free)):
            offsets[number, term] = next_free[term]
        starts[number + 1] = starts[number] + next_free[-1]
        for document in range(first, last):
            local = document % block
            # Documents i and 32 + i of each 64 are neighbours, see add_rows.
            spot = (local & ~63) + 2 * (local & 31) + ((local >> 5) & 1)
            for position in range(indptr[document], indptr[document + 1]):
                term = columns[position]
                exact = np.float64(weights[position]) / np.float64(steps[term]) - shift
                code = np.uint8(min(255.0, max(1.0, np.ceil(exact))))
                place = place_of[term]
                if place >= 0:
                    hubs[document // block, place, spot] = code
                    group = (document - first) // GROUP
                    bounds[number, place, group] = max(bounds[number, place, group], code)
                elif place < -1:
                    free = starts[number] + next_free[-2 - place]
                    next_free[-2 - place] += 1
                    documents[free] = document - first
                    codes[free] = code
