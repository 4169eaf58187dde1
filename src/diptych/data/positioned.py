"""A few bytes out of the middle of a file.

Files are read by position and not memory-mapped: pages of a map count as the process's own memory
until somebody else needs it, and a file that shrinks under a map ends the process without a word.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from diptych.core.errors import StorageError
from diptych.data.columns import Column

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
        """The numbers of these stored rows."""
        if isinstance(rows, range) and rows.step == 1:
            found = self.block(rows.start, rows.stop).tolist() if len(rows) else []
        else:
            found = [self.block(row, row + 1)[0].tolist() for row in map(int, rows)]
        return [tuple(row) for row in found]
