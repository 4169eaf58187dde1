"""Few terms first, all of them for what these find: "no expansion >> expansion" (thesis, Table 3.6).

The published code puts the full scores into the result but leaves it in the order of the first stage; here it is
sorted by them.
"""

from collections.abc import Mapping

import numpy as np
from scipy.sparse import csr_array

from diptych.core.errors import MismatchError
from diptych.index.engine import Found, OptionValue, Vectors, declare
from diptych.index.engines.inverted import InvertedIndex
from diptych.index.segments import Segment
from diptych.index.sparse_rows import SparseRows


class CascadeIndex(InvertedIndex):
    """The inverted index, searched for ``candidates`` with a part of each query, which the whole query then ranks.

    An item that shares none of the first stage's terms is not found, and scores of the first stage are
    whole-number sums; the scores of hits are the exact engine's. With as many candidates as items every item that
    shares one of the first stage's terms (127 at most) is among them.
    """

    engine_name = "cascade"

    def _find(
        self,
        queries: csr_array,
        k: int,
        alive: np.ndarray | None,
        options: Mapping[str, OptionValue],
        first: Vectors | None = None,
    ) -> Found:
        """Search first for ``first``, such as captions' own terms, or for the largest weights of each query."""
        if first is None:
            few = strongest_terms(queries, int(options["first_terms"]))
        else:
            few = self._checked(first, None, "first-stage query")
        if few.shape[0] != queries.shape[0]:
            raise MismatchError(
                f"{few.shape[0]:,} first-stage queries for {queries.shape[0]:,} queries",
                "give one row for each query, empty where a query has no such terms",
            )
        begun, candidates = SparseRows.of(few), max(k, int(options["candidates"]))

        def find(segment: Segment, queries: SparseRows, k: int, alive: np.ndarray | None) -> Found:
            depth = min(candidates, len(segment))
            return segment.chosen(queries, k, alive, whole=depth == len(segment), first=begun, depth=depth)

        return self._store.best(queries, k, alive, find)


def strongest_terms(queries: csr_array, count: int) -> csr_array:
    """Each row with its ``count`` largest weights only, of equal ones those of the first columns."""
    owner = np.repeat(np.arange(queries.shape[0]), np.diff(queries.indptr))
    order = np.lexsort((-queries.data, owner))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - queries.indptr[owner]
    kept = rank < count
    ends = np.concatenate([[0], np.cumsum(kept)])[queries.indptr].astype(queries.indptr.dtype)
    few = csr_array((queries.data[kept], queries.indices[kept], ends), shape=queries.shape)
    few.has_canonical_format = True
    return few


declare("cascade", CascadeIndex)
