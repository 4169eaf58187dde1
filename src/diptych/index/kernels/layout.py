"""Bags of terms turned into rows of frequent terms and posting lists, in blocks of documents."""

from __future__ import annotations

import numpy as np
from numba import float32, float64, int32, int64, types, uint8, uint16

from diptych.index.kernels.jit import ROWS, jit

_LISTS = int64[::1], int32[:, ::1], uint16[::1], uint8[::1], int64


@jit(types.void, *ROWS, int64[::1], float32[::1])
def frequencies(
    indptr: np.ndarray, columns: np.ndarray, weights: np.ndarray, documents: np.ndarray, largest: np.ndarray
) -> None:
    """Per term, how many documents have it and its largest weight."""
    for position in range(indptr[0], indptr[-1]):
        term = columns[position]
        documents[term] += 1
        largest[term] = max(largest[term], weights[position])


@jit(types.void, *ROWS, int32[::1], float32[::1], float64, uint8[:, :, ::1], *_LISTS)
def fill(
    indptr: np.ndarray,
    columns: np.ndarray,
    weights: np.ndarray,
    place_of: np.ndarray,
    steps: np.ndarray,
    shift: float,
    hubs: np.ndarray,
    starts: np.ndarray,
    offsets: np.ndarray,
    documents: np.ndarray,
    codes: np.ndarray,
    span: int,
) -> None:
    """Write the codes ceil(weight / step - shift), from 1 to 255, of all documents where :mod:`scan` looks for them."""
    count = len(indptr) - 1
    block = hubs.shape[2]
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
                elif place < -1:
                    free = starts[number] + next_free[-2 - place]
                    next_free[-2 - place] += 1
                    documents[free] = document - first
                    codes[free] = code
