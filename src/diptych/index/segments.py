"""Segments: documents that are searched together, those that came later in segments of their own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from threading import Lock

import numpy as np
from scipy.sparse import csr_array, vstack

from diptych.index.engine import Found
from diptych.index.kernels import can_compile, kernels_loaded, load_kernels
from diptych.index.postings import NOTHING_DEAD, TOO_MANY, UNCERTAIN, Postings
from diptych.index.sparse_rows import SparseRows
from diptych.index.vectors import Growing

_FEW = 1 << 21  # products that NumPy adds up in a fraction of the time that it takes to load the kernels
_SMALL = 1024  # documents among which most queries find fewer that share a term than they look for
_CANDIDATES = 1 << 23  # of all queries of a batch
_QUERIES = 1024


def batches(queries: int, room: int) -> list[slice]:
    """Return the queries in batches whose candidates, ``room`` for each, fit in memory."""
    size = max(1, min(_QUERIES, _CANDIDATES // max(1, room)))
    return [slice(start, min(start + size, queries)) for start in range(0, queries, size)]


def best_of_all(rows: SparseRows, queries: SparseRows, k: int, alive: np.ndarray | None) -> Found:
    """The ``k`` best for each query, every one of the rows scored."""
    found = Found.nothing(len(queries), k)
    live = np.arange(len(rows)) if alive is None else np.flatnonzero(alive)
    for part in batches(len(queries), len(live)):
        slots = np.tile(live.astype(np.int32), (part.stop - part.start, 1))
        found.found[part] = len(live)
        choice = part.start, rows.width, slots, k
        load_kernels().rescore(rows.arrays, queries.arrays, *choice, *(array[part] for array in found))
    return found


def _by_numpy(rows: SparseRows, queries: SparseRows, k: int, alive: np.ndarray | None) -> Found:
    """As :func:`best_of_all`, to the last bit: the products of a row are added up in the same four sums.

    In blocks of ``_FEW`` weights, without the kernels, which take longer to load than few products take.
    """
    rows.check_columns()
    starts = np.searchsorted(rows.indptr, np.arange(0, len(rows.weights) + 1, _FEW))
    best = Found.nothing(len(queries), 0)
    for start, end in pairwise(sorted({*starts.tolist(), len(rows)})):
        size, part = end - start, slice(rows.indptr[start], rows.indptr[end])
        lengths = np.diff(rows.indptr[start : end + 1])
        owner = np.repeat(np.arange(size), lengths)
        place = np.arange(len(owner)) + part.start - rows.indptr[start + owner]
        sums = 4 * owner + np.where(place < lengths[owner] // 4 * 4, place % 4, 0)
        found = Found.nothing(len(queries), min(k, size))
        for query in range(len(queries)):
            terms = slice(queries.indptr[query], queries.indptr[query + 1])
            table = np.zeros(rows.width)
            table[queries.columns[terms]] = queries.weights[terms]
            products = rows.weights[part].astype(np.float64) * table[rows.columns[part]]
            first, second, third, fourth = np.bincount(sums, products, 4 * size).reshape(-1, 4).T
            scores = ((first + second) + (third + fourth)).astype(np.float32)
            slots = np.flatnonzero(scores > 0 if alive is None else (scores > 0) & alive[start:end])
            slots = slots[np.argsort(-scores[slots], kind="stable")[:k]]
            found.found[query] = len(slots)
            found.slots[query, : len(slots)] = start + slots
            found.scores[query, : len(slots)] = scores[slots]
        best = _merged([best, found], k)
    return best


@dataclass(frozen=True, eq=False)
class Segment:
    """Some documents: ``rows`` hold their weights, ``postings`` where to look for them."""

    rows: SparseRows
    hub_share: float
    built: Postings | None  # None where the kernels that build postings could not be compiled
    few: bool = False  # whether they are so few that all of them are scored

    @classmethod
    def build(cls, rows: csr_array, hub_share: float) -> Segment:
        kept = SparseRows.of(rows)
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
            return _by_numpy(self.rows, queries, k, alive)
        if self.few:
            return best_of_all(self.rows, queries, k, alive)
        small = len(self) <= _SMALL
        found = self.chosen(queries, k, alive, room=len(self) if small else 0, whole=small)

        def again(left: np.ndarray, search: Callable[..., Found]) -> None:
            if len(left):
                better = search(queries=SparseRows.of(queries.take(left)), k=k, alive=alive)
                for mine, new in zip(found, better, strict=True):
                    mine[left] = new

        if (found.found < 0).any():
            again(np.flatnonzero(found.found == TOO_MANY), partial(self.chosen, room=len(self)))
            again(np.flatnonzero(found.found == UNCERTAIN), partial(self.chosen, room=len(self), whole=True))
            again(np.flatnonzero(found.found < 0), partial(best_of_all, self.rows))
        return found

    def chosen(
        self,
        queries: SparseRows,
        k: int,
        alive: np.ndarray | None,
        *,
        room: int = 0,
        whole: bool = False,
        first: SparseRows | None = None,
        depth: int = 0,
    ) -> Found:
        """Return the best of those that the postings choose; see :class:`Candidates` for ``found`` below 0.

        Args:
            first: what the postings are searched for, for ``depth`` candidates; the queries themselves by default.
        """
        found, final, depth = Found.nothing(len(queries), k), first is not None, depth or k
        room = room or self.postings.room(depth)
        searched, every = first or queries, NOTHING_DEAD if alive is None else alive
        if final:
            searched.check_terms()
        vectors = self.rows.arrays, queries.arrays, k, searched.arrays, self.postings.arrays
        for part in batches(len(queries), room):
            choice = every, len(self), part.start, part.stop, whole, final, depth, min(len(self), room)
            load_kernels().find(*vectors, choice, *(array[part] for array in found))
        return found


_TAIL = 128, 4000  # so many documents at most, or of a large index one in so many
_RATIO = 8  # a segment is merged with one that is at most so many times as large


class Segments:
    """All documents of an index; slots are numbered through.

    The last to come are the tail: kept as they are, all of them scored by every search. When there are enough, a
    thread makes a segment of them, together with the segments before that are not much larger. Searches go on with
    what is there until it is done.

    Attributes:
        parts: the segments, the tail as the last one; replaced, never changed, so that a search reads it once.
    """

    def __init__(self, first: Segment) -> None:
        self._hub_share, self._width = first.hub_share, first.rows.width
        self._lock = Lock()
        self._merge: Future[None] | None = None
        self._begin_tail(first)

    def _begin_tail(self, *built: Segment) -> None:
        self.parts = self._built = built
        self._columns, self._weights = Growing(np.empty(0, np.int32)), Growing(np.empty(0, np.float32))
        self._starts = Growing(np.zeros(1, np.int64))

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def append(self, rows: csr_array) -> None:
        """Add documents; an error of an earlier merge is raised by :meth:`settle`, which comes before."""
        with self._lock:
            self._lengthen(SparseRows.of(rows))
            if self._is_long and self._merge is None and can_compile():
                self._merge = self._begin_merge()

    @property
    def _is_long(self) -> bool:
        """Return whether the tail is to be merged."""
        return len(self._starts.view) > max(_TAIL[0], len(self) // _TAIL[1])

    def _lengthen(self, rows: SparseRows) -> None:
        used = slice(rows.indptr[0], rows.indptr[-1])
        self._columns.extend(rows.columns[used])
        self._weights.extend(rows.weights[used])
        self._starts.extend(rows.indptr[1:] - rows.indptr[0] + self._starts.view[-1])
        tail = SparseRows(self._starts.view, self._columns.view, self._weights.view, self._width)
        self.parts = *self._built, Segment(tail, self._hub_share, None, few=True)

    def _begin_merge(self) -> Future[None]:
        pool = ThreadPoolExecutor(1, "diptych-merge")
        try:
            return pool.submit(self._merge_from, *self._to_merge())
        finally:
            pool.shutdown(wait=False)

    def _to_merge(self) -> tuple[int, tuple[Segment, ...]]:
        """Return the tail with the segments before that are not much larger, and which is the first."""
        first, size = len(self.parts) - 1, len(self.parts[-1])
        while first and len(self.parts[first - 1]) <= _RATIO * size:
            first -= 1
            size += len(self.parts[first])
        return first, self.parts[first:]

    def _merge_from(self, first: int, parts: tuple[Segment, ...]) -> None:
        """Replace the segments from the ``first`` on, with the tail of then, by one; again while the tail is long."""
        while parts:
            merged = Segment.build(_stacked(parts), self._hub_share)
            with self._lock:
                later = self.parts[-1].rows.take(slice(len(parts[-1]), None))
                self._begin_tail(*self._built[:first], merged)
                if later.shape[0]:
                    self._lengthen(SparseRows.of(later))
                first, parts = self._to_merge() if self._is_long else (0, ())

    def settle(self, *, wait: bool = True) -> None:
        """Raise the error of a merge that failed, once; what it should have merged is searched as before."""
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
        rows, start, parts = SparseRows.of(queries), 0, self.parts
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
    scores = np.concatenate([one.scores for one in each], axis=1)  # 0 beyond what was found
    slots = np.concatenate([one.slots for one in each], axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    query = np.arange(len(order))[:, None]
    return Found(slots[query, order], scores[query, order], np.minimum(sum(one.found for one in each), k))
