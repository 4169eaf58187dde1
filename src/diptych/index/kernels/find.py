"""A whole search in one call: what calls from Python cost is much, where one query is searched for at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import boolean, float32, float64, int32, int64, types, uint16

from diptych.index.kernels.jit import ROWS, jit, mapped
from diptych.index.kernels.prepare import prepare
from diptych.index.kernels.rows import rescore
from diptych.index.kernels.scan import POSTINGS, scan

_ROWS, _POSTINGS = types.Tuple(ROWS), types.Tuple((mapped(int32), mapped(float32), *POSTINGS))
_CHOICE = mapped(boolean), types.UniTuple(int64, 3), boolean, boolean, int64, int64
_FOUND = types.Tuple((int32[:, ::1], uint16[:, ::1], int64[::1], float64[::1]))


_Rows = tuple[np.ndarray, np.ndarray, np.ndarray]
_Array = np.ndarray
_Postings = tuple[_Array, _Array, _Array, _Array, _Array, _Array, _Array, _Array, int]
_Part = tuple[int, int, int]


@jit(_FOUND, _ROWS, _POSTINGS, *_CHOICE)
def candidates(
    queries: _Rows,
    postings: _Postings,
    alive: np.ndarray,
    part: _Part,
    whole: bool,
    final: bool,
    k: int,
    room: int,
) -> Any:
    """The fields of :class:`diptych.index.postings.Candidates` for some queries.

    Args:
        part: how many documents there are, the first query, and the one after the last.
    """
    count, first, last = part
    asked, terms = last - first, queries[0][last] - queries[0][first]
    hub_rows, hub_weights = np.empty(terms, dtype=np.int64), np.empty(terms, dtype=np.uint16)
    lists, list_weights = np.empty(terms, dtype=np.int32), np.empty(terms, dtype=np.uint32)
    hub_ends, list_ends = np.empty(asked, dtype=np.int64), np.empty(asked, dtype=np.int64)
    units, certain = np.empty(asked, dtype=np.float64), np.empty(asked, dtype=np.bool_)
    windows, chosen = np.empty(asked, dtype=np.int64), np.arange(first, last)
    prepared = hub_rows, hub_weights, hub_ends, lists, list_weights, list_ends
    place_of, steps, hubs = postings[0], postings[1], postings[2]
    prepare(*queries, place_of, steps, hubs.shape[2], chosen, whole, *prepared, units, windows, certain)
    values, slots = np.empty((asked, room), dtype=np.uint16), np.empty((asked, room), dtype=np.int32)
    found, thresholds = np.empty(asked, dtype=np.int64), np.empty(asked, dtype=np.int64)
    best = values, slots, found, thresholds
    scan(*postings[2:], alive, count, *prepared, windows, final, k, *best)
    for query in range(asked):
        few = 0 <= found[query] < k or (found[query] >= 0 and thresholds[query] <= 1)
        if few and not (final or certain[query]):
            found[query] = -2  # UNCERTAIN
    return slots, values, found, units


@jit(types.void, _ROWS, _ROWS, int64, _ROWS, _POSTINGS, *_CHOICE, int64[::1], int64[:, ::1], float32[:, ::1])
def find(
    rows: _Rows,
    queries: _Rows,
    k: int,
    searched: _Rows,
    postings: _Postings,
    alive: np.ndarray,
    part: _Part,
    whole: bool,
    final: bool,
    depth: int,
    room: int,
    found: np.ndarray,
    best: np.ndarray,
    best_scores: np.ndarray,
) -> None:
    """The ``k`` best, by all of their weights, of ``depth`` candidates for what is ``searched`` in place of queries."""
    slots, _, chosen, _ = candidates(searched, postings, alive, part, whole, final, depth, room)
    rescore(*rows, *queries, part[1], len(postings[0]), slots, chosen, k, best, best_scores)
    found[:] = chosen
