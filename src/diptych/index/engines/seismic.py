"""Seismic: posting lists cut short and clustered, of which a search opens the clusters that look best.

Bruch, Nardini, Rulli and Venturini, "Efficient Inverted Indexes for Approximate Retrieval over Learned
Sparse Representations", SIGIR 2024; the library is pyseismic-lsr (the extra ``engines``).
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.context import task
from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.extras import require
from diptych.core.reading import file_errors
from diptych.index.contract import Change
from diptych.index.engine import Known, OptionValue, declare
from diptych.index.rescored import RescoredIndex, silenced
from diptych.index.slots import ItemTable
from diptych.index.sparse_rows import SparseRows
from diptych.index.storage import REBUILD, Header

_FILE = "lists.index.seismic"
_SMALL_VOCABULARY = 1 << 16  # terms that the library's usual index can number
_HALF = float(np.finfo(np.float16).max)
_BUILDING = (
    *("n_postings", "centroid_fraction", "min_cluster_size"),
    *("summary_energy", "max_fraction", "doc_cut", "nknn"),
)


def _library() -> Any:
    return require("seismic", purpose="the seismic engine")


def _class(name: str, width: int) -> Any:
    return getattr(_library(), name + "LV" if width >= _SMALL_VOCABULARY else name)


class SeismicIndex(RescoredIndex):
    """The library keeps weights in half precision; see :mod:`diptych.index.rescored` for the scores.

    Its lists are saved in its own binary format (no pickle), next to the vectors. Fewer than k hits come
    back where the opened clusters hold no more.
    """

    engine_name = "seismic"

    def __init__(self, store: tuple[Any, SparseRows], items: ItemTable, known: Known) -> None:
        super().__init__(store, items, known)
        self._lists, self._rows = store
        self._names = np.arange(self.width).astype(_library().get_seismic_string())

    @classmethod
    def _make(cls, items: Change, known: Known) -> tuple[Any, SparseRows]:
        rows, options = SparseRows.of(items.vectors), known.options
        if rows.weights.max(initial=0) > _HALF:
            raise DataError(
                f"a weight of {rows.weights.max():g} is above {_HALF:g}, the largest in half precision",
                "scale the weights, or use the inverted engine",
            )
        numbers = [str(slot) for slot in range(len(rows))]
        with task("building the seismic index"), silenced():
            bags = _class("SeismicDataset", rows.width)(dim=rows.width)
            bags.add_documents_by_id(numbers, rows.columns.astype(np.int64), rows.weights, rows.indptr)
            lists = _class("SeismicIndex", rows.width).build_from_dataset(
                bags, num_threads=options["threads"], **{name: options[name] for name in _BUILDING}
            )
        return lists, rows

    def _call(
        self, queries: SparseRows, chosen: np.ndarray, k: int, options: Mapping[str, OptionValue]
    ) -> Callable[[], list[list[tuple[str, float, str]]]]:
        kept = self.options["nknn"]
        if int(options["n_knn"]) > int(kept):
            raise UsageError(
                f"n_knn={options['n_knn']} neighbours are to be looked at, the index keeps nknn={kept}",
                "build the index with more, or look at fewer",
            )
        search = self._lists.search
        cut, factor, neighbours = options["query_cut"], options["heap_factor"], options["n_knn"]
        weighted = []
        for query in chosen.tolist():
            terms = slice(queries.indptr[query], queries.indptr[query + 1])
            weighted.append((self._names[queries.columns[terms]], queries.weights[terms]))
        # One by one, which takes no longer than the library's batches; those come back in no order.
        return lambda: [
            search("", terms, weights, k, cut, factor, neighbours) if len(terms) else []
            for terms, weights in weighted
        ]

    def _candidates(
        self, answer: list[list[tuple[str, float, str]]], queries: int, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        slots = np.zeros((queries, k), dtype=np.int32)
        found = np.array([len(hits) for hits in answer], dtype=np.int64)
        for row, hits in enumerate(answer):
            slots[row, : len(hits)] = [int(number) for _, _, number in hits]
        return slots, found

    def _save(self, folder: Path) -> None:
        super()._save(folder)
        with silenced():
            self._lists.save(str(folder / _FILE.removesuffix(".index.seismic")))

    @classmethod
    def _load(cls, folder: Path, header: Header, count: int) -> tuple[Any, SparseRows]:
        rows = SparseRows.read(folder, count, header.width)
        with file_errors(folder / _FILE, fix=REBUILD), silenced():
            lists = _class("SeismicIndex", rows.width).load(str(folder / _FILE))
        full = int(np.count_nonzero(np.diff(rows.indptr)))
        if lists.len != full:
            raise StorageError(
                f"{folder / _FILE}: {full:,} items with terms expected, got {lists.len:,}", REBUILD
            )
        return lists, rows


declare("seismic", SeismicIndex)
