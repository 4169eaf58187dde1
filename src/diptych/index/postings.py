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
from typing import Any, ClassVar, NamedTuple

import numpy as np

from diptych.core.errors import StorageError
from diptych.core.reading import map_array, read_array
from diptych.index.kernels import GROUP, load_kernels
from diptych.index.sparse_rows import SparseRows
from diptych.index.storage import REBUILD

MAPPED = ("hubs", "documents", "codes")  # the others are small, and read

# The arrays of :class:`Postings`.
#
# Kernels check no bounds. So what is read is checked number by number; of what is only mapped any content will do, for
# codes are added up and numbers of documents cut to the span.
TYPES: dict[str, type[np.generic]] = {
    "hubs": np.uint8,
    "bounds": np.uint8,
    "starts": np.int64,
    "offsets": np.int32,
    "documents": np.uint16,
    "codes": np.uint8,
    "place_of": np.int32,
    "steps": np.float32,
}


# Documents whose rows are searched together: they stay in the cache while several queries pass.
BLOCK = 1024

# Documents whose postings stand together: longer lists are followed faster. A power of two.
SPAN = 8192


def _fit(count: int, arrays: dict[str, np.ndarray]) -> bool:
    """Return whether a search of read arrays can be trusted to stay inside them."""
    starts, offsets, places, steps = (arrays[name] for name in ("starts", "offsets", "place_of", "steps"))
    blocks, rows, block = arrays["hubs"].shape
    postings, lists = len(arrays["documents"]), offsets.shape[1] - 1
    return bool(
        block == BLOCK
        and blocks == -(-count // BLOCK)
        and len(starts) - 1 == len(offsets) == -(-count // SPAN)
        and lists >= 0
        and arrays["bounds"].shape == (len(offsets), rows, SPAN // GROUP)
        and postings == len(arrays["codes"]) == starts[-1]
        and starts[0] == 0
        and not offsets[:, 0].any()
        and np.array_equal(np.diff(starts), offsets[:, -1])
        and (offsets[:, 1:] >= offsets[:, :-1]).all()
        and -2 - lists < places.min(initial=-1)
        and places.max(initial=-1) < rows
        and (np.isfinite(steps) & (steps > 0)).all()
    )


TOO_MANY, UNCERTAIN = -1, -2

NOTHING_DEAD = np.empty(0, dtype=np.bool_)
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
    bounds: np.ndarray  # (spans, hubs, groups of a span) the largest code of each group
    starts: np.ndarray  # (spans + 1,)
    offsets: np.ndarray  # (spans, lists + 1)
    documents: np.ndarray  # (postings,) numbers within the span
    codes: np.ndarray  # (postings,)
    place_of: np.ndarray  # (|V|,) see diptych.index.kernels.prepare.fill
    steps: np.ndarray  # (|V|,) what a code of 1 stands for

    @classmethod
    def build(cls, rows: SparseRows, hub_share: float, *, nearest: bool = False) -> Postings:
        kernels = load_kernels()
        documents = np.zeros(rows.width, dtype=np.int64)
        largest = np.zeros(rows.width, dtype=np.float32)
        kernels.frequencies(rows.arrays, documents, largest)
        hub = documents >= max(hub_share * len(rows), _FEWEST)
        listed = (documents > 0) & ~hub
        place_of = np.full(rows.width, -1, dtype=np.int32)
        place_of[hub] = np.arange(np.count_nonzero(hub))
        place_of[listed] = -2 - np.arange(np.count_nonzero(listed))
        steps = np.maximum(largest / np.float32(255), np.float32(_TINY))
        blocks, spans = -(-len(rows) // BLOCK), -(-len(rows) // SPAN)
        postings = int(documents[listed].sum())
        made = cls(
            count=len(rows),
            hubs=np.zeros((blocks, np.count_nonzero(hub), BLOCK), dtype=np.uint8),
            bounds=np.zeros((spans, np.count_nonzero(hub), SPAN // GROUP), dtype=np.uint8),
            starts=np.zeros(spans + 1, dtype=np.int64),
            offsets=np.zeros((spans, np.count_nonzero(listed) + 1), dtype=np.int32),
            documents=np.empty(postings, dtype=np.uint16),
            codes=np.empty(postings, dtype=np.uint8),
            place_of=place_of,
            steps=steps,
        )
        laid_out = (made.hubs, made.bounds, made.starts, made.offsets, made.documents, made.codes)
        kernels.fill(rows.arrays, place_of, steps, 0.5 if nearest else 0.0, laid_out, SPAN)
        return made

    @property
    def arrays(self) -> tuple[Any, ...]:
        """Return what the kernels take."""
        lists = self.starts, self.offsets, self.documents, self.codes, SPAN
        return self.place_of, self.steps, self.hubs, self.bounds, *lists

    def candidates(
        self, queries: SparseRows, chosen: slice, k: int, alive: np.ndarray | None, *, room: int, whole: bool
    ) -> Candidates:
        """Return the ``k`` documents of the largest sums for some of the queries, among those that are alive."""
        queries.check_terms()
        every = NOTHING_DEAD if alive is None else alive
        choice = every, self.count, chosen.start, chosen.stop, whole, True, k, min(self.count, room)
        return Candidates(*load_kernels().candidates(queries.arrays, self.arrays, choice))

    @staticmethod
    def room(k: int) -> int:
        """Return how many candidates a query usually has at most."""
        return 8 * k + _ROOM

    def write(self, folder: Path) -> None:
        for name in TYPES:
            np.save(folder / f"postings.{name}.npy", getattr(self, name))

    @classmethod
    def read(cls, folder: Path, count: int, width: int) -> Postings:
        shapes: dict[str, tuple[int | None, ...]] = {
            "hubs": (None,) * 3,
            "bounds": (None,) * 3,
            "offsets": (None, None),
        }
        shapes |= {"place_of": (width,), "steps": (width,)}
        arrays = {}
        for name, kind in TYPES.items():
            path, shape = folder / f"postings.{name}.npy", shapes.get(name, (None,))
            read = map_array if name in MAPPED else read_array
            arrays[name] = np.asarray(read(path, kind, shape, fix=REBUILD))
        if not _fit(count, arrays):
            raise StorageError(f"the postings in {folder} are not those of {count:,} documents", REBUILD)
        return cls(count=count, **arrays)
