"""Exact search: every vector is compared with every query, in blocks, straight from the mapped file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from diptych.encoders.embeddings import Embeddings
from diptych.index.engine import Hits, Known, OptionValue, Vectors, declare
from diptych.index.slots import IdTable, LocalIndex
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

    def __init__(self, rows: RowStore, ids: IdTable, **known: Any) -> None:
        super().__init__(ids, **known)
        self._store = rows

    def _rows(self) -> RowStore:
        return self._store

    @classmethod
    def _build(cls, embeddings: Embeddings, known: Known) -> Self:
        rows = dense_vectors(embeddings.rows, embeddings.width, "item")
        store = RowStore(rows, row_norms(rows, embeddings.ids, "item"))
        return cls(store, IdTable(embeddings.ids), **known)

    def _add(self, ids: Sequence[str], vectors: Vectors) -> None:
        self._ids.append(ids)  # first: a search meanwhile finds a name for every row
        self._store.append(vectors)

    def _find(
        self, queries: Vectors, k: int, alive: np.ndarray | None, options: Mapping[str, OptionValue]
    ) -> Hits:
        return self._find_exact(queries, k, alive)

    def _write(self, folder: Path) -> None:
        live = self._ids.live_slots()
        self._store.write(folder / "rows.npy", live)
        np.save(folder / "norms.npy", self._store.norms[live])
        self._ids.write(folder, live=True)

    @classmethod
    def _read(cls, folder: Path, header: Header) -> Self:
        rows = load_array(folder / "rows.npy", (header.items, header.width), np.float32, mapped=True)
        norms = load_array(folder / "norms.npy", (header.items,), np.float32, mapped=False)
        return cls(RowStore(rows, norms), IdTable.read(folder), **header.known())


declare("exact", ExactIndex)
