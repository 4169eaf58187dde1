"""Dense vectors and ids: checks of what comes in, and rows by slot, mapped with a tail in memory."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from diptych.core.errors import DataError, MismatchError, NumericalError, UsageError
from diptych.data.columns import first_duplicate

_CHECK_ROWS = 16_384


def check_ids(ids: Sequence[str], count: int) -> list[str]:
    """The ids as a list of ``count`` different strings."""
    if isinstance(ids, str):
        raise UsageError(f"ids must be a sequence of ids, got the string {ids!r}", f"pass [{ids!r}]")
    names = list(ids)
    if len(names) != count:
        raise DataError(f"{len(names):,} ids for {count:,} vectors")
    for name in itertools.filterfalse(lambda name: isinstance(name, str), names):
        raise DataError(f"id {name!r} is a {type(name).__name__}, ids are strings")
    if (twice := first_duplicate(names)) is not None:
        raise DataError(f"id {twice!r} occurs twice", "make ids unique")
    return [str(name) for name in names]


def check_k(k: Any) -> int:
    """k as an int."""
    if isinstance(k, bool) or not hasattr(k, "__index__") or operator.index(k) < 1:
        raise UsageError(f"k={k!r} hits cannot be asked for", "k is a whole number from 1")
    return operator.index(k)


def count_rows(vectors: Any, what: str) -> int:
    """How many vectors, dense or sparse, there are."""
    shape = np.shape(vectors)
    if len(shape) != 2:
        raise UsageError(
            f"{what} vectors must have shape (n, width), got {shape}",
            "pass vector[None] for a single one" if len(shape) == 1 else "",
        )
    return int(shape[0])


def check_width(vectors: Any, width: int, what: str) -> None:
    """Compare the width of vectors, dense or sparse, with the index's."""
    count_rows(vectors, what)
    given = np.shape(vectors)[1]
    if given != width:
        raise MismatchError(
            f"{what} vectors have width {given}, the index holds vectors of width {width}",
            "encode them with the encoder that made the index's vectors",
        )


def dense_vectors(vectors: Any, width: int, what: str) -> np.ndarray:
    """The vectors as (n, width) float32 rows in C order; not copied when they are that already."""
    if issparse(vectors):
        raise UsageError(
            f"{what} vectors are sparse, the engine takes dense ones",
            "use a sparse engine, or the dense vectors",
        )
    array = np.asarray(vectors)
    check_width(array, width, what)
    if array.dtype.kind not in "fiu":
        raise UsageError(f"{what} vectors must be real numbers, got {array.dtype}")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32)


def called(row: int, names: Sequence[str] | None, what: str) -> str:
    """Return what messages call a row."""
    return f"{what} vector (row {row})" if names is None else f"{what} vector {names[row]!r} (row {row})"


def row_norms(rows: np.ndarray, names: Sequence[str] | None, what: str) -> np.ndarray:
    """(n,) float32 Euclidean lengths, computed in blocks.

    Args:
        rows: (n, d) float32.
    """
    norms = np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), _CHECK_ROWS):
        block = np.asarray(rows[start : start + _CHECK_ROWS])
        with np.errstate(over="ignore", invalid="ignore"):
            norms[start : start + len(block)] = np.sqrt(np.vecdot(block, block))
        bad = np.flatnonzero(~np.isfinite(norms[start : start + len(block)]))
        if len(bad):
            row = start + int(bad[0])
            wrong = "not finite", "the encoder diverged: train it again with a lower learning rate"
            if np.isfinite(rows[row]).all():
                wrong = "too long for float32", "scale the vectors to unit length"
            raise NumericalError(f"{called(row, names, what)} is {wrong[0]}", wrong[1])
    return norms


class RowStore:
    """(n, d) float32 rows that can grow without touching what is mapped.

    Args:
        base: (n, d) float32 in C order, usually a memory map; kept as it is, never written.
        norms: (n,) float32, the rows' lengths; measured (reading every row) when not given.
    """

    def __init__(self, base: np.ndarray, norms: np.ndarray | None = None) -> None:
        self._base = np.asarray(base)  # a plain view: slicing np.memmap objects costs microseconds each
        self._tail = np.empty((0, self._base.shape[1]), dtype=np.float32)
        self._tail_rows = 0
        self._norms = norms

    def __len__(self) -> int:
        return len(self._base) + self._tail_rows

    @property
    def width(self) -> int:
        """d."""
        return int(self._base.shape[1])

    @property
    def norms(self) -> np.ndarray:
        """(n,) float32: the Euclidean length of every row."""
        if self._norms is None:
            self._norms = row_norms(self._base, None, "item")  # append measures the tail's
        return self._norms

    def append(self, rows: np.ndarray) -> None:
        """Copy ``rows`` behind the others."""
        self._norms = np.concatenate([self.norms, row_norms(rows, None, "item")])
        needed = self._tail_rows + len(rows)
        if needed > len(self._tail):
            # Doubling: n single appends copy 2n rows, not n²/2.
            grown = np.empty((max(needed, 2 * len(self._tail)), self.width), dtype=np.float32)
            grown[: self._tail_rows] = self._tail[: self._tail_rows]
            self._tail = grown
        self._tail[self._tail_rows : needed] = rows
        self._tail_rows = needed

    def blocks(self, size: int = 16_384) -> Iterator[tuple[int, np.ndarray]]:
        """(first slot, at most ``size`` rows) after another, without copying."""
        for offset, part in ((0, self._base), (len(self._base), self._tail[: self._tail_rows])):
            for start in range(0, len(part), size):
                yield offset + start, part[start : start + size]

    def take(self, slots: np.ndarray) -> np.ndarray:
        """(…, d): copies of the rows in ``slots``, of any shape."""
        rows: np.ndarray
        if not self._tail_rows:
            rows = self._base[slots]
            return rows
        rows = np.empty((*slots.shape, self.width), dtype=np.float32)
        tail = slots >= len(self._base)
        rows[~tail] = self._base[slots[~tail]]
        rows[tail] = self._tail[slots[tail] - len(self._base)]
        return rows

    def write(self, path: Path, slots: np.ndarray) -> None:
        """Write the rows in ``slots`` as a NumPy file, a block at a time.

        Written, not mapped: on a full disk a write raises OSError, a mapped page kills the process.
        """
        with open(path, "wb") as handle:
            np.lib.format.write_array_header_1_0(
                handle, {"descr": "<f4", "fortran_order": False, "shape": (len(slots), self.width)}
            )
            for start in range(0, len(slots), 16_384):
                handle.write(self.take(slots[start : start + 16_384]).astype("<f4", copy=False).data)
