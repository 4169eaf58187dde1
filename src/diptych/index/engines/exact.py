"""Exact search: every vector is compared with every query, in blocks, straight from the mapped file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from diptych.index.contract import Change
from diptych.index.engine import Known, declare
from diptych.index.slots import ItemTable, LocalIndex
from diptych.index.storage import Header, load_array
from diptych.index.vectors import RowStore, dense_vectors, row_norms


class ExactIndex(LocalIndex):
    """Blocked inner products over memory-mapped rows; see :mod:`diptych.index.vectors`.

    A built index reads the embeddings' own rows (do not change them meanwhile), a saved one maps its
    file; added rows stay in memory until the next save, which also drops deleted ones.
    """

    engine_name = "exact"
    mapped: ClassVar[frozenset[str]] = frozenset({"rows.npy"})
    reopens = True

    def __init__(self, rows: RowStore, items: ItemTable, **known: Any) -> None:
        super().__init__(items, **known)
        self._store = rows

    def _rows(self) -> RowStore:
        return self._store

    @classmethod
    def _build(cls, items: Change, known: Known) -> Self:
        rows = dense_vectors(items.vectors, known["width"], "item")
        store = RowStore(rows, row_norms(rows, items.ids, "item"))
        return cls(store, ItemTable(items.ids, items.lines), **known)

    def _add(self, change: Change) -> None:
        self._items.append(change)  # first: a search meanwhile finds a name for every row
        self._store.append(change.vectors)

    def _write(self, folder: Path) -> None:
        live = self._items.live_slots()
        self._store.write(folder / "rows.npy", live)
        np.save(folder / "norms.npy", self._store.norms[live])
        self._items.write(folder, live=True)

    @classmethod
    def _read(cls, folder: Path, header: Header) -> Self:
        rows = load_array(folder / "rows.npy", (header.items, header.width), np.float32, mapped=True)
        norms = load_array(folder / "norms.npy", (header.items,), np.float32, mapped=False)
        return cls(RowStore(rows, norms), ItemTable.read(folder), **header.known())


declare("exact", ExactIndex)
