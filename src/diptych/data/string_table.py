"""Strings in files: ids and captions of collections that are too large for lists.

A table is two files: ``NAME.utf8``, all strings one after the other, and ``NAME.ends``, where each of
them begins and ends. What is read of it is a block at a time, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from diptych.core.errors import DataError, StorageError
from diptych.data.columns import Column

# A few bytes out of the middle of a file.
#
# Files are read by position and not memory-mapped: pages of a map count as the process's own memory
# until somebody else needs it, and a file that shrinks under a map ends the process without a word.


_NUMBER_BYTES = 8


def read_at(path: Path, start: int, size: int) -> bytes:
    """``size`` bytes of a file from byte ``start`` on."""
    try:
        with open(path, "rb", buffering=0) as handle:
            handle.seek(start)
            content = handle.read(size)
            end = start + size if len(content) == size else handle.seek(0, 2)
    except OSError as error:
        raise StorageError(
            f"{path} cannot be read: {error.strerror or error}", "read the dataset again"
        ) from None
    if end != start + size:
        raise StorageError(
            f"{path} ends at byte {end:,}, {start + size:,} expected",
            "it was cut or replaced while in use: read the dataset again",
        )
    return content


class NumberTable(Column[tuple[int, ...]]):
    """Rows of whole numbers in a file of little-endian 64-bit integers, read by position."""

    def __init__(self, path: Path, width: int, size: int | None = None) -> None:
        try:
            held, rest = divmod(path.stat().st_size, _NUMBER_BYTES * width)
        except OSError as error:
            raise StorageError(f"{path} cannot be read: {error.strerror}", "read the dataset again") from None
        if rest or (size is not None and held != size):
            raise StorageError(
                f"{path} holds {held:,} rows and {rest} bytes, {size if size is not None else held:,} rows expected",
                "it is damaged: delete its folder and read the dataset again",
            )
        super().__init__(held)
        self._path, self._width = path, width

    def block(self, start: int, stop: int) -> np.ndarray:
        """(stop − start, width) int64: the stored rows from ``start`` to ``stop``."""
        step = _NUMBER_BYTES * self._width
        content = read_at(self._path, start * step, (stop - start) * step)
        return np.frombuffer(content, dtype="<i8").reshape(-1, self._width)

    def read(self, rows: range | np.ndarray) -> list[tuple[int, ...]]:
        """Return the numbers of these stored rows."""
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
    """A sequence of strings that is read from :func:`write_strings`'s files when asked."""

    def __init__(self, path: Path | str) -> None:
        path = Path(path)
        self._texts = path.with_name(path.name + _TEXTS)
        self._ends = NumberTable(path.with_name(path.name + _ENDS), 1)
        if not len(self._ends):
            raise StorageError(f"{path}{_ENDS} is empty", "delete its folder and read the dataset again")
        super().__init__(len(self._ends) - 1)
        end, size = self._ends[-1][0], self._texts.stat().st_size if self._texts.is_file() else -1
        if end != size:
            raise StorageError(
                f"{self._texts} has {size:,} bytes, {end:,} expected",
                "it is damaged: delete its folder and read the dataset again",
            )

    def read(self, rows: range | np.ndarray) -> list[str]:
        """Return the strings of these stored rows."""
        if not len(rows):
            return []
        low, high = (int(f(rows)) for f in (min, max)) if isinstance(rows, range) else _bounds(rows)
        if high - low < _SPREAD * len(rows):
            ends = self._ends.block(low, high + 2)[:, 0].tolist()
            if ends[-1] - ends[0] <= _PIECE_BYTES:
                content, first = read_at(self._texts, ends[0], ends[-1] - ends[0]), ends[0]
                places = (int(row) - low for row in rows)
                return [self._text(content[ends[at] - first : ends[at + 1] - first]) for at in places]
        return [self._one(int(row)) for row in rows]

    def _one(self, row: int) -> str:
        start, end = self._ends.block(row, row + 2)[:, 0].tolist()
        return self._text(read_at(self._texts, start, end - start))

    def _text(self, content: bytes) -> str:
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise StorageError(
                f"{self._texts} is no text: {error}",
                "it is damaged: delete its folder and read the dataset again",
            ) from None


def _bounds(rows: np.ndarray) -> tuple[int, int]:
    return int(rows.min()), int(rows.max())


class StringWriter:
    """Writes a table one string at a time; use it in a ``with`` block."""

    def __init__(self, path: Path | str) -> None:
        path = Path(path)
        self._texts = open(path.with_name(path.name + _TEXTS), "wb", _BUFFER_BYTES)  # noqa: SIM115
        self._ends = open(path.with_name(path.name + _ENDS), "wb", _BUFFER_BYTES)  # noqa: SIM115
        self._end = 0
        self._ends.write(bytes(8))

    def add(self, text: str) -> None:
        """Append one string."""
        try:
            content = text.encode()
        except UnicodeEncodeError:
            raise DataError(f"{text!r} holds half a character", "correct it in the dataset") from None
        self._texts.write(content)
        self._end += len(content)
        self._ends.write(self._end.to_bytes(8, "little"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._texts.close()
        finally:
            self._ends.close()


def write_strings(path: Path | str, strings: Iterable[str]) -> StringTable:
    """Write strings as they come and open them as a table; for use inside an atomic folder."""
    with StringWriter(path) as writer:
        for text in strings:
            writer.add(text)
    return StringTable(path)
