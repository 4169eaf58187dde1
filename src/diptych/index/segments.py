"""Segments: documents that are searched together, those that came later in segments of their own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from diptych.index.kernels import can_compile, kernels_loaded, load_kernels
from diptych.index.postings import NOTHING_DEAD, TOO_MANY, UNCERTAIN, Postings
from diptych.index.sparse_rows import SparseRows
from diptych.index.vectors import Growing

_FEW = 1 << 21  # products that NumPy adds up in a fraction of the time that it takes to load the kernels
_CANDIDATES = 1 << 23  # of all queries of a batch
_QUERIES = 1024


class Found(NamedTuple):
    """The best documents of each query: (q, k) slots and scores, of which the first ``found`` count."""

    slots: np.ndarray
    scores: np.ndarray
    found: np.ndarray

    @classmethod
    def nothing(cls, queries: int, k: int) -> Found:
        """Room for the best k of each query."""
        slots, scores = np.zeros((queries, k), dtype=np.int64), np.zeros((queries, k), dtype=np.float32)
        return cls(slots, scores, np.zeros(queries, dtype=np.int64))


def batches(queries: int, room: int) -> list[slice]:
    """Return the queries in batches whose candidates, ``room`` for each, fit in memory."""
    size = max(1, min(_QUERIES, _CANDIDATES // max(1, room)))
    return [slice(start, min(start + size, queries)) for start in range(0, queries, size)]


@dataclass(frozen=True, eq=False)
class Segment:
    """Some documents: ``rows`` hold their weights, ``postings`` where to look for them."""

    rows: SparseRows
    hub_share: float
    built: Postings | None  # None where the kernels that build postings could not be compiled
    few: bool = False  # whether they are so few that all of them are scored

    @classmethod
    def build(cls, rows: csr_array, hub_share: float) -> Segment:
        kept = SparseRows(rows)
        kept.check_columns()
        return cls(kept, hub_share, Postings.build(kept, hub_share) if can_compile() else None)

    @cached_property
    def postings(self) -> Postings:
        """The postings, built now where they were not built before."""
        if self.built is None:
            self.rows.check_columns()
        return self.built or Postings.build(self.rows, self.hub_share)

    def __len__(self) -> int:
        return len(self.rows)

    def best(self, queries: SparseRows, k: int, alive: np.ndarray | None) -> Found:
        """The ``k`` best for each query; fewer where fewer share a term."""
        few_products = len(self.rows.weights) * len(queries) <= _FEW
        if not kernels_loaded() and (few_products or not can_compile()):
            return self._by_numpy(queries, k, alive)
        if self.few:
            return self._all_scored(queries, k, alive)
        found = self.chosen(queries, k, alive, self.postings.room(k), whole=False)
        if (found.found < 0).any():
            self._search_again(queries, k, alive, found)
        return found

    def _search_again(self, queries: SparseRows, k: int, alive: np.ndarray | None, found: Found) -> None:
        """Search for those of the queries whose best are not found yet."""
        for status, whole in ((TOO_MANY, False), (UNCERTAIN, True)):
            left = np.flatnonzero(found.found == status)
            if len(left):
                again = self.chosen(SparseRows(queries.take(left)), k, alive, len(self), whole=whole)
                for mine, new in zip(found, again, strict=True):
                    mine[left] = new
        for query in np.flatnonzero(found.found < 0).tolist():
            found.found[query] = self.rows.best_of_all(queries, query, k, alive, *found[:2])

    def _all_scored(self, queries: SparseRows, k: int, alive: np.ndarray | None) -> Found:
        found = Found.nothing(len(queries), k)
        live = np.arange(len(self)) if alive is None else np.flatnonzero(alive)
        for part in batches(len(queries), len(live)):
            count = part.stop - part.start
            slots = np.tile(live.astype(np.int32), (count, 1))
            found.found[part] = len(live)
            best = found.found[part], k, found.slots[part], found.scores[part]
            rows = *self.rows.arrays, *queries.arrays, part.start, queries.width
            load_kernels().rescore(*rows, slots, *best)
        return found

    def _by_numpy(self, queries: SparseRows, k: int, alive: np.ndarray | None) -> Found:
        """Go through all rows, in blocks of ``_FEW`` weights."""
        self.rows.check_columns()
        starts = np.searchsorted(self.rows.indptr, np.arange(0, len(self.rows.weights) + 1, _FEW))
        bounds = [0, *starts[1:].tolist(), len(self)]
        best = Found.nothing(len(queries), 0)
        for start, end in pairwise(sorted(set(bounds))):
            rows = SparseRows(self.rows.take(slice(start, end)))
            found = Found.nothing(len(queries), min(k, end - start))
            rows.best(queries, k, None if alive is None else alive[start:end], found)
            found.slots[...] += start
            best = _merged([best, found], k)
        return best

    def chosen(
        self,
        queries: SparseRows,
        k: int,
        alive: np.ndarray | None,
        room: int,
        *,
        whole: bool,
        first: SparseRows | None = None,
        depth: int = 0,
    ) -> Found:
        """Return the best of those that the postings choose; see :class:`Candidates` for ``found`` below 0.

        Args:
            first: what the postings are searched for, for ``depth`` candidates; the queries themselves by default.
        """
        found, final = Found.nothing(len(queries), k), first is not None
        searched, every = first or queries, NOTHING_DEAD if alive is None else alive
        if final:
            searched.check_terms()
        vectors = self.rows.arrays, queries.arrays, k, searched.arrays, self.postings.arrays, every
        for part in batches(len(queries), room):
            choice = (len(self), part.start, part.stop), whole, final, depth or k, min(len(self), room)
            load_kernels().find(*vectors, *choice, *(array[part] for array in (found.found, *found[:2])))
        return found


_TAIL = 32, 4000  # so many documents at most, or of a large index one in so many
_RATIO = 8  # a segment is merged with one that is at most so many times as large


class Segments:
    """All documents of an index; slots are numbered through.

    The last to come are the tail: kept as they are, all of them scored by every search. When there are enough, a
    thread makes a segment of them, together with the segments before that are not much larger. Searches go on with
    what is there until it is done.

    Attributes:
        parts: the segments, the tail as the last one; replaced, never changed, so that a search reads it once.
    """

    def __init__(self, first: Segment, hub_share: float) -> None:
        self.parts: tuple[Segment, ...] = (first,)
        self._built: tuple[Segment, ...] = (first,)  # all but the tail
        self._hub_share = hub_share
        self._lock = Lock()
        self._merge: Future[None] | None = None
        self._clear_tail(first.rows.width)

    def _clear_tail(self, width: int) -> None:
        self._columns, self._weights = Growing(np.empty(0, np.int32)), Growing(np.empty(0, np.float32))
        self._starts, self._width = Growing(np.zeros(1, np.int64)), width

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def append(self, rows: csr_array) -> None:
        """Add documents; an error of an earlier merge is raised by :meth:`settle`, which comes before."""
        with self._lock:
            self._lengthen(SparseRows(rows))
            least, share = _TAIL
            enough = len(self._starts.view) > max(least, len(self) // share)
            if enough and self._merge is None and can_compile():
                self._merge = self._begin_merge()

    def _lengthen(self, rows: SparseRows) -> None:
        used = slice(rows.indptr[0], rows.indptr[-1])
        self._columns.extend(rows.columns[used])
        self._weights.extend(rows.weights[used])
        self._starts.extend(rows.indptr[1:] - rows.indptr[0] + self._starts.view[-1])
        tail = SparseRows.of(self._starts.view, self._columns.view, self._weights.view, self._width)
        self.parts = *self._built, Segment(tail, self._hub_share, None, few=True)

    def _begin_merge(self) -> Future[None]:
        first, size = len(self.parts) - 1, len(self.parts[-1])
        while first and len(self.parts[first - 1]) <= _RATIO * size:
            first -= 1
            size += len(self.parts[first])
        pool = ThreadPoolExecutor(1, "diptych-merge")
        try:
            return pool.submit(self._merge_from, first, self.parts[first:])
        finally:
            pool.shutdown(wait=False)

    def _merge_from(self, first: int, parts: tuple[Segment, ...]) -> None:
        """Replace the segments from the ``first`` on, of which the last is the tail of then, by one."""
        merged = Segment.build(_stacked(parts), self._hub_share)
        with self._lock:
            later = self.parts[-1].rows.take(slice(len(parts[-1]), None))
            self.parts = self._built = *self._built[:first], merged
            self._clear_tail(self._width)
            if later.shape[0]:
                self._lengthen(SparseRows(later))

    def settle(self, *, wait: bool = True) -> None:
        """Raise the error of a merge that failed, once; what it should have merged is searched as before.

        Args:
            wait: for one that is going on.
        """
        merge = self._merge
        if merge is not None and (wait or merge.done()):
            self._merge = None
            merge.result()

    def take(self, slots: np.ndarray) -> csr_array:
        parts = self.parts
        rows = parts[0].rows.csr() if len(parts) == 1 else _stacked(parts)
        return rows[slots]

    def best(
        self,
        queries: csr_array,
        k: int,
        alive: np.ndarray | None,
        find: Callable[[Segment, SparseRows, int, np.ndarray | None], Found] = Segment.best,
    ) -> Found:
        """Return the ``k`` best of what ``find`` finds in each segment, equal scores by slot; exactly by default."""
        rows, start, parts = SparseRows(queries), 0, self.parts
        if alive is not None and (new := sum(map(len, parts)) - len(alive)) > 0:
            alive = np.pad(alive, (0, new))  # documents that came after it was read
        each: list[Found] = []
        for part in filter(len, parts):
            here = None if alive is None else alive[start : start + len(part)]
            found = find(part, rows, min(k, len(part)), here)
            if start:
                found.slots[...] += start
            each.append(found)
            start += len(part)
        return _merged(each, k) if each else Found.nothing(len(rows), k)


def _stacked(parts: tuple[Segment, ...]) -> csr_array:
    rows = csr_array(vstack([part.rows.csr() for part in parts], format="csr"))
    rows.has_canonical_format = True
    return rows


def _merged(each: list[Found], k: int) -> Found:
    """The k best of all; those of earlier ones have the smaller slots."""
    if len(each) == 1:
        return each[0]
    scores = np.concatenate([_padded(one) for one in each], axis=1)
    slots = np.concatenate([one.slots for one in each], axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    found = np.minimum(sum(one.found for one in each), k)
    return Found(np.take_along_axis(slots, order, axis=1), np.take_along_axis(scores, order, axis=1), found)


def _padded(found: Found) -> np.ndarray:
    return np.where(np.arange(found.scores.shape[1]) < found.found[:, None], found.scores, -np.inf)
