"""Bags of terms by slot, usually mapped from disk: what scores are computed from and rebuilding copies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from diptych.core.errors import StorageError
from diptych.index.storage import load_array

_FILES = {"indptr": np.int64, "columns": np.int32, "weights": np.float32}


class SparseRows:
    """(n, |V|) canonical rows in the types that the kernels take; what is of that type is not copied.

    Args:
        rows: canonical float32 rows, see :func:`diptych.encoders.sparse_embeddings.canonical_rows`.
    """

    mapped = frozenset({"columns.npy", "weights.npy"})

    def __init__(self, rows: csr_array) -> None:
        self.width = int(rows.shape[1])
        # Plain views: slicing np.memmap objects costs microseconds each.
        self.indptr = np.ascontiguousarray(np.asarray(rows.indptr), dtype=np.int64)
        self.columns = np.ascontiguousarray(np.asarray(rows.indices), dtype=np.int32)
        self.weights = np.ascontiguousarray(np.asarray(rows.data), dtype=np.float32)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``indptr``, ``columns`` and ``weights``, as kernels take them."""
        return self.indptr, self.columns, self.weights

    def check_columns(self) -> None:
        """Read all columns, which opening does not: before they are used as places in other arrays."""
        if len(self.columns) and not 0 <= self.columns.min() <= self.columns.max() < self.width:
            raise StorageError(
                f"the rows hold columns from {self.columns.min()} to {self.columns.max()}, those of "
                f"{self.width:,} terms expected: a file of the index is damaged",
                "build the index again from its embeddings",
            )

    def csr(self) -> csr_array:
        """The rows as SciPy has them."""
        kind = np.int32 if len(self.weights) <= np.iinfo(np.int32).max else np.int64
        parts = (self.weights, self.columns.astype(kind, copy=False), self.indptr.astype(kind))
        rows = csr_array(parts, shape=(len(self), self.width), copy=False)
        rows.has_canonical_format = True
        return rows

    def take(self, slots: np.ndarray) -> csr_array:
        """Copies of the rows in ``slots``."""
        return self.csr()[slots]

    def write(self, folder: Path) -> None:
        """Write ``indptr.npy``, ``columns.npy`` and ``weights.npy``."""
        for name, array in zip(_FILES, self.arrays, strict=True):
            np.save(folder / f"{name}.npy", array)

    @classmethod
    def read(cls, folder: Path, count: int, width: int) -> SparseRows:
        """Map what :meth:`write` wrote."""
        indptr = load_array(folder / "indptr.npy", (count + 1,), np.int64, mapped=False)
        if indptr[0] != 0 or np.any(indptr[1:] < indptr[:-1]):
            raise StorageError(
                f"{folder / 'indptr.npy'}: row starts must ascend from 0", "build the index again"
            )
        size = (int(indptr[-1]),)
        rows = object.__new__(cls)
        rows.width = width
        rows.indptr = indptr
        rows.columns = np.asarray(load_array(folder / "columns.npy", size, np.int32, mapped=True))
        rows.weights = np.asarray(load_array(folder / "weights.npy", size, np.float32, mapped=True))
        return rows
