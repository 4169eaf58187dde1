"""Sparse engines of other libraries: they name candidates, whose scores are computed again here.

Such a library keeps weights in fewer bits, so its scores are near ones. Computed again from the vectors
as they are, a score is the same to the last bit whichever engine found the item.
"""

import os
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from diptych.core.errors import StorageError
from diptych.index.engine import Found, OptionValue, Vectors
from diptych.index.kernels import load_kernels
from diptych.index.segments import best_of_all
from diptych.index.slots import SlotIndex
from diptych.index.sparse_rows import SparseRows
from diptych.index.storage import REBUILD

_CANDIDATES = 1 << 20  # of the queries of one call of the library


class RescoredIndex(SlotIndex):
    """Items in slots in order of insertion, as they were built: none can be added or deleted."""

    mapped: ClassVar[frozenset[str]] = SparseRows.mapped
    _rows: SparseRows

    @abstractmethod
    def _call(
        self, queries: SparseRows, chosen: np.ndarray, k: int, options: Mapping[str, OptionValue]
    ) -> Callable[[], Any]:
        """The library's search for some of the queries, with all that it wants prepared."""

    @abstractmethod
    def _candidates(self, answer: Any, queries: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Of an answer, (queries, k) int32 slots and (queries,) int64 how many of each row are meant."""

    def _find(
        self, queries: Vectors, k: int, alive: np.ndarray | None, options: Mapping[str, OptionValue]
    ) -> Found:
        rows = SparseRows.of(queries)
        best = Found.nothing(len(rows), k)
        size = max(1, _CANDIDATES // k)
        for start in range(0, len(rows), size):
            chosen = np.arange(start, min(len(rows), start + size))
            call = self._call(rows, chosen, k, options)
            slots, found = self._candidates(call(), len(chosen), k)
            if slots.min(initial=0) < 0 or slots.max(initial=0) >= len(self):
                raise StorageError(
                    f"the {self.engine_name} engine names item {slots.max()}, the index holds {len(self):,}: "
                    "its files are corrupt",
                    REBUILD,
                )
            best.found[start : start + len(chosen)] = found
            part = (array[start : start + len(chosen)] for array in best)
            load_kernels().rescore(self._rows.arrays, rows.arrays, start, self.width, slots, k, *part)
        return best

    def _find_exact(self, queries: Vectors, k: int, alive: np.ndarray | None) -> Found:
        return best_of_all(self._rows, SparseRows.of(queries), k, alive)

    def document_frequency(self) -> np.ndarray:
        return self._rows.frequency()

    def _take(self, slots: np.ndarray) -> csr_array:
        return self._rows.take(slots)

    def _save(self, folder: Path) -> None:
        self._rows.write(folder)


@contextmanager
def silenced() -> Iterator[None]:
    """Send standard output and error to nowhere, those of compiled code too.

    They belong to the process, so what other threads print meanwhile is lost as well.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    kept = [os.dup(number) for number in (1, 2)]
    try:
        for number in (1, 2):
            os.dup2(nowhere, number)
        with open(os.devnull, "w") as sink, redirect_stdout(sink), redirect_stderr(sink):
            yield
    finally:
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
