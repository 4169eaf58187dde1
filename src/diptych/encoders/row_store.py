"""Row store: arrays of one row per item, computed block by block; a kill at any moment loses one block.

::

    NAME.unfinished/plan.json     what is computed; a folder of another plan is begun anew
    NAME.unfinished/rows.npy      of its final size from the start
    NAME.unfinished/finished.u1   the journal: one byte per block, 1 when its rows are on the disk

A block's rows are flushed before its byte is written. When every block is there, the folder becomes an artifact
with the name ``NAME``. Several processes may write blocks of one store at the same time.

:func:`keyed_rows` keeps such stores under the content of their items, so that no item is ever computed twice.
"""

from __future__ import annotations

import hashlib
import logging
import mmap
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np

from diptych.core.artifact import Artifact
from diptych.core.context import task
from diptych.core.errors import DataError, StorageError
from diptych.core.files import atomic_path, create_array, recover_folder, replace_folder
from diptych.core.fingerprint import fingerprint_arrays
from diptych.core.locking import taking_turns
from diptych.core.reading import map_array

logger = logging.getLogger(__name__)

_PLAN, _ROWS, _JOURNAL, _KEYS = "plan.json", "rows.npy", "finished.u1", "keys.npy"
_SECONDS = 2.0
"""Flushing takes longer than a small block: blocks are flushed and recorded together, this often."""
_CHUNK = 8192
"""Rows that are copied or read together."""

Result = TypeVar("Result", bound=Artifact)


@dataclass(frozen=True)
class RowPlan(Artifact, kind="row-plan"):
    """What is computed; a store of the same plan resumes.

    Attributes:
        of: what rows depend on: fingerprints of model and data, options.
        count: n, how many rows.
        shape: of one row.
        block: rows per block; the last one has what is left.
        dtype: of the numbers.
        noun: of rows in messages.
    """

    of: Mapping[str, Any]
    count: int
    shape: tuple[int, ...]
    block: int
    dtype: str = "float32"
    noun: str = "rows"

    @property
    def blocks(self) -> int:
        """Return how many blocks there are."""
        return -(-self.count // self.block)

    def rows_of(self, block: int) -> range:
        """Return the rows of a block."""
        return range(block * self.block, min(self.count, (block + 1) * self.block))

    def rows_in(self, blocks: np.ndarray) -> int:
        """Count the rows of some blocks, each of them named once."""
        short = self.blocks * self.block - self.count
        return len(blocks) * self.block - (short if self.blocks - 1 in blocks else 0)


class RowStore:
    """Rows under way; use it in a ``with`` block to write."""

    def __init__(self, target: Path, plan: RowPlan) -> None:
        self.target, self.plan = target, plan
        self.folder = target.with_name(f"{target.name}.unfinished")
        self._written: list[int] = []

    @classmethod
    def begin(cls, target: Path, plan: RowPlan) -> RowStore:
        """Return the unfinished rows of ``target``; an empty store where there are none of this plan."""
        store = cls(target, plan)
        with _storage_errors(store.folder):
            target.parent.mkdir(parents=True, exist_ok=True)
            recover_folder(target)
            if not store._resumes():
                shutil.rmtree(store.folder, ignore_errors=True)
                store.folder.mkdir()
                create_array(store.folder / _ROWS, plan.dtype, (plan.count, *plan.shape))
                (store.folder / _JOURNAL).write_bytes(bytes(plan.blocks))
                plan.save(store.folder / _PLAN)  # last: a folder with it has both files
        return store

    def _resumes(self) -> bool:
        """Return whether the folder is of this plan and whole."""
        plan, journal = self.plan, self.folder / _JOURNAL
        try:
            if RowPlan.open(self.folder / _PLAN) != plan:
                return False
            rows = map_array(self.folder / _ROWS)
        except StorageError:
            return False
        whole = (
            rows.shape == (plan.count, *plan.shape) and rows.dtype == plan.dtype and rows.flags.c_contiguous
        )
        return whole and journal.is_file() and journal.stat().st_size == plan.blocks

    def finished(self) -> np.ndarray:
        """Return (blocks,) bool: which blocks are there, by whichever process."""
        return np.fromfile(self.folder / _JOURNAL, dtype=np.uint8).astype(bool)

    def missing(self) -> np.ndarray:
        """Return (m,) int64: the blocks that are not there yet."""
        return np.flatnonzero(~self.finished())

    def done(self) -> int:
        """Count the rows that are there."""
        return self.plan.rows_in(np.flatnonzero(self.finished()))

    def __enter__(self) -> Self:
        with _storage_errors(self.folder):
            self._rows = os.open(self.folder / _ROWS, os.O_RDWR)
            self._journal = os.open(self.folder / _JOURNAL, os.O_RDWR)
        # Written by position and not through a map, whose pages would count as the process's own memory.
        self._row_bytes = np.dtype(self.plan.dtype).itemsize * int(np.prod(self.plan.shape))
        self._start = os.path.getsize(self.folder / _ROWS) - self._row_bytes * self.plan.count
        self._recorded = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.record()
        finally:
            os.close(self._rows)
            os.close(self._journal)

    def write(self, block: int, rows: np.ndarray) -> None:
        """Write the rows of one block; it is recorded now or a little later."""
        places = self.plan.rows_of(block)
        if rows.shape != (len(places), *self.plan.shape):
            raise DataError(
                f"{self.plan.noun} of shape {rows.shape}, expected {(len(places), *self.plan.shape)}"
            )
        content = np.ascontiguousarray(rows, dtype=self.plan.dtype)
        with _storage_errors(self.folder):
            _write_at(self._rows, content.tobytes(), self._start + self._row_bytes * places.start)
        self._written.append(block)
        if time.monotonic() - self._recorded >= _SECONDS:
            self.record()

    def record(self) -> None:
        """Flush what was written, then enter it in the journal."""
        if self._written:
            with _storage_errors(self.folder):
                os.fsync(self._rows)
                for block in self._written:
                    _write_at(self._journal, b"\1", block)
                os.fsync(self._journal)
        self._written.clear()
        self._recorded = time.monotonic()

    def finish(self, make: Callable[[np.ndarray], Result]) -> Result:
        """Give the rows a header and their name; ``make`` gets them memory-mapped and returns the artifact.

        An older version of the target is replaced.
        """
        if len(missing := self.missing()):
            raise DataError(f"{len(missing)} of {self.plan.blocks} blocks of {self.plan.noun} are missing")
        with _storage_errors(self.folder):
            made = make(map_array(self.folder / _ROWS))
            made.write_header(self.folder)
            replace_folder(self.folder, self.target)
            # Until here the plan is needed: a kill before the folder has its name must not cost the rows.
            for name in (_PLAN, _JOURNAL):
                (self.target / name).unlink(missing_ok=True)
        return type(made).open(self.target)


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
            "free some space or check its permissions; finished rows are kept, the same command resumes",
        ) from error


@dataclass(frozen=True, eq=False)
class KeyedRows(Artifact, kind="keyed_rows", mapped=("rows", "keys")):
    """Rows of distinct items, by the fingerprints of their content.

    Attributes:
        keys: (n,) uint64.
        rows: (n, width) float32, memory-mapped.
        check: fingerprint of the rows.
    """

    keys: np.ndarray
    rows: np.ndarray
    check: str


Make = Callable[[np.ndarray], Iterator[tuple[np.ndarray, np.ndarray]]]


def keyed_rows(
    folder: Path, keys: np.ndarray, width: int, make: Make, *, doing: str, unit: str
) -> tuple[np.ndarray, bool]:
    """Return rows by key, memory-mapped, and whether this sequence of items was there.

    A folder is for one maker of rows. It holds one store per sequence of items that was asked for; rows that
    any of them has, finished or not, are copied and not computed. All of it is a cache.
    """
    target = folder / fingerprint_arrays({"keys": keys})
    with taking_turns(target):
        recover_folder(target)
        there = _opened(target) if KeyedRows.is_at(target) else None
        found = there or _compute(target, keys, width, make, doing, unit)
    return found.rows, there is not None


def _opened(folder: Path) -> KeyedRows | None:
    """Return a finished store; None where it is corrupt."""
    try:
        found = KeyedRows.open(folder)
        if len(found.rows) == len(found.keys) and found.check == _check(found.rows):
            return found
    except StorageError:
        pass
    logger.warning("%s is corrupt: its rows are computed again", folder)
    return None


def text_keys(texts: Iterable[str]) -> np.ndarray:
    """Return (n,) uint64, a key for each text."""
    digests = bytearray()
    for text in texts:
        digests += hashlib.blake2b(text.encode(), digest_size=8).digest()
    return np.frombuffer(bytes(digests), dtype="<u8")


def _compute(target: Path, keys: np.ndarray, width: int, make: Make, doing: str, unit: str) -> KeyedRows:
    """Copy the rows that other stores have and compute the others."""
    distinct, first, place = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(len(distinct) + 1))
    store = RowStore.begin(target, RowPlan({}, len(keys), (width,), block=1, noun=unit))
    if not (store.folder / _KEYS).is_file():
        with atomic_path(store.folder / _KEYS) as temporary, open(temporary, "wb") as handle:
            np.save(handle, keys)
    with store:

        def fill(numbers: np.ndarray, rows: np.ndarray) -> None:
            """Write the rows of distinct items wherever these items occur."""
            for number, row in zip(numbers.tolist(), rows, strict=True):
                for at in order[ends[number] : ends[number + 1]].tolist():
                    store.write(at, row[None])

        there = np.logical_and.reduceat(store.finished()[order], ends[:-1])
        for other_keys, rows, done in _stores(target):
            numbers = np.minimum(np.searchsorted(distinct, other_keys), len(distinct) - 1)
            new = np.flatnonzero(done & (distinct[numbers] == other_keys) & ~there[numbers])
            new = new[np.unique(numbers[new], return_index=True)[1]]
            for start in range(0, len(new), _CHUNK):
                chunk = new[start : start + _CHUNK]
                fill(numbers[chunk], rows[chunk])
                release_pages(rows)
            there[numbers[new]] = True
        missing = np.flatnonzero(~there)
        logger.info("rows %s: %d of %d %s are there", target.parent.name, there.sum(), len(distinct), unit)
        with task(doing, len(distinct), unit, int(there.sum())) as bar:
            for positions, part in make(first[missing]) if len(missing) else ():
                fill(missing[positions], part)
                bar.advance(len(positions))
    return store.finish(lambda rows: KeyedRows(map_array(store.folder / _KEYS), rows, _check(rows)))


def _stores(target: Path) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield keys and rows of the folder's other stores, and which of them are there."""
    for folder in sorted(target.parent.iterdir()):
        if not (folder / _KEYS).is_file() or folder.name.removesuffix(".unfinished") == target.name:
            continue
        if KeyedRows.is_at(folder):
            if (found := _opened(folder)) is not None:
                yield found.keys, found.rows, np.ones(len(found.keys), dtype=bool)
            continue
        try:
            keys, rows = map_array(folder / _KEYS), map_array(folder / _ROWS)
            done = np.fromfile(folder / _JOURNAL, dtype=np.uint8).astype(bool)
        except (StorageError, OSError):
            continue  # another process just finished or removed it
        if len(keys) == len(rows) == len(done):
            yield keys, rows, done


def _check(rows: np.ndarray) -> str:
    """Return ``fingerprint_arrays({"rows": rows})`` with a block of the rows in memory."""
    hasher = hashlib.blake2b(f"rows:{rows.dtype.str}:{rows.shape}\0".encode(), digest_size=8)
    for start in range(0, len(rows), _CHUNK):
        hasher.update(np.ascontiguousarray(rows[start : start + _CHUNK]).view(np.uint8).reshape(-1).data)
        release_pages(rows)
    return hasher.hexdigest()


def release_pages(rows: np.ndarray) -> None:
    """Give mapped pages back: they are in the file, and would count as the process's own memory."""
    mapped = getattr(rows, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
