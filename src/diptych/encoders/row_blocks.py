"""Rows written block by block, by one process or several, that a kill at any moment leaves usable.

::

    NAME.unfinished/plan.json     what is being made; a folder of another plan is begun anew
    NAME.unfinished/rows.npy      of its final size from the start
    NAME.unfinished/finished.u1   one byte per block: 1 when its rows are on the disk

A block's rows are flushed before its byte is written, so that a byte never says more than there is; what
was being written when the process was killed is written again. When every block is there, the folder
gets its ids and header and takes the name ``NAME``.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from diptych.core.errors import DataError, StorageError
from diptych.core.files import create_array, recover_folder, replace_folder, write_json
from diptych.core.reading import map_array, read_json
from diptych.encoders.embeddings import describe_rows

_FORMAT = 1
_SECONDS = 2.0
"""Flushing takes longer than a small block: blocks are flushed and recorded together, this often."""


@dataclass(frozen=True)
class RowPlan:
    """What is made: the same plan goes on where another process stopped.

    Attributes:
        kind: ``"image"`` or ``"text"``.
        encoder, data: fingerprints.
        count: n, how many rows.
        width: d, numbers per row.
        block: rows per block; the last one has what is left.
        similarity: how rows are compared.
    """

    kind: str
    encoder: str
    data: str
    count: int
    width: int
    block: int
    similarity: str

    @property
    def blocks(self) -> int:
        """How many blocks."""
        return -(-self.count // self.block)

    def rows_of(self, block: int) -> range:
        """The rows of a block."""
        return range(block * self.block, min(self.count, (block + 1) * self.block))

    def rows_in(self, blocks: np.ndarray) -> int:
        """How many rows some blocks have, each of them named once."""
        short = self.blocks * self.block - self.count
        return len(blocks) * self.block - (short if self.blocks - 1 in blocks else 0)


class RowBlocks:
    """Rows on the way to being embeddings; use it in a ``with`` block to write."""

    def __init__(self, folder: Path, plan: RowPlan) -> None:
        self.folder, self.plan = folder, plan
        self._written: list[int] = []

    @classmethod
    def begin(cls, target: Path, plan: RowPlan) -> RowBlocks:
        """What is there of the rows that will be ``target``; a new start where there is nothing of this plan."""
        folder = target.with_name(f"{target.name}.unfinished")
        said = {"format": _FORMAT, **asdict(plan)}
        with _storage_errors(folder):
            target.parent.mkdir(parents=True, exist_ok=True)
            recover_folder(target)
            if not _goes_on(folder, plan, said):
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                create_array(folder / "rows.npy", "float32", (plan.count, plan.width))
                (folder / "finished.u1").write_bytes(bytes(plan.blocks))
                # Written last: a folder with it has both files.
                write_json(folder / "plan.json", said)
        return cls(folder, plan)

    def finished(self) -> np.ndarray:
        """(blocks,) bool: which blocks are there, by whichever process."""
        return np.fromfile(self.folder / "finished.u1", dtype=np.uint8).astype(bool)

    def missing(self) -> np.ndarray:
        """(m,) int64: the blocks that are not there yet."""
        return np.flatnonzero(~self.finished())

    def done(self) -> int:
        """How many rows are there."""
        return self.plan.rows_in(np.flatnonzero(self.finished()))

    def __enter__(self) -> Self:
        with _storage_errors(self.folder):
            self._rows = os.open(self.folder / "rows.npy", os.O_RDWR)
            self._finished = os.open(self.folder / "finished.u1", os.O_RDWR)
        # Written by position and not through a map, whose pages would count as the process's own memory.
        self._start = os.path.getsize(self.folder / "rows.npy") - 4 * self.plan.count * self.plan.width
        self._recorded = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.record()
        finally:
            os.close(self._rows)
            os.close(self._finished)

    def write(self, block: int, rows: np.ndarray) -> None:
        """Write the rows of one block; it is recorded now or a little later."""
        places = self.plan.rows_of(block)
        if rows.shape != (len(places), self.plan.width):
            raise DataError(
                f"{self.plan.kind} rows of shape {rows.shape} came, ({len(places)}, {self.plan.width}) expected"
            )
        content = np.ascontiguousarray(rows, dtype=np.float32)
        with _storage_errors(self.folder):
            _write_at(self._rows, content.tobytes(), self._start + 4 * self.plan.width * places.start)
        self._written.append(block)
        if time.monotonic() - self._recorded >= _SECONDS:
            self.record()

    def record(self) -> None:
        """Flush what was written, then say that it is there."""
        if self._written:
            with _storage_errors(self.folder):
                os.fsync(self._rows)
                for block in self._written:
                    _write_at(self._finished, b"\1", block)
                os.fsync(self._finished)
        self._written.clear()
        self._recorded = time.monotonic()

    def finish(self, target: Path, ids: Iterable[str], header: dict[str, Any]) -> None:
        """Give the rows their ids, header and final name; an older version of ``target`` is replaced."""
        missing = self.missing()
        if len(missing):
            raise DataError(
                f"{len(missing)} of {self.plan.blocks} blocks of {self.plan.kind} rows are missing"
            )
        with _storage_errors(self.folder):
            describe_rows(self.folder, ids, header)
            replace_folder(self.folder, target)
            # Until here the plan is needed: a kill before the folder has its name must not cost the rows.
            forget_plan(target)


def forget_plan(target: Path) -> None:
    """Remove from finished embeddings what only unfinished ones need."""
    for name in ("plan.json", "finished.u1"):
        (target / name).unlink(missing_ok=True)


def _goes_on(folder: Path, plan: RowPlan, said: dict[str, Any]) -> bool:
    """Whether the folder is of this plan and whole; of anything else nothing can be used."""
    try:
        if read_json(folder / "plan.json") != said:
            return False
        map_array(folder / "rows.npy", np.float32, (plan.count, plan.width))
    except StorageError:
        return False  # not there, or corrupt
    finished = folder / "finished.u1"
    return finished.is_file() and finished.stat().st_size == plan.blocks


def _write_at(handle: int, content: bytes, place: int) -> None:
    view = memoryview(content)
    while view:
        written = os.pwrite(handle, view, place)
        view, place = view[written:], place + written


@contextmanager
def _storage_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"cannot write {folder}: {error.strerror or error}",
            "free some space or check its permissions; what is embedded stays, the same command goes on",
        ) from error
