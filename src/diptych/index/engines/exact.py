"""Exact search: every vector is compared with every query, in blocks, straight from the mapped file."""

from pathlib import Path
from typing import ClassVar

import numpy as np

from diptych.core.reading import map_array, read_array
from diptych.index.contract import Change
from diptych.index.engine import Known, declare
from diptych.index.slots import LocalIndex
from diptych.index.storage import REBUILD, Header
from diptych.index.vectors import RowStore, dense_vectors, largest_norm


class ExactIndex(LocalIndex):
    """Blocked inner products over memory-mapped rows; see :mod:`diptych.index.vectors`.

    A built index reads the embeddings' own rows (do not change them meanwhile), a saved one maps its
    file; added rows stay in memory until the next save, which also drops deleted ones.
    """

    engine_name = "exact"
    mapped: ClassVar[frozenset[str]] = frozenset({"rows.npy"})
    reopens = True

    @classmethod
    def _make(cls, items: Change, known: Known) -> RowStore:
        rows = dense_vectors(items.vectors, known.width, "item")
        return RowStore(rows, largest_norm(rows, items.ids, "item"))

    def _add(self, change: Change) -> None:
        self._items.append(change)  # first: a search meanwhile finds a name for every row
        self._rows.append(change.vectors)

    def _save(self, folder: Path) -> None:
        self._rows.write(folder / "rows.npy", self._items.live_slots())
        np.save(folder / "longest.npy", [self._rows.longest])

    @classmethod
    def _load(cls, folder: Path, header: Header, count: int) -> RowStore:
        rows = map_array(folder / "rows.npy", np.float32, (count, header.width), fix=REBUILD)
        longest = read_array(folder / "longest.npy", np.float32, (1,), fix=REBUILD)
        return RowStore(rows, longest[0])


declare("exact", ExactIndex)
