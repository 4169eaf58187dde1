"""HNSW: a navigable graph (Faiss) that finds most of the best items by looking at few.

Malkov and Yashunin, "Efficient and robust approximate nearest neighbor search using Hierarchical
Navigable Small World graphs", TPAMI 2020.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from diptych.core.context import task
from diptych.core.errors import StorageError
from diptych.index.contract import Change
from diptych.index.engine import Found, Known, OptionValue, Vectors, declare
from diptych.index.slots import ItemTable, LocalIndex
from diptych.index.storage import REBUILD, Header
from diptych.index.vectors import RowStore, dense_vectors, largest_norm, pair_scores

_BLOCK = 4096
_LOOKED_AT = 4  # items that a walk compares for each candidate it keeps


def _faiss() -> Any:
    import faiss

    return faiss


@contextmanager
def faiss_threads(number: int) -> Iterator[None]:
    """Let Faiss have so many threads; 0: as many as it has."""
    faiss = _faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(number or before)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


class HnswIndex(LocalIndex):
    """Faiss ``IndexHNSWFlat`` under the inner product; the slots are Faiss's numbers.

    Deleted items stay in the graph as tombstones, through which a search walks without returning
    them (it looks at proportionally more items then); :meth:`rebuild` drops them. A query for which
    the graph still yields fewer than k live items is answered by exact search. Scores are computed
    again from the vectors, so they are the exact engine's to the last bit; the rule for ties orders
    what the graph found.

    With ``threads=1`` the same builds, adds and saves give the same graph. The graph is made for
    vectors of unit length; of others it misses more, which its recall shows.
    """

    engine_name = "hnsw"
    mapped: ClassVar[frozenset[str]] = frozenset({"rows.faiss"})

    def __init__(self, store: tuple[Any, Any], items: ItemTable, known: Known) -> None:
        super().__init__(store, items, known)
        self._graph, self._storage = store  # which the graph does not keep alive when it was opened apart
        self._view: RowStore | None = None

    @property
    def _rows(self) -> RowStore:
        if self._view is None:
            rows, count = np.empty(0, dtype=np.float32), int(self._storage.ntotal)
            if count:
                rows = _faiss().rev_swig_ptr(self._storage.get_xb(), count * self.width)
            self._view = RowStore(rows.reshape(count, self.width))
        return self._view

    @classmethod
    def _make(cls, items: Change, known: Known) -> tuple[Any, Any]:
        faiss, options = _faiss(), known.options
        rows = dense_vectors(items.vectors, known.width, "item")
        largest_norm(rows, items.ids, "item")
        graph = faiss.IndexHNSWFlat(known.width, options["m"], faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = options["ef_construction"]
        _link(graph, rows, int(options["threads"]))
        return graph, faiss.downcast_index(graph.storage)

    def _add(self, change: Change) -> None:
        if not self._storage.codes.is_owned:  # mapped rows cannot grow
            owned = _faiss().IndexFlatIP(self.width)
            for _, block in self._rows.blocks():
                owned.add(np.ascontiguousarray(block))
            self._graph.storage, self._storage = owned, owned
        self._view = None  # Faiss may move its rows
        _link(self._graph, change.vectors, int(self.options["threads"]))
        self._items.append(change)

    def _find(
        self, queries: Vectors, k: int, alive: np.ndarray | None, options: Mapping[str, OptionValue]
    ) -> Found:
        faiss, ef_search = _faiss(), int(options["ef_search"])
        size = len(self._items)
        count = size if alive is None else int(np.count_nonzero(alive))
        effort = min(size, -(-max(ef_search, k) * size // count))
        if alive is not None and count < len(self) and count < _LOOKED_AT * effort:
            return self._find_exact(queries, k, alive)  # the graph would look at more than these
        chosen: dict[str, Any] = {"efSearch": effort}
        if alive is not None:
            chosen["sel"] = faiss.IDSelectorBitmap(np.packbits(alive, bitorder="little"))
        _, slots = self._graph.search(queries, k, params=faiss.SearchParametersHNSW(**chosen))
        full = (slots >= 0).all(axis=1)
        if not full.all():
            slots[~full] = self._find_exact(queries[~full], k, alive).slots
        scores = pair_scores(self._rows, slots.reshape(-1), queries, np.repeat(np.arange(len(slots)), k))
        scores = scores.reshape(slots.shape)
        order = np.lexsort((slots, -scores), axis=-1)
        return Found.whole(
            np.take_along_axis(slots, order, axis=1), np.take_along_axis(scores, order, axis=1)
        )

    def _save(self, folder: Path) -> None:
        faiss = _faiss()
        with _faiss_errors("written", "free some space and save again; what was there before is whole"):
            faiss.write_index(self._storage, str(folder / "rows.faiss"))
            faiss.write_index(self._graph, str(folder / "graph.faiss"), faiss.IO_FLAG_SKIP_STORAGE)

    @classmethod
    def _load(cls, folder: Path, header: Header, count: int) -> tuple[Any, Any]:
        faiss = _faiss()
        with _faiss_errors("opened", REBUILD):
            storage = faiss.read_index(str(folder / "rows.faiss"), faiss.IO_FLAG_MMAP_IFC)
            graph = faiss.read_index(str(folder / "graph.faiss"), faiss.IO_FLAG_SKIP_STORAGE)
        for what, have in (("rows", storage), ("graph", graph)):
            if (have.d, have.ntotal) != (header.width, count):
                expected = f"{count:,} of width {header.width} expected"
                got = f"{have.ntotal:,} of width {have.d}"
                raise StorageError(f"the {what} in {folder}: {expected}, got {got}", REBUILD)
        graph.storage = storage
        return graph, storage


def _link(graph: Any, rows: np.ndarray, threads: int) -> None:
    """Take ``rows`` into the graph, behind those that are there."""
    with faiss_threads(threads), task("building the hnsw graph", len(rows), "items") as bar:
        for start in range(0, len(rows), _BLOCK):
            block = np.ascontiguousarray(rows[start : start + _BLOCK])
            graph.add(block)
            bar.advance(len(block))


@contextmanager
def _faiss_errors(what: str, fix: str) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        # Faiss's own sentence, without the C++ function and line before it.
        reason = str(error).strip().splitlines()[-1].split("Error: ")[-1]
        raise StorageError(f"the hnsw graph cannot be {what}: {reason}", fix) from None


declare("hnsw", HnswIndex)
