"""8-bit postings: frequent terms as rows over all documents, the others as lists; searched in blocks.

A term of document frequency above ``hub_share`` is a hub: a row with a byte for every document, read by vector
instructions at about a hundred codes per nanosecond, which from a few per cent on is less work than following its
list. Sums are whole numbers, so they depend on nothing but the document, the query and the codes; how far they can be
from the score is known (see :func:`diptych.index.kernels.prepare.prepare`), and exact search scores every document
again that can be among the best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from diptych.core.errors import StorageError, UsageError
from diptych.index.kernels import can_compile, kernels_loaded, load_kernels
from diptych.index.sparse_rows import SparseRows
from diptych.index.storage import load_array

MAPPED = ("hubs", "documents", "codes")  # the others are small, and read

# The arrays of :class:`Postings`.
#
# Kernels check no bounds. So what is read is checked number by number; of what is only mapped any content will do, for
# codes are added up and numbers of documents cut to the span.
TYPES: dict[str, type[np.generic]] = {
    "hubs": np.uint8,
    "starts": np.int64,
    "offsets": np.int32,
    "documents": np.uint16,
    "codes": np.uint8,
    "place_of": np.int32,
    "steps": np.float32,
    "span": np.int64,
}


def _fit(count: int, arrays: dict[str, np.ndarray]) -> bool:
    """Return whether a search of read arrays can be trusted to stay inside them."""
    starts, offsets, places, steps = (arrays[name] for name in ("starts", "offsets", "place_of", "steps"))
    (blocks, rows, block), span = arrays["hubs"].shape, int(arrays["span"][0])
    postings, lists = len(arrays["documents"]), offsets.shape[1] - 1
    return bool(
        0 < block <= span <= 65_536
        and block % 256 == 0 == span % block
        and span & (span - 1) == 0
        and blocks == -(-count // block)
        and len(starts) - 1 == len(offsets) == -(-count // span)
        and lists >= 0
        and postings == len(arrays["codes"]) == starts[-1]
        and starts[0] == 0
        and not offsets[:, 0].any()
        and np.array_equal(np.diff(starts), offsets[:, -1])
        and (offsets[:, 1:] >= offsets[:, :-1]).all()
        and -2 - lists < places.min(initial=-1)
        and places.max(initial=-1) < rows
        and (np.isfinite(steps) & (steps > 0)).all()
    )


# Documents whose rows are searched together: they stay in the cache while several queries pass.
BLOCK = 1024

# Documents whose postings stand together: longer lists are followed faster.
SPAN = 8192

TOO_MANY, UNCERTAIN = -1, -2

_FEWEST = 8  # documents of a hub
_ROOM = 2048  # candidates of a query beyond 8k
_TINY = float(np.finfo(np.float32).tiny)


class Candidates(NamedTuple):
    """Per query, the documents that can be among its best.

    :data:`TOO_MANY` of them are more than there was room for; of :data:`UNCERTAIN` ones some that share a term may
    have been missed.
    """

    slots: np.ndarray  # (q, room) int32, by slot
    values: np.ndarray  # (q, room) uint16, their sums
    found: np.ndarray  # (q,) int64, how many
    units: np.ndarray  # (q,) float64, the score that a sum of 1 stands for


@dataclass(frozen=True, eq=False)
class Postings:
    """The codes of n documents."""

    mapped: ClassVar[frozenset[str]] = frozenset(f"postings.{name}.npy" for name in MAPPED)

    count: int  # n
    hubs: np.ndarray  # (blocks, hubs, block)
    starts: np.ndarray  # (spans + 1,)
    offsets: np.ndarray  # (spans, lists + 1)
    documents: np.ndarray  # (postings,) numbers within the span
    codes: np.ndarray  # (postings,)
    place_of: np.ndarray  # (|V|,) see diptych.index.kernels.prepare.fill
    steps: np.ndarray  # (|V|,) what a code of 1 stands for
    span: np.ndarray  # (1,) documents in a span

    @classmethod
    def build(
        cls,
        rows: SparseRows,
        hub_share: float,
        *,
        nearest: bool = False,
        block: int = BLOCK,
        span: int = SPAN,
    ) -> Postings:
        kernels = load_kernels()
        documents = np.zeros(rows.width, dtype=np.int64)
        largest = np.zeros(rows.width, dtype=np.float32)
        kernels.frequencies(*rows.arrays, documents, largest)
        hub = documents >= max(hub_share * len(rows), _FEWEST)
        listed = (documents > 0) & ~hub
        place_of = np.full(rows.width, -1, dtype=np.int32)
        place_of[hub] = np.arange(np.count_nonzero(hub))
        place_of[listed] = -2 - np.arange(np.count_nonzero(listed))
        steps = np.maximum(largest / np.float32(255), np.float32(_TINY))
        blocks, spans = -(-len(rows) // block), -(-len(rows) // span)
        postings = int(documents[listed].sum())
        made = cls(
            count=len(rows),
            hubs=np.zeros((blocks, np.count_nonzero(hub), block), dtype=np.uint8),
            starts=np.zeros(spans + 1, dtype=np.int64),
            offsets=np.zeros((spans, np.count_nonzero(listed) + 1), dtype=np.int32),
            documents=np.empty(postings, dtype=np.uint16),
            codes=np.empty(postings, dtype=np.uint8),
            place_of=place_of,
            steps=steps,
            span=np.array([span], dtype=np.int64),
        )
        laid_out = (made.hubs, made.starts, made.offsets, made.documents, made.codes)
        kernels.fill(*rows.arrays, place_of, steps, 0.5 if nearest else 0.0, *laid_out, span)
        return made

    def candidates(
        self,
        queries: SparseRows,
        chosen: np.ndarray,
        k: int,
        alive: np.ndarray | None,
        *,
        room: int,
        final: bool = False,
        whole: bool = False,
    ) -> Candidates:
        """Return what can be among the ``k`` best for some of the queries.

        Args:
            chosen: (q,) int64, which of the queries.
            alive: (n,) bool, which documents can be found; None: all.
        """
        kernels = load_kernels()
        count = len(chosen)
        longest = int(np.diff(queries.indptr)[chosen].max())
        if final and longest > kernels.MOST_TERMS:
            raise UsageError(
                f"a query has {longest:,} terms, sums of 8-bit weights hold {kernels.MOST_TERMS:,}",
                "search with the inverted engine, or keep the strongest terms of each query",
            )
        terms = int(np.sum(queries.indptr[chosen + 1] - queries.indptr[chosen]))
        hub_rows, hub_weights = np.empty(terms, dtype=np.int64), np.empty(terms, dtype=np.uint16)
        lists, list_weights = np.empty(terms, dtype=np.int32), np.empty(terms, dtype=np.uint32)
        hub_ends, list_ends, windows = (np.empty(count, dtype=np.int64) for _ in range(3))
        units, certain = np.empty(count, dtype=np.float64), np.empty(count, dtype=np.bool_)
        # Room for the last, shorter round of the longest query.
        rests = np.empty((count, 1 + longest // 8), dtype=np.uint16)
        prepared = (hub_rows, hub_weights, hub_ends, rests, lists, list_weights, list_ends)
        layout = self.place_of, self.steps, self.hubs.shape[2]
        kernels.prepare(*queries.arrays, *layout, chosen, whole, *prepared, units, windows, certain)
        room = min(self.count, room)
        values, slots = np.empty((count, room), dtype=np.uint16), np.empty((count, room), dtype=np.int32)
        found, thresholds = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
        postings = self.hubs, self.starts, self.offsets, self.documents, self.codes, int(self.span[0])
        every = np.empty(0, dtype=np.bool_) if alive is None else alive
        best = values, slots, found, thresholds
        kernels.scan(*postings, every, self.count, *prepared, windows, final, k, *best)
        if not final:
            found[~certain & (found >= 0) & ((found < k) | (thresholds <= 1))] = UNCERTAIN
        return Candidates(slots, values, found, units)

    @staticmethod
    def room(k: int) -> int:
        """Return how many candidates a query usually has at most."""
        return 8 * k + _ROOM

    def write(self, folder: Path) -> None:
        for name in TYPES:
            np.save(folder / f"postings.{name}.npy", getattr(self, name))

    @classmethod
    def read(cls, folder: Path, count: int, width: int) -> Postings:
        shapes: dict[str, tuple[int | None, ...]] = {"hubs": (None, None, None), "offsets": (None, None)}
        shapes |= {"place_of": (width,), "steps": (width,), "span": (1,)}
        arrays = {}
        for name, kind in TYPES.items():
            path, shape = folder / f"postings.{name}.npy", shapes.get(name, (None,))
            arrays[name] = np.asarray(load_array(path, shape, kind, mapped=name in MAPPED))
        if not _fit(count, arrays):
            raise StorageError(
                f"the postings in {folder} are not those of {count:,} documents", "build the index again"
            )
        return cls(count=count, **arrays)


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


def batches(queries: int, room: int) -> list[np.ndarray]:
    """The numbers of queries in batches whose candidates, ``room`` for each, fit in memory."""
    size = max(1, min(_QUERIES, _CANDIDATES // max(1, room)))
    return [np.arange(start, min(start + size, queries)) for start in range(0, queries, size)]


@dataclass(frozen=True, eq=False)
class Segment:
    """Some documents: ``rows`` hold their weights, ``postings`` where to look for them."""

    rows: SparseRows
    hub_share: float
    built: Postings | None  # None where the kernels that build postings could not be compiled

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
        few_products = len(self.rows.weights) * len(queries) <= _FEW and not kernels_loaded()
        if few_products or not can_compile():
            return self._by_numpy(queries, k, alive)
        found = self.chosen(queries, k, alive, self.postings.room(k), whole=False)
        for status, whole in ((TOO_MANY, False), (UNCERTAIN, True)):
            left = np.flatnonzero(found.found == status)
            if len(left):
                again = self.chosen(SparseRows(queries.take(left)), k, alive, len(self), whole=whole)
                for mine, new in zip(found, again, strict=True):
                    mine[left] = new
        for query in np.flatnonzero(found.found < 0).tolist():
            found.found[query] = self.rows.best_of_all(queries, query, k, alive, *found[:2])
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
            best = _merged(best, found, k)
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
        for batch in batches(len(queries), room):
            candidates = self.postings.candidates(
                first or queries, batch, depth or k, alive, room=room, final=final, whole=whole
            )
            part = slice(int(batch[0]), int(batch[-1]) + 1)
            found.found[part] = candidates.found
            best = [array[part] for array in found]
            load_kernels().rescore(
                *(*self.rows.arrays, *queries.arrays, part.start, queries.width),
                *(candidates.slots, best[2], k, best[0], best[1]),
            )
        return found


class Segments:
    """All documents of an index; slots are numbered through."""

    def __init__(self, first: Segment, hub_share: float) -> None:
        self.parts: list[Segment] = [first]
        self._hub_share = hub_share

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def append(self, rows: csr_array) -> None:
        self.parts.append(Segment.build(rows, self._hub_share))
        while len(self.parts) > 1 and len(self.parts[-2]) < 2 * len(self.parts[-1]):
            last, before = self.parts.pop(), self.parts.pop()
            self.parts.append(Segment.build(_stacked([before, last]), self._hub_share))

    def take(self, slots: np.ndarray) -> csr_array:
        rows = self.parts[0].rows.csr() if len(self.parts) == 1 else _stacked(self.parts)
        return rows[slots]

    def best(
        self,
        queries: csr_array,
        k: int,
        alive: np.ndarray | None,
        find: Callable[[Segment, SparseRows, int, np.ndarray | None], Found] = Segment.best,
    ) -> Found:
        """Return the ``k`` best of what ``find`` finds in each segment, equal scores by slot; exactly by default."""
        rows, start = SparseRows(queries), 0
        best: Found | None = None
        for part in filter(len, self.parts):
            here = None if alive is None else alive[start : start + len(part)]
            found = find(part, rows, min(k, len(part)), here)
            found.slots[...] += start
            best = found if best is None else _merged(best, found, k)
            start += len(part)
        return Found.nothing(len(rows), k) if best is None else best


def _stacked(parts: list[Segment]) -> csr_array:
    rows = csr_array(vstack([part.rows.csr() for part in parts], format="csr"))
    rows.has_canonical_format = True
    return rows


def _merged(one: Found, other: Found, k: int) -> Found:
    """The k best of both; those of ``one`` have the smaller slots."""
    scores = np.concatenate([_padded(one), _padded(other)], axis=1)
    slots = np.concatenate([one.slots, other.slots], axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    found = np.minimum(one.found + other.found, k)
    return Found(np.take_along_axis(slots, order, axis=1), np.take_along_axis(scores, order, axis=1), found)


def _padded(found: Found) -> np.ndarray:
    return np.where(np.arange(found.scores.shape[1]) < found.found[:, None], found.scores, -np.inf)
