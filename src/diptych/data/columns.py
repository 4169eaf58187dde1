"""Columns: a collection's values where there are too many to hold.

A column is a sequence that is read from files in blocks: it has a length, an item, a slice (a list),
an order of its own, and no list of everything behind it. A part of one is a column too.
"""

import copy
import operator
import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self, TypeVar, overload

import numpy as np

from diptych.core.errors import DataError, StorageError
from diptych.core.reading import file_errors

T = TypeVar("T")

# Values that are read at once when a column is gone through.
BLOCK = 4096


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
        rows = np.asarray(rows, dtype=np.int64)
        if len(rows) and (rows.min() < 0 or rows.max() >= len(self)):
            raise IndexError(f"rows {rows.min()} to {rows.max()} of a column of {len(self)}")
        if isinstance(self._rows, range):
            # A range of rows has no steps: it is the whole column or was made just below.
            stored = rows + self._rows.start if self._rows.start else rows
        else:
            stored = self._rows[rows]
        n, first = len(stored), int(stored[0]) if len(stored) else 0
        together = not n or (stored[-1] - first == n - 1 and bool(np.all(np.diff(stored) == 1)))
        part = copy.copy(self)
        part._rows = range(first, first + n) if together else stored
        return part


class Labels(Column[str]):
    """One of a few names per row, as a byte each, its place in ``names``: splits."""

    def __init__(self, names: Sequence[str], codes: np.ndarray) -> None:
        super().__init__(len(codes))
        self._names, self._codes = tuple(names), codes

    def read(self, rows: range | np.ndarray) -> list[str]:
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
    if not isinstance(values, Column) and len(set(values)) == len(values):
        return None
    hashes = np.fromiter(map(hash, values), dtype=np.int64, count=len(values))
    hashes.sort()
    suspects = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
    seen: set[str] = set()
    for value in values if suspects else ():
        if hash(value) in suspects:
            if value in seen:
                return value
            seen.add(value)
    return None


# Files are read by position and not memory-mapped: pages of a map count as the process's own memory
# until another one needs it, and a file that shrinks under a map ends the process without a word.


_NUMBER_BYTES = 8
_KEEPS = hasattr(os, "pread")
_READ_AGAIN = "read the dataset again"
_AGAIN = "it is corrupt: delete its folder and read the dataset again"


class _Kept:
    """An open file, which stays as it is when another one takes its name."""

    handle = -1

    def __init__(self, path: Path) -> None:
        self.handle = os.open(path, os.O_RDONLY)

    def __del__(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)


def read_at(path: Path, start: int, size: int, kept: _Kept | None = None) -> bytes:
    with file_errors(path, fix=_READ_AGAIN):
        if kept is not None:
            content = os.pread(kept.handle, size, start)
        else:
            with open(path, "rb", buffering=0) as handle:
                handle.seek(start)
                content = handle.read(size)
        if len(content) == size:
            return content
        end = os.fstat(kept.handle).st_size if kept is not None else path.stat().st_size
    raise StorageError(
        f"{path} ends at byte {end:,}, {start + size:,} expected",
        f"it was cut or replaced while in use: {_READ_AGAIN}",
    )


class NumberTable(Column[tuple[int, ...]]):
    """Rows of whole numbers in a file of little-endian 64-bit integers, read by position."""

    def __init__(self, path: Path, width: int, size: int | None = None, keep: bool = False) -> None:
        with file_errors(path, fix=_READ_AGAIN):
            self._kept = _Kept(path) if keep and _KEEPS else None
            held, rest = divmod(path.stat().st_size, _NUMBER_BYTES * width)
        if rest or (size is not None and held != size):
            raise StorageError(
                f"{path} holds {held:,} rows and {rest} bytes, {size if size is not None else held:,} rows expected",
                _AGAIN,
            )
        super().__init__(held)
        self._path, self._width = path, width

    def block(self, start: int, stop: int) -> np.ndarray:
        """(stop − start, width) int64: the stored rows from ``start`` to ``stop``."""
        step = _NUMBER_BYTES * self._width
        content = read_at(self._path, start * step, (stop - start) * step, self._kept)
        return np.frombuffer(content, dtype="<i8").reshape(-1, self._width)

    def read(self, rows: range | np.ndarray) -> list[tuple[int, ...]]:
        if isinstance(rows, range) and rows.step == 1:
            found = self.block(rows.start, rows.stop).tolist() if len(rows) else []
        else:
            found = [self.block(row, row + 1)[0].tolist() for row in map(int, rows)]
        return [tuple(row) for row in found]


_TEXTS, _ENDS = ".utf8", ".ends"
# Rows that lie this close together are read in one piece, and no piece is larger than this.
_SPREAD = 16
_PIECE_BYTES = 1 << 24
_BUFFER_BYTES = 1 << 18


class StringTable(Column[str]):
    """A sequence of strings that is read from :func:`write_strings`'s files as it is used.

    Args:
        keep: keep the files open, so that it stays as it is when others take their names.
    """

    def __init__(self, path: Path | str, keep: bool = False) -> None:
        path = Path(path)
        self._texts = path.with_name(path.name + _TEXTS)
        self._ends = NumberTable(path.with_name(path.name + _ENDS), 1, keep=keep)
        self._kept = _Kept(self._texts) if keep and _KEEPS else None
        if not len(self._ends):
            raise StorageError(f"{path}{_ENDS} is empty", _AGAIN)
        super().__init__(len(self._ends) - 1)
        end, size = self._ends[-1][0], self._texts.stat().st_size if self._texts.is_file() else -1
        if end != size:
            raise StorageError(
                f"{self._texts} has {size:,} bytes, {end:,} expected",
                _AGAIN,
            )

    def read(self, rows: range | np.ndarray) -> list[str]:
        if not len(rows):
            return []
        low, high = (
            int(bound(rows)) for bound in ((min, max) if isinstance(rows, range) else (np.min, np.max))
        )
        if high - low < _SPREAD * len(rows):
            ends = self._ends.block(low, high + 2)[:, 0].tolist()
            if ends[-1] - ends[0] <= _PIECE_BYTES:
                content, first = read_at(self._texts, ends[0], ends[-1] - ends[0], self._kept), ends[0]
                places = (int(row) - low for row in rows)
                return [self._text(content[ends[at] - first : ends[at + 1] - first]) for at in places]
        pieces = (self._ends.block(int(row), int(row) + 2)[:, 0].tolist() for row in rows)
        return [self._text(read_at(self._texts, start, end - start, self._kept)) for start, end in pieces]

    def _text(self, content: bytes) -> str:
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise StorageError(
                f"{self._texts} is no text: {error}",
                _AGAIN,
            ) from None


class StringWriter:
    """Writes a table one string at a time, until ``files`` are closed."""

    def __init__(self, path: Path | str, files: ExitStack) -> None:
        path = Path(path)
        self._texts, self._ends = (
            files.enter_context(open(path.with_name(path.name + ending), "wb", _BUFFER_BYTES))  # noqa: SIM115
            for ending in (_TEXTS, _ENDS)
        )
        self._end = 0
        self._ends.write(bytes(8))

    def add(self, text: str) -> None:
        try:
            content = text.encode()
        except UnicodeEncodeError:
            raise DataError(f"{text!r} holds half a character", "correct it in the dataset") from None
        self._texts.write(content)
        self._end += len(content)
        self._ends.write(self._end.to_bytes(8, "little"))


def write_strings(path: Path | str, strings: Iterable[str]) -> StringTable:
    """Write strings as they come and open them as a table; for use inside an atomic folder."""
    with ExitStack() as files:
        writer = StringWriter(path, files)
        for text in strings:
            writer.add(text)
    return StringTable(path)
