"""Documents in segments, each with its rows and its postings, and the exact search over all of them.

What is built or opened is one segment; items that are added become another, and segments are merged as they grow, so
that n single insertions rebuild each item about log n times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from diptych.index.kernels import load_kernels
from diptych.index.postings import TOO_MANY, UNCERTAIN, Postings
from diptych.index.sparse_rows import SparseRows

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


def batches(queries: int, room: int) -> list[np.ndarray]:
    """The numbers of queries in batches whose candidates, ``room`` for each, fit in memory."""
    size = max(1, min(_QUERIES, _CANDIDATES // max(1, room)))
    return [np.arange(start, min(start + size, queries)) for start in range(0, queries, size)]


@dataclass(frozen=True, eq=False)
class Segment:
    """Some documents: ``rows`` hold their weights, ``postings`` where to look for them."""

    rows: SparseRows
    postings: Postings

    @classmethod
    def build(cls, rows: csr_array, hub_share: float) -> Segment:
        """A segment of canonical rows."""
        kept = SparseRows(rows)
        kept.check_columns()
        return cls(kept, Postings.build(kept, hub_share))

    def __len__(self) -> int:
        return len(self.rows)

    def best(self, queries: SparseRows, k: int, alive: np.ndarray | None) -> Found:
        """The ``k`` best for each query; fewer where fewer share a term."""
        found = self._chosen(queries, k, alive, self.postings.room(k), whole=False)
        for status, whole in ((TOO_MANY, False), (UNCERTAIN, True)):
            left = np.flatnonzero(found.found == status)
            if len(left):
                again = self._chosen(SparseRows(queries.take(left)), k, alive, len(self), whole=whole)
                for mine, new in zip(found, again, strict=True):
                    mine[left] = new
        for query in np.flatnonzero(found.found < 0).tolist():
            found.found[query] = self._best_of_all(queries, query, k, alive, found)
        return found

    def _chosen(
        self, queries: SparseRows, k: int, alive: np.ndarray | None, room: int, *, whole: bool
    ) -> Found:
        """The best of those that the postings choose; see :class:`Candidates` for ``found`` below 0."""
        found = Found.nothing(len(queries), k)
        for chosen in batches(len(queries), room):
            candidates = self.postings.candidates(queries, chosen, k, alive, room=room, whole=whole)
            part = slice(int(chosen[0]), int(chosen[-1]) + 1)
            found.found[part] = candidates.found
            self.rescore(queries, part.start, candidates.slots, Found(*(array[part] for array in found)), k)
        return found

    def rescore(self, queries: SparseRows, first: int, slots: np.ndarray, found: Found, k: int) -> None:
        """Write into ``found`` the best of the candidates of query ``first`` and those after it."""
        load_kernels().rescore(
            *self.rows.arrays, *queries.arrays, first, queries.width, slots, found.found, k, *found[:2]
        )

    def _best_of_all(
        self, queries: SparseRows, query: int, k: int, alive: np.ndarray | None, found: Found
    ) -> int:
        """For a query with so many terms that sums of whole numbers say too little."""
        part = slice(int(queries.indptr[query]), int(queries.indptr[query + 1]))
        size: int = load_kernels().best_of_all(
            *self.rows.arrays,
            np.empty(0, dtype=np.bool_) if alive is None else alive,
            queries.columns[part],
            queries.weights[part],
            self.rows.width,
            k,
            found.slots[query],
            found.scores[query],
        )
        return size


class Segments:
    """All documents of an index; slots are numbered through."""

    def __init__(self, first: Segment, hub_share: float) -> None:
        self.parts = [first]
        self._hub_share = hub_share

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def append(self, rows: csr_array) -> None:
        """Put ``rows`` behind the others."""
        self.parts.append(Segment.build(rows, self._hub_share))
        while len(self.parts) > 1 and len(self.parts[-2]) < 2 * len(self.parts[-1]):
            last, before = self.parts.pop(), self.parts.pop()
            self.parts.append(Segment.build(_stacked([before, last]), self._hub_share))

    def take(self, slots: np.ndarray) -> csr_array:
        """Copies of the rows in ``slots``."""
        rows = self.parts[0].rows.csr() if len(self.parts) == 1 else _stacked(self.parts)
        return rows[slots]

    def best(self, queries: csr_array, k: int, alive: np.ndarray | None) -> Found:
        """The ``k`` best for each query, exactly, equal scores by slot; fewer where fewer share a term."""
        asked = SparseRows(queries)
        best: Found | None = None
        first = 0
        for part in self.parts:
            if not len(part):
                continue
            here = None if alive is None else alive[first : first + len(part)]
            found = part.best(asked, min(k, len(part)), here)
            found.slots[...] += first
            best = found if best is None else merged(best, found, k)
            first += len(part)
        return Found.nothing(len(asked), k) if best is None else best


def _stacked(parts: list[Segment]) -> csr_array:
    rows = csr_array(vstack([part.rows.csr() for part in parts], format="csr"))
    rows.has_canonical_format = True
    return rows


def merged(one: Found, other: Found, k: int) -> Found:
    """The k best of both; those of ``one`` have the smaller slots."""
    scores = np.concatenate([_padded(one), _padded(other)], axis=1)
    slots = np.concatenate([one.slots, other.slots], axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    found = np.minimum(one.found + other.found, k)
    return Found(np.take_along_axis(slots, order, axis=1), np.take_along_axis(scores, order, axis=1), found)


def _padded(found: Found) -> np.ndarray:
    return np.where(np.arange(found.scores.shape[1]) < found.found[:, None], found.scores, -np.inf)
