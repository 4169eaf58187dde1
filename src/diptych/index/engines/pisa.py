"""PISA: compressed posting lists of whole-number impacts, with bounds by which a search skips parts of them.

Mallia, Siedlaczek, Mackenzie and Suel, "PISA: Performant Indexes and Search for Academia", OSIRRC 2019;
the library is pyterrier-pisa (the extra ``engines``; it runs without Java). With its default options it is
the configuration whose speeds Table 3.6 of the thesis prints.
"""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from diptych.core.context import task
from diptych.core.extras import require
from diptych.index.contract import Change
from diptych.index.engine import Known, OptionValue, declare
from diptych.index.rescored import RescoredIndex, silenced
from diptych.index.slots import ItemTable
from diptych.index.sparse_rows import SparseRows
from diptych.index.storage import Header

_MARK = "pt_meta.json"  # by which the library knows an index of its own
_COMPRESSED = "quantized.q0.bmw.64.block_simdbp"
_UNUSED = frozenset({"inv.docs", "inv.freqs"})  # the lists before they are compressed

Answer = tuple[int, np.ndarray, np.ndarray]


class PisaIndex(RescoredIndex):
    """Weights become the whole number below ``scale`` times the weight; the library adds up products of
    these, and the items it names are scored again, see :mod:`diptych.index.rescored`.

    A term whose number is 0 in an item or in a query is lost to the search. The library's files lie in a
    temporary folder until the index is saved, and then next to the vectors.
    """

    engine_name = "pisa"
    mapped: ClassVar[frozenset[str]] = RescoredIndex.mapped | {_COMPRESSED}

    def __init__(self, store: tuple[Path | None, SparseRows], items: ItemTable, known: Known) -> None:
        super().__init__(store, items, known)
        self._folder, self._rows = store
        self._names = np.arange(self.width).astype(str).astype(object)
        numbers = self._rows.weights.astype(np.float64) * float(self.options["scale"])
        self._known = np.zeros(self.width, dtype=np.bool_)
        self._rows.check_columns()
        self._known[self._rows.columns[numbers >= 1]] = True
        self._retriever: Any = None
        if self._folder is not None:
            with silenced():
                self._retriever = _index(self._folder, len(self)).quantized(num_results=1)

    @classmethod
    def _make(cls, items: Change, known: Known) -> tuple[Path | None, SparseRows]:
        rows, scale = SparseRows.of(items.vectors), float(known.options["scale"])
        if rows.weights.max(initial=0) * scale < 1:
            return None, rows  # there is nothing to write
        folder = Path(tempfile.mkdtemp(prefix="diptych-pisa-"))
        remove = weakref.finalize(rows, shutil.rmtree, folder, ignore_errors=True)
        try:
            with task("building the PISA index"), silenced():
                _index(folder, len(rows)).toks_indexer(scale=scale).index(_documents(rows))
        except BaseException:
            remove()
            raise
        return folder, rows

    def _call(
        self, queries: SparseRows, chosen: np.ndarray, k: int, options: Mapping[str, OptionValue]
    ) -> Callable[[], Answer]:
        """Straight to the library's compiled search.

        Its public way there makes a table of the hits with pandas, which takes up to an eighth of the time.
        """
        algorithm, scale = str(options["algorithm"]), float(self.options["query_scale"])
        bags = []
        for row, query in enumerate(chosen.tolist()):
            terms = slice(queries.indptr[query], queries.indptr[query + 1])
            columns, numbers = queries.columns[terms], queries.weights[terms].astype(np.float64) * scale
            kept = self._known[columns] & (numbers >= 1)
            if kept.any():
                bag = zip(self._names[columns[kept]].tolist(), numbers[kept].tolist(), strict=True)
                bags.append((row, dict(bag)))
        size = len(bags) * k
        rows, ranks = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)
        items, scores = np.empty(size, dtype=object), np.empty(size, dtype=np.float32)

        def search() -> Answer:
            if not bags:
                return 0, rows, items
            retrieve = require("pyterrier_pisa", purpose="the pisa engine")._pisathon.retrieve
            how = {"k": k, "threads": 1, "query_weighted": 1, "pretokenised": True, "result_ranks": ranks}
            into = {"result_qidxs": rows, "result_docnos": items, "result_scores": scores}
            found = retrieve(self._retriever._ctxt, algorithm, bags, **how, **into)
            return int(found), rows, items

        return search

    def _candidates(self, answer: Answer, queries: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        size, rows, items = answer
        found = np.bincount(rows[:size], minlength=queries).astype(np.int64)
        place = np.arange(size) - np.repeat(np.cumsum(found) - found, found)
        slots = np.zeros((queries, k), dtype=np.int32)
        slots[rows[:size], place] = items[:size].astype(np.int32)
        return slots, found

    def _save(self, folder: Path) -> None:
        super()._save(folder)
        for file in sorted(self._folder.iterdir()) if self._folder is not None else ():
            needed = file.name.startswith(("fwd.", "inv.", "quantized.", _MARK))
            if needed and file.name not in _UNUSED:
                shutil.copyfile(file, folder / file.name)

    @classmethod
    def _load(cls, folder: Path, header: Header, count: int) -> tuple[Path | None, SparseRows]:
        return folder if _MARK in header.files else None, SparseRows.read(folder, count, header.width)


def _index(folder: Path, count: int) -> Any:
    """The library's index in ``folder``, of documents whose terms are numbers.

    Built in one batch: a term that a later batch is the first to have gets wrong documents there.
    """
    library = require("pyterrier_pisa", purpose="the pisa engine")
    return library.PisaIndex(str(folder), stemmer="none", stops="none", threads=1, batch_size=max(1, count))


def _documents(rows: SparseRows) -> Iterator[dict[str, Any]]:
    names = np.arange(rows.width).astype(str).astype(object)
    for slot, (start, end) in enumerate(zip(rows.indptr[:-1], rows.indptr[1:], strict=True)):
        bag = zip(names[rows.columns[start:end]].tolist(), rows.weights[start:end].tolist(), strict=True)
        yield {"docno": str(slot), "toks": dict(bag)}


declare("pisa", PisaIndex)
