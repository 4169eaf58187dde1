"""8-bit postings: frequent terms as rows over all documents, the others as lists; searched in blocks.

A term of document frequency above ``hub_share`` is a hub: a row with a byte for every document, read by vector
instructions at about a hundred codes per nanosecond, which from a few per cent on is less work than following its
list. Sums are whole numbers, so they depend on nothing but the document, the query and the codes; how far they can be
from the score is known (see :func:`diptych.index.kernels.prepare.prepare`), and exact search scores every document
again that can be among the best.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from diptych.core.errors import StorageError, UsageError
from diptych.index.kernels import load_kernels
from diptych.index.sparse_rows import SparseRows
from diptych.index.storage import load_array

# The arrays of saved postings: their types, and whether a search of them can be trusted to stay inside them.
#
# Kernels check no bounds. So what is read is checked number by number; of what is only mapped any content will do, for
# codes are added up and numbers of documents cut to the span.

MAPPED = ("hubs", "documents", "codes")  # the others are small, and read

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
"""The arrays of :class:`diptych.index.postings.Postings`."""


def read_arrays(folder: Path, count: int, width: int) -> dict[str, np.ndarray]:
    """The arrays of ``count`` documents over ``width`` terms."""
    shapes: dict[str, tuple[int | None, ...]] = dict.fromkeys(TYPES, (None,))
    shapes |= {"hubs": (None, None, None), "offsets": (None, None)}
    shapes |= {"place_of": (width,), "steps": (width,), "span": (1,)}
    arrays = {
        name: np.asarray(
            load_array(folder / f"postings.{name}.npy", shapes[name], kind, mapped=name in MAPPED)
        )
        for name, kind in TYPES.items()
    }
    if not (_blocks_fit(count, arrays) and _lists_fit(count, arrays) and _places_fit(arrays)):
        raise StorageError(
            f"the postings in {folder} are not those of {count:,} documents", "build the index again"
        )
    return arrays


def _blocks_fit(count: int, arrays: dict[str, np.ndarray]) -> bool:
    blocks, _, block = arrays["hubs"].shape
    span = int(arrays["span"][0])
    whole = 0 < block <= span <= 65_536 and block % 256 == 0 == span % block and span & (span - 1) == 0
    return whole and blocks == -(-count // block)


def _lists_fit(count: int, arrays: dict[str, np.ndarray]) -> bool:
    starts, offsets, postings = arrays["starts"], arrays["offsets"], len(arrays["documents"])
    spans = -(-count // int(arrays["span"][0]))
    if not (
        len(starts) - 1 == len(offsets) == spans and offsets.shape[1] and postings == len(arrays["codes"])
    ):
        return False
    begin = starts[0] == 0 and not offsets[:, 0].any()
    ascending = np.array_equal(np.diff(starts), offsets[:, -1]) and (offsets[:, 1:] >= offsets[:, :-1]).all()
    return bool(begin and ascending and starts[-1] == postings)


def _places_fit(arrays: dict[str, np.ndarray]) -> bool:
    places, steps = arrays["place_of"], arrays["steps"]
    rows, lists = arrays["hubs"].shape[1], arrays["offsets"].shape[1] - 1
    return bool(
        -2 - lists < places.min(initial=-1)
        and places.max(initial=-1) < rows
        and (np.isfinite(steps) & (steps > 0)).all()
    )


BLOCK = 1024
"""Documents whose rows are searched together: they stay in the cache while several queries pass."""

SPAN = 8192
"""Documents whose postings stand together: longer lists are followed faster."""

TOO_MANY, UNCERTAIN = -1, -2

_FEWEST = 8  # documents of a hub
_ROOM = 2048  # candidates of a query beyond 8k
_TINY = float(np.finfo(np.float32).tiny)


class Candidates(NamedTuple):
    """Per query, the documents that can be among its best.

    Attributes:
        slots: (q, room) int32, by slot.
        values: (q, room) uint16, their sums.
        found: (q,) int64, how many; :data:`TOO_MANY`: more than there was room for; :data:`UNCERTAIN`:
            documents that share a term may have been missed.
        units: (q,) float64, the score that a sum of 1 stands for.
    """

    slots: np.ndarray
    values: np.ndarray
    found: np.ndarray
    units: np.ndarray


@dataclass(frozen=True, eq=False)
class Postings:
    """The codes of n documents.

    Attributes:
        count: n.
        hubs: (blocks, hubs, block) uint8.
        starts: (spans + 1,) int64.
        offsets: (spans, lists + 1) int32.
        documents: (postings,) uint16, numbers within the span.
        codes: (postings,) uint8.
        place_of: (|V|,) int32, see :func:`diptych.index.kernels.layout.fill`.
        steps: (|V|,) float32, what a code of 1 stands for.
        span: (1,) int64, documents in a span.
    """

    mapped: ClassVar = frozenset(f"postings.{name}.npy" for name in MAPPED)

    count: int
    hubs: np.ndarray
    starts: np.ndarray
    offsets: np.ndarray
    documents: np.ndarray
    codes: np.ndarray
    place_of: np.ndarray
    steps: np.ndarray
    span: np.ndarray

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
        """The postings of ``rows``."""
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
        """What can be among the ``k`` best for some of the queries.

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
        kernels.prepare(
            *queries.arrays,
            self.place_of,
            self.steps,
            self.hubs.shape[2],
            chosen,
            whole,
            *prepared,
            units,
            windows,
            certain,
        )
        room = min(self.count, room)
        values, slots = np.empty((count, room), dtype=np.uint16), np.empty((count, room), dtype=np.int32)
        found, thresholds = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
        kernels.scan(
            self.hubs,
            self.starts,
            self.offsets,
            self.documents,
            self.codes,
            int(self.span[0]),
            np.empty(0, dtype=np.bool_) if alive is None else alive,
            self.count,
            *prepared,
            windows,
            final,
            k,
            values,
            slots,
            found,
            thresholds,
        )
        if not final:
            found[~certain & (found >= 0) & ((found < k) | (thresholds <= 1))] = UNCERTAIN
        return Candidates(slots, values, found, units)

    @staticmethod
    def room(k: int) -> int:
        """How many candidates a query usually has at most."""
        return 8 * k + _ROOM

    def write(self, folder: Path) -> None:
        """Write one file per array."""
        for name in TYPES:
            np.save(folder / f"postings.{name}.npy", getattr(self, name))

    @classmethod
    def read(cls, folder: Path, count: int, width: int) -> Postings:
        """Map what :meth:`write` wrote."""
        return cls(count=count, **read_arrays(folder, count, width))
