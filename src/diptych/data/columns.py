"""Columns: a collection's values where there are too many to hold.

A column is a sequence that is read from files in blocks: it has a length, an item, a slice (a list),
an order of its own, and no list of everything behind it. A part of one is a column too.
"""

from __future__ import annotations

import copy
import operator
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Self, TypeVar, overload

import numpy as np

T = TypeVar("T")

BLOCK = 4096
"""Values that are read at once when a column is gone through."""


class Column(Sequence[T]):
    """A sequence of stored values, or of some of them in any order."""

    def __init__(self, size: int) -> None:
        # Of a part that lies together only its ends are kept, of any other its row numbers.
        self._rows: range | np.ndarray = range(size)

    @abstractmethod
    def read(self, rows: range | np.ndarray) -> list[T]:
        """Return the values of these stored rows; :meth:`__getitem__` counts within the part, this does not."""

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return self.read(self._rows[index])
        place = operator.index(index)
        if not -len(self) <= place < len(self):
            raise IndexError(f"row {place} of a column of {len(self)}")
        row = int(self._rows[place])
        return self.read(range(row, row + 1))[0]

    def __iter__(self) -> Iterator[T]:
        for start in range(0, len(self), BLOCK):
            yield from self.read(self._rows[start : start + BLOCK])

    def take(self, rows: Sequence[int] | np.ndarray) -> Self:
        """Return a view of the values at ``rows``, in that order; nothing is read."""
        wanted = np.asarray(rows, dtype=np.int64)
        if len(wanted) and (wanted.min() < 0 or wanted.max() >= len(self)):
            raise IndexError(f"rows {wanted.min()} to {wanted.max()} of a column of {len(self)}")
        if isinstance(self._rows, range):
            # A range of rows has no steps: it is the whole column or was made just below.
            stored = wanted + self._rows.start if self._rows.start else wanted
        else:
            stored = self._rows[wanted]
        n, first = len(stored), int(stored[0]) if len(stored) else 0
        together = not n or (stored[-1] - first == n - 1 and bool(np.all(np.diff(stored) == 1)))
        part = copy.copy(self)
        part._rows = range(first, first + n) if together else stored
        return part


class Labels(Column[str]):
    """One of a few names per row, as a byte each: splits.

    Args:
        codes: (n,) uint8, each row's place in ``names``.
    """

    def __init__(self, names: Sequence[str], codes: np.ndarray) -> None:
        super().__init__(len(codes))
        self._names, self._codes = tuple(names), codes

    def read(self, rows: range | np.ndarray) -> list[str]:
        """Return the names of these stored rows."""
        return [self._names[code] for code in self._at(rows).tolist()]

    def sizes(self) -> dict[str, int]:
        """Return rows per name, in the order of first appearance."""
        codes = self._at(self._rows)
        counts = np.bincount(codes, minlength=len(self._names))
        found = [(int(np.argmax(codes == code)), code) for code in np.flatnonzero(counts)]
        return {self._names[code]: int(counts[code]) for _, code in sorted(found)}

    def rows_of(self, name: str) -> np.ndarray:
        """(m,) int64: where ``name`` is; empty for a name that does not occur."""
        if name not in self._names:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(self._at(self._rows) == self._names.index(name))

    def _at(self, rows: range | np.ndarray) -> np.ndarray:
        if isinstance(rows, range) and rows.step == 1:
            return self._codes[rows.start : rows.stop]
        return self._codes[np.asarray(rows, dtype=np.int64)]


def first_duplicate(values: Sequence[str]) -> str | None:
    """Return the first string that was there before, None when all differ.

    Of a column 8 bytes per value are held, not the values: those with equal hashes are compared.
    """
    if not isinstance(values, Column):
        if len(set(values)) == len(values):
            return None
        suspects = None
    else:
        hashes = np.fromiter((hash(value) for value in values), dtype=np.int64, count=len(values))
        hashes.sort()
        suspects = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
        if not suspects:
            return None
    seen: set[str] = set()
    for value in values:
        if suspects is None or hash(value) in suspects:
            if value in seen:
                return value
            seen.add(value)
    return None
