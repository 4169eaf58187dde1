"""Dense vectors by slot: mapped from disk, with a tail in memory for those added since."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from diptych.index.vectors import row_norms


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
