"""Exact sparse search: whole-number sums over 8-bit postings choose, the weights themselves decide."""

from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array

from diptych.index.contract import Change
from diptych.index.engine import Found, Known, Vectors, declare
from diptych.index.kernels import can_compile
from diptych.index.postings import Postings
from diptych.index.segments import Segment, Segments
from diptych.index.slots import SlotIndex
from diptych.index.sparse_rows import SparseRows
from diptych.index.storage import Header


class InvertedIndex(SlotIndex):
    """Postings in blocks (:mod:`diptych.index.postings`) over memory-mapped rows.

    A built index reads the embeddings' own rows (do not change them meanwhile), a saved one maps its files;
    added rows stay in memory until the next save, which also drops deleted ones. The first search compiles.
    """

    engine_name = "inverted"
    mapped: ClassVar[frozenset[str]] = SparseRows.mapped | Postings.mapped
    reopens = True

    _store: Segments

    @classmethod
    def _make(cls, items: Change, known: Known) -> Segments:
        return Segments(Segment.build(items.vectors, float(known.options["hub_share"])))

    def _insert(self, change: Change) -> None:
        self._store.settle(wait=False)  # an error of a merge is raised before anything changes
        super()._insert(change)

    def _add(self, change: Change) -> None:
        self._items.append(change)
        self._store.append(change.vectors)

    def _find_exact(self, queries: Vectors, k: int, alive: np.ndarray | None) -> Found:
        return self._store.best(queries, k, alive)

    def document_frequency(self) -> np.ndarray:
        """(|V|,) int64: how many items have each term, deleted ones among them."""
        return np.asarray(sum(part.rows.frequency() for part in self._store.parts))

    def _take(self, slots: np.ndarray) -> csr_array:
        return self._store.take(slots)

    def _save(self, folder: Path) -> None:
        self._store.settle()
        segment = self._store.parts[0]
        if len(self._store.parts) > 1 or self.tombstones:
            live = self._store.take(self._items.live_slots())
            segment = Segment.build(live, float(self.options["hub_share"]))
        segment.rows.write(folder)
        if segment.built is not None or can_compile():
            segment.postings.write(folder)

    @classmethod
    def _load(cls, folder: Path, header: Header, count: int) -> Segments:
        rows = SparseRows.read(folder, count, header.width)
        has_postings, share = (folder / "postings.hubs.npy").is_file(), float(header.options["hub_share"])
        postings = Postings.read(folder, count, header.width) if has_postings else None
        return Segments(Segment(rows, share, postings))


declare("inverted", InvertedIndex)
