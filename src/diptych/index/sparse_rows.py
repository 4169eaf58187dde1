"""Sparse rows: checks of what comes in, arrays of columns and weights, their files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse

from diptych.core.errors import DataError, NumericalError, StorageError, UsageError
from diptych.core.reading import map_array, read_array
from diptych.encoders.embeddings import canonical_array, canonical_rows
from diptych.index.kernels import load_kernels
from diptych.index.storage import REBUILD
from diptych.index.vectors import called, check_width

_FILES = {"indptr": np.int64, "columns": np.int32, "weights": np.float32}


@dataclass(eq=False)
class SparseRows:
    """(n, |V|) canonical float32 rows in the types that the kernels take."""

    mapped: ClassVar[frozenset[str]] = frozenset({"columns.npy", "weights.npy"})

    indptr: np.ndarray  # (n + 1,) int64
    columns: np.ndarray  # int32
    weights: np.ndarray  # float32
    width: int

    @classmethod
    def of(cls, rows: csr_array) -> SparseRows:
        """Return the rows of a SciPy array; what is of the types already is not copied."""
        # Plain views: slicing np.memmap objects costs microseconds each.
        indptr = np.ascontiguousarray(np.asarray(rows.indptr), dtype=np.int64)
        columns = np.ascontiguousarray(np.asarray(rows.indices), dtype=np.int32)
        weights = np.ascontiguousarray(np.asarray(rows.data), dtype=np.float32)
        return cls(indptr, columns, weights, int(rows.shape[1]))

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.indptr, self.columns, self.weights

    def check_columns(self) -> None:
        """Read all columns, which opening does not: before they are used as places in other arrays."""
        if len(self.columns) and not 0 <= self.columns.min() <= self.columns.max() < self.width:
            raise StorageError(
                f"the rows hold columns from {self.columns.min()} to {self.columns.max()}, those of "
                f"{self.width:,} terms expected: a file of the index is corrupt",
                REBUILD,
            )

    def check_terms(self) -> None:
        """Refuse queries of more terms than sums of 8-bit weights have room for."""
        longest, most = int(np.diff(self.indptr).max(initial=0)), load_kernels().MOST_TERMS
        if longest > most:
            raise UsageError(
                f"a query has {longest:,} terms, sums of 8-bit weights hold {most:,}",
                "search with the inverted engine, or keep the strongest terms of each query",
            )

    def frequency(self) -> np.ndarray:
        self.check_columns()
        return np.bincount(self.columns, minlength=self.width)

    def csr(self) -> csr_array:
        return canonical_array(self.weights, self.columns, self.indptr, (len(self), self.width))

    def take(self, slots: np.ndarray | slice) -> csr_array:
        return self.csr()[slots]

    def write(self, folder: Path) -> None:
        for name, array in zip(_FILES, self.arrays, strict=True):
            np.save(folder / f"{name}.npy", array)

    @classmethod
    def read(cls, folder: Path, count: int, width: int) -> SparseRows:
        indptr = read_array(folder / "indptr.npy", np.int64, (count + 1,), fix=REBUILD)
        if indptr[0] != 0 or np.any(indptr[1:] < indptr[:-1]):
            raise StorageError(f"{folder / 'indptr.npy'}: row starts must ascend from 0", REBUILD)
        size = (int(indptr[-1]),)
        columns = np.asarray(map_array(folder / "columns.npy", np.int32, size, fix=REBUILD))
        weights = np.asarray(map_array(folder / "weights.npy", np.float32, size, fix=REBUILD))
        return cls(indptr, columns, weights, width)


# So that no score of vectors of up to 10^8 terms overflows float32.
LARGEST_WEIGHT = 1e15


def sparse_vectors(vectors: Any, width: int, names: Sequence[str] | None, what: str) -> csr_array:
    """The vectors as canonical float32 rows, see :func:`canonical_rows`; not copied when they are that already.

    Negative weights are refused: an item that shares a term with a query has a score above 0, which is what
    sparse engines find items by.
    """
    given = vectors if issparse(vectors) else np.asarray(vectors)
    if given.dtype == np.float16:  # SciPy has no such arrays
        given = given.astype(np.float32)
    check_width(given, width, what)
    if given.dtype.kind not in "fiub":
        raise UsageError(f"{what} vectors must be real numbers, got {given.dtype}")
    _check_structure(given, what)
    matrix = given if isinstance(given, csr_array) else csr_array(given)
    data = matrix.data
    usual = data.dtype == np.float32 and len(data) == matrix.indptr[-1]
    if (
        usual
        and data.min(initial=1) > 0
        and data.max(initial=1) <= LARGEST_WEIGHT
        and matrix.has_canonical_format
    ):
        return matrix  # as those of an encoder are: for one query, what follows takes longer than the search
    wrong = np.flatnonzero(~((data >= 0) & (data <= LARGEST_WEIGHT)))
    if len(wrong):
        row = int(np.searchsorted(matrix.indptr, wrong[0], side="right")) - 1
        name, weight = called(row, names, what), data[wrong[0]]
        if not np.isfinite(weight):
            raise NumericalError(f"{name} is not finite", "the head diverged: train it with a lower rate")
        if weight > 0:
            raise NumericalError(f"{name} has a weight above {LARGEST_WEIGHT:g}", "scale the weights")
        raise DataError(
            f"{name} has a negative weight ({weight:g})",
            "the weights of terms are from 0 up; vectors with negative ones are searched by a dense engine",
        )
    return canonical_rows(matrix, what)


def _check_structure(vectors: Any, what: str) -> None:
    """SciPy takes row starts and columns on trust; compiled code would read and write elsewhere in memory."""
    form = getattr(vectors, "format", None)
    if form not in ("csr", "csc"):
        return
    lines, width = vectors.shape if form == "csr" else vectors.shape[::-1]
    starts, columns = vectors.indptr, vectors.indices
    sound = len(starts) == lines + 1 and starts[0] == 0 and bool((starts[1:] >= starts[:-1]).all())
    sound = sound and starts[-1] <= min(len(columns), len(vectors.data))
    if not sound or (len(columns) and not 0 <= columns.min() <= columns.max() < width):
        raise DataError(
            f"{what} vectors: the starts or columns are not those of a sparse array of shape {vectors.shape}",
            "make the array from (weights, (rows, columns)), which SciPy checks",
        )
