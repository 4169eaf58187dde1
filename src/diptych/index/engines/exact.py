"""Exact search: every vector is compared with every query, in blocks, straight from the mapped file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from diptych.core.files import write_json
from diptych.encoders.embeddings import Embeddings
from diptych.index.engine import ENGINES, Engine, OptionValue
from diptych.index.hits import Hits
from diptych.index.hooks import Vectors
from diptych.index.slots import IdTable, LocalIndex
from diptych.index.storage import Header, load_array, load_ids
from diptych.index.vectors import RowStore, dense_vectors, row_norms


class ExactIndex(LocalIndex):
    """Blocked inner products over memory-mapped rows; see :mod:`diptych.index.topk`.

    A built index reads the embeddings' own rows (do not change them meanwhile), a saved one maps its
    file; added rows stay in memory until the next save, which also drops deleted ones.
    """

    engine_name = "exact"
    mapped = frozenset({"rows.npy"})

    def __init__(self, rows: RowStore, ids: IdTable, **said: Any) -> None:
        super().__init__(ids, **said)
        self._store = rows

    def _rows(self) -> RowStore:
        return self._store

    @classmethod
    def _build(cls, embeddings: Embeddings, options: dict[str, OptionValue], about: dict[str, Any]) -> Self:
        rows = dense_vectors(embeddings.rows, embeddings.width, "item")
        store = RowStore(rows, row_norms(rows, embeddings.ids, "item"))
        return cls(
            store,
            IdTable(embeddings.ids),
            encoder=embeddings.encoder,
            width=embeddings.width,
            options=options,
            about=about,
        )

    def _add(self, ids: Sequence[str], vectors: Vectors) -> None:
        self._store.append(vectors)
        self._ids.append(ids)

    def _search(self, queries: Vectors, k: int, options: Mapping[str, OptionValue]) -> Hits:
        return self._search_exact(queries, k)

    def _write(self, folder: Path) -> None:
        live = self._ids.live_slots()
        self._store.write(folder / "rows.npy", live)
        np.save(folder / "norms.npy", self._store.norms[live])
        write_json(folder / "ids.json", self.ids)

    @classmethod
    def _load(cls, folder: Path, header: Header) -> tuple[RowStore, IdTable]:
        rows = load_array(folder / "rows.npy", (header.items, header.width), np.float32, mapped=True)
        norms = load_array(folder / "norms.npy", (header.items,), np.float32, mapped=False)
        return RowStore(rows, norms), IdTable(load_ids(folder / "ids.json"))

    @classmethod
    def _read(cls, folder: Path, header: Header) -> Self:
        rows, ids = cls._load(folder, header)
        return cls(
            rows,
            ids,
            encoder=header.encoder,
            width=header.width,
            options=header.options,
            about=header.about,
        )

    def save(self, folder: Path | str) -> Path:
        """As the contract says; from then on the saved file is what is searched."""
        saved = super().save(folder)
        self._store, self._ids = self._load(saved, Header.open(saved))
        return saved


EXACT = ENGINES.add(
    Engine(
        name="exact",
        description="compares every item with every query; the right choice up to about 150,000 items",
        index=ExactIndex,
        approximate=False,
    )
)
