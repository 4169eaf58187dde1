"""Sparse embeddings: bags of weighted terms on disk, memory-mapped, with ids and vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from diptych.core.artifact import Artifact
from diptych.core.errors import DataError, NumericalError
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import map_array
from diptych.data.columns import StringTable, write_strings

_ARRAYS = {"indptr": np.int64, "indices": np.int32, "weights": np.float32}


def term_fingerprint(terms: Sequence[str]) -> str:
    """Return the name by content of a vocabulary: the terms in their order."""
    return fingerprint(list(terms))


def canonical_rows(rows: Any, what: str = "sparse") -> csr_array:
    """Return a ``csr_array`` of float32: columns ascending and once, no stored zeros, int32 indices up to 2**31."""
    if np.ndim(rows) != 2 and getattr(rows, "ndim", 2) != 2:
        raise DataError(f"{what} vectors must have shape (n, terms), got {np.shape(rows)}")
    matrix = csr_array(rows)
    if matrix.dtype.kind not in "fiub":
        raise DataError(f"{what} vectors must be real numbers, got {matrix.dtype}")
    matrix = matrix.astype(np.float32, copy=False)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if np.any(matrix.data == 0):
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if len(bad):
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        raise NumericalError(
            f"{what} vector (row {row}) is not finite", "the head diverged: train it with a lower rate"
        )
    return _with_index_type(matrix.data, matrix.indices, matrix.indptr, matrix.shape)


def _with_index_type(
    weights: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]
) -> csr_array:
    """A canonical array; SciPy wants one type for columns and row starts, and copies when they differ."""
    kind = np.int32 if len(weights) <= np.iinfo(np.int32).max else np.int64
    parts = (weights, indices.astype(kind, copy=False), indptr.astype(kind, copy=False))
    rows = csr_array(parts, shape=shape, copy=False)
    rows.has_canonical_format = True  # known; SciPy would read every row to find out
    return rows


@dataclass(frozen=True, eq=False)
class SparseEmbeddings(
    Artifact, kind="sparse_embeddings", version=2, recreate="diptych sparse train", files=("ids", "rows")
):
    """(n, |V|) rows of term weights with one id each; a row may be empty."""

    ids: Sequence[str]  # one unique id per row
    rows: csr_array  # canonical csr_array of float32, see :func:`canonical_rows`; usually memory-mapped
    terms: Sequence[str]  # the vocabulary, one term per column
    encoder: str  # fingerprint of what made them: dense encoder, head and vocabulary
    data: str  # fingerprint of what was encoded
    kind: str  # "image" or "text"
    about: dict[str, Any]  # whatever else should travel with them (dataset, split, options of the head)

    def __post_init__(self) -> None:
        if self.rows.shape != (len(self.ids), len(self.terms)):
            raise DataError(
                f"{len(self.ids)} ids and {len(self.terms)} terms for rows of shape {self.rows.shape}"
            )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def width(self) -> int:
        return len(self.terms)

    @cached_property
    def vocabulary(self) -> str:
        return term_fingerprint(self.terms)

    def write_files(self, folder: Path) -> None:
        write_strings(folder / "ids", self.ids)
        arrays = {"indptr": self.rows.indptr, "indices": self.rows.indices, "weights": self.rows.data}
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", np.ascontiguousarray(array, dtype=_ARRAYS[name]))

    @classmethod
    def read_files(cls, folder: Path, content: dict[str, Any]) -> dict[str, Any]:
        arrays = {}
        for name, kind in _ARRAYS.items():
            # Plain views: slicing np.memmap objects costs microseconds each.
            arrays[name] = np.asarray(map_array(folder / f"{name}.npy"))
            if arrays[name].dtype != kind or arrays[name].ndim != 1:
                raise ValueError(f"{name}.npy holds {arrays[name].dtype} of shape {arrays[name].shape}")
        weights, indices, indptr = arrays["weights"], arrays["indices"], arrays["indptr"]
        ids, width = list(StringTable(folder / "ids")), len(content["terms"])
        if len(indptr) != len(ids) + 1 or not len(weights) == len(indices) == indptr[-1]:
            raise ValueError(f"{len(indptr) - 1} rows with {len(weights)} weights for {len(ids)} ids")
        if indptr[0] != 0 or np.any(indptr[1:] < indptr[:-1]):
            raise ValueError("its row starts do not ascend")
        if len(indices) and not 0 <= indices.min() <= indices.max() < width:
            raise ValueError(f"it has columns beyond its {width} terms")
        return {"ids": ids, "rows": _with_index_type(weights, indices, indptr, (len(ids), width))}
