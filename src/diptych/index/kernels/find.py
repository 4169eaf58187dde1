"""A whole search in one call: what calls from Python cost is much, where one query is searched for at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import boolean, float32, float64, int32, int64, types, uint16

from diptych.index.kernels.jit import ROWS, jit, mapped
from diptych.index.kernels.prepare import prepare
from diptych.index.kernels.rows import rescore
from diptych.index.kernels.scan import POSTINGS, scan

_LAYOUT = mapped(int32), mapped(float32)
_CHOICE = mapped(boolean), int64, int64, int64, boolean, boolean, int64, int64
_FOUND = types.Tuple((int32[:, ::1], uint16[:, ::1], int64[::1], float64[::1]))


@jit(_FOUND, *ROWS, *_LAYOUT, *POSTINGS, *_CHOICE)
def candidates(
    indptr: np.ndarray,
    columns: np.ndarray,
    weights: np.ndarray,
    place_of: np.ndarray,
    steps: np.ndarray,
    hubs: np.ndarray,
    bounds: np.ndarray,
    starts: np.ndarray,
    offsets: np.ndarray,
    documents: np.ndarray,
    codes: np.ndarray,
    span: int,
    alive: np.ndarray,
    count: int,
    first: int,
    last: int,
    whole: bool,
    final: bool,
    k: int,
    room: int,
) -> Any:
    """The fields of :class:`diptych.index.postings.Candidates` for the queries from ``first`` to before ``last``."""
    queries, terms = last - first, indptr[last] - indptr[first]
    hub_rows, hub_weights = np.empty(terms, dtype=np.int64), np.empty(terms, dtype=np.uint16)
    lists, list_weights = np.empty(terms, dtype=np.int32), np.empty(terms, dtype=np.uint32)
    hub_ends, list_ends = np.empty(queries, dtype=np.int64), np.empty(queries, dtype=np.int64)
    units, certain = np.empty(queries, dtype=np.float64), np.empty(queries, dtype=np.bool_)
    windows, chosen = np.empty(queries, dtype=np.int64), np.arange(first, last)
    hub_terms, list_terms = (hub_rows, hub_weights, hub_ends), (lists, list_weights, list_ends)
    layout = place_of, steps, hubs.shape[2]
    prepare(
        indptr, columns, weights, *layout, chosen, whole, *hub_terms, *list_terms, units, windows, certain
    )
    values, slots = np.empty((queries, room), dtype=np.uint16), np.empty((queries, room), dtype=np.int32)
    found, thresholds = np.empty(queries, dtype=np.int64), np.empty(queries, dtype=np.int64)
    postings = hubs, bounds, starts, offsets, documents, codes, span
    best = values, slots, found, thresholds
    scan(*postings, alive, count, *hub_terms, *list_terms, windows, final, k, *best)
    for query in range(queries):
        few = 0 <= found[query] < k or (found[query] >= 0 and thresholds[query] <= 1)
        if few and not (final or certain[query]):
            found[query] = -2  # UNCERTAIN
    return slots, values, found, units


_BEST = int64[::1], int64[:, ::1], float32[:, ::1]


@jit(types.void, *ROWS, int64, *ROWS, int64, *ROWS, *_LAYOUT, *POSTINGS, *_CHOICE, *_BEST)
def find(
    row_indptr: np.ndarray,
    row_columns: np.ndarray,
    row_weights: np.ndarray,
    width: int,
    query_indptr: np.ndarray,
    query_columns: np.ndarray,
    query_weights: np.ndarray,
    depth: int,
    indptr: np.ndarray,
    columns: np.ndarray,
    weights: np.ndarray,
    place_of: np.ndarray,
    steps: np.ndarray,
    hubs: np.ndarray,
    bounds: np.ndarray,
    starts: np.ndarray,
    offsets: np.ndarray,
    documents: np.ndarray,
    codes: np.ndarray,
    span: int,
    alive: np.ndarray,
    count: int,
    first: int,
    last: int,
    whole: bool,
    final: bool,
    k: int,
    room: int,
    found: np.ndarray,
    best: np.ndarray,
    best_scores: np.ndarray,
) -> None:
    """The ``k`` best, by all of their weights, of the ``depth`` candidates for queries that may be others."""
    layout = place_of, steps, hubs, bounds, starts, offsets, documents, codes, span
    choice = alive, count, first, last, whole, final, depth, room
    slots, _, chosen, _ = candidates(indptr, columns, weights, *layout, *choice)
    rows, queries = (row_indptr, row_columns, row_weights), (query_indptr, query_columns, query_weights)
    rescore(*rows, *queries, first, width, slots, chosen, k, best, best_scores)
    found[:] = chosen
