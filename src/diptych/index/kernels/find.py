"""A whole search in one call: what calls from Python cost is much, where one query is searched for at a time.

Importing this module compiles all kernels (:func:`diptych.index.kernels.load_kernels`).
"""

from typing import Any

import numpy as np
from numba import boolean, float32, float64, int32, int64, types, uint16

from diptych.index.kernels.jit import ROWS, Array, Rows, jit, mapped
from diptych.index.kernels.prepare import MOST_TERMS, fill, frequencies, prepare  # noqa: F401
from diptych.index.kernels.rows import BEST, rescore
from diptych.index.kernels.scan import POSTINGS, scan

_POSTINGS = types.Tuple((mapped(int32), mapped(float32), *POSTINGS))
_Postings = tuple[Array, Array, Array, Array, Array, Array, Array, Array, int]
# Which documents can be found, how many there are, the first query and the one after the last; whether sums of
# documents that share a term are not 0, whether sums decide, how many are looked for, and how many there is room for.
_CHOICE = types.Tuple((mapped(boolean), int64, int64, int64, boolean, boolean, int64, int64))
_Choice = tuple[Array, int, int, int, bool, bool, int, int]
_FOUND = types.Tuple((int32[:, ::1], uint16[:, ::1], int64[::1], float64[::1]))


@jit(_FOUND, ROWS, _POSTINGS, _CHOICE)
def candidates(queries: Rows, postings: _Postings, choice: _Choice) -> Any:
    """The fields of :class:`diptych.index.postings.Candidates` for some queries."""
    alive, count, first, last, whole, final, k, room = choice
    asked, terms = last - first, queries[0][last] - queries[0][first]
    hubs = np.empty(terms, dtype=np.int64), np.empty(terms, dtype=np.uint16), np.empty(asked, dtype=np.int64)
    lists = np.empty(terms, dtype=np.int32), np.empty(terms, dtype=np.uint32), np.empty(asked, dtype=np.int64)
    windows, units = np.empty(asked, dtype=np.int64), np.empty(asked, dtype=np.float64)
    certain = np.empty(asked, dtype=np.bool_)
    prepared = (*hubs, *lists, units, certain)
    prepare(queries, first, postings[0], postings[1], postings[2].shape[2], whole, prepared, windows)
    values, slots = np.empty((asked, room), dtype=np.uint16), np.empty((asked, room), dtype=np.int32)
    found, thresholds = np.zeros(asked, dtype=np.int64), np.ones(asked, dtype=np.int64)
    scan(postings[2:], alive, count, prepared, windows, final, k, (values, slots, found, thresholds))
    for query in range(asked):
        few = 0 <= found[query] < k or (found[query] >= 0 and thresholds[query] <= 1)
        if few and not (final or certain[query]):
            found[query] = -2  # UNCERTAIN
    return slots, values, found, units


@jit(types.void, ROWS, ROWS, int64, ROWS, _POSTINGS, _CHOICE, *BEST)
def find(
    rows: Rows,
    queries: Rows,
    k: int,
    searched: Rows,
    postings: _Postings,
    choice: _Choice,
    best: Array,
    best_scores: Array,
    found: Array,
) -> None:
    """The ``k`` best, by all of their weights, of the candidates for what is ``searched`` in place of queries."""
    slots, _, chosen, _ = candidates(searched, postings, choice)
    found[:] = chosen
    rescore(rows, queries, choice[2], len(postings[0]), slots, k, best, best_scores, found)
