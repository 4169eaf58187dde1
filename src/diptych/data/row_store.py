"""Row store: arrays of one row per item, computed block by block; a kill at any moment loses one block.

::

    NAME.unfinished/plan.json     what is computed; a folder of another plan is begun anew
    NAME.unfinished/rows.npy      of its final size from the start
    NAME.unfinished/finished.u1   the journal: one byte per block, 1 when its rows are on the disk

A block's rows are flushed before its byte is written. Several processes may write blocks of one store at the same time.
"""

import hashlib
import logging
import mmap
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from diptych.core.artifact import Artifact
from diptych.core.context import task
from diptych.core.errors import DataError, StorageError
from diptych.core.files import (
    atomic_path,
    create_array,
    recover_folder,
    remove_leftovers,
    replace_folder,
    storage_errors,
)
from diptych.core.fingerprint import fingerprint_arrays
from diptych.core.locking import taking_turns
from diptych.core.reading import map_array
from diptych.data.loading import read_ahead

logger: logging.Logger = logging.getLogger(__name__)

_PLAN, _ROWS, _JOURNAL = "plan.json", "rows.npy", "finished.u1"
KEPT = "free some space or check its permissions; finished rows are kept, the same command resumes"
_SECONDS = 2.0  # flushing takes longer than a small block: blocks are recorded together, this often
_CHUNK = 8192  # rows that are copied or read together

Result = TypeVar("Result", bound=Artifact)
T = TypeVar("T")


@dataclass(frozen=True)
class RowPlan(Artifact, kind="row-plan"):
    """Describe the rows to compute; a store of the same plan resumes."""

    of: Mapping[str, Any]  # what rows depend on: fingerprints of model and data, options
    count: int
    shape: tuple[int, ...]  # of one row
    block: int  # rows per block; the last one has what is left
    dtype: str = "float32"
    noun: str = "rows"  # in messages

    @property
    def blocks(self) -> int:
        return -(-self.count // self.block)

    def rows_of(self, block: int) -> range:
        return range(block * self.block, min(self.count, (block + 1) * self.block))

    def read_blocks(
        self, load: Callable[[int], T], blocks: Sequence[int], threads: int, prepare_next: bool
    ) -> Iterator[list[T]]:
        """Yield ``load(row)`` of the rows of each block, read ahead in threads.

        With ``prepare_next`` a whole block is read ahead, for a GPU; a CPU would take turns with it on the same cores.
        """
        places = (row for block in blocks for row in self.rows_of(block))
        ahead = read_ahead(load, places, threads, 4 * threads + (self.block if prepare_next else 0))
        for block in blocks:
            yield list(islice(ahead, len(self.rows_of(block))))


class RowStore:
    """Rows under way; use it in a ``with`` block to write."""

    def __init__(self, target: Path, plan: RowPlan) -> None:
        self.target, self.plan = target, plan
        self.folder: Path = target.with_name(f"{target.name}.unfinished")
        self._written: list[int] = []

    @classmethod
    def begin(cls, target: Path, plan: RowPlan) -> Self:
        """Return the unfinished rows of ``target``, or an empty store."""
        store = cls(target, plan)
        with storage_errors(store.folder, KEPT):
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

    def missing(self) -> np.ndarray:
        """Return (m,) int64: the blocks that no process has recorded."""
        return np.flatnonzero(np.fromfile(self.folder / _JOURNAL, dtype=np.uint8) == 0)

    def done(self) -> int:
        return self.plan.count - sum(len(self.plan.rows_of(block)) for block in self.missing().tolist())

    def __enter__(self) -> Self:
        with storage_errors(self.folder, KEPT):
            self._rows = os.open(self.folder / _ROWS, os.O_RDWR)
            self._journal = os.open(self.folder / _JOURNAL, os.O_RDWR)
        # Written by position and not through a map, whose pages would count as the process's own memory.
        self._row_bytes = np.dtype(self.plan.dtype).itemsize * int(np.prod(self.plan.shape))
        self._start = os.path.getsize(self.folder / _ROWS) - self._row_bytes * self.plan.count
        self._recorded = time.monotonic()
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.record()
        finally:
            os.close(self._rows)
            os.close(self._journal)

    def write(self, block: int, rows: np.ndarray) -> None:
        """Write the rows of one block; they are recorded within seconds."""
        places = self.plan.rows_of(block)
        if rows.shape != (len(places), *self.plan.shape):
            raise DataError(
                f"{self.plan.noun} of shape {rows.shape}, expected {(len(places), *self.plan.shape)}"
            )
        content = np.ascontiguousarray(rows, dtype=self.plan.dtype)
        with storage_errors(self.folder, KEPT):
            _write_at(self._rows, content.tobytes(), self._start + self._row_bytes * places.start)
        self._written.append(block)
        if time.monotonic() - self._recorded >= _SECONDS:
            self.record()

    def record(self) -> None:
        """Flush what was written, then enter it in the journal."""
        if self._written:
            with storage_errors(self.folder, KEPT):
                os.fsync(self._rows)
                for block in self._written:
                    _write_at(self._journal, b"\1", block)
                os.fsync(self._journal)
        self._written.clear()
        self._recorded = time.monotonic()

    def finish(self, make: Callable[[np.ndarray], Result]) -> Result:
        """Make the artifact ``target`` of the rows, of which none is missing, and the header that ``make`` returns."""
        with storage_errors(self.folder, KEPT):
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


Make = Callable[[np.ndarray], Iterator[tuple[np.ndarray, np.ndarray]]]


def text_keys(texts: Iterable[str]) -> np.ndarray:
    """Return (n,) uint64, a key for each text."""
    digests = b"".join(hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, dtype="<u8")


def keyed_rows(
    folder: Path, keys: np.ndarray, width: int, make: Make, *, doing: str, unit: str
) -> tuple[np.ndarray, bool]:
    """Return rows by key, memory-mapped, and whether all of them were there; no item is ever computed twice.

    Every row is a record of ``pool.bin`` with a checksum, computed again where it is corrupt; next to it are
    the rows in the order of ``keys``. ``make`` gets (m,) places in ``keys`` and yields places in these and their rows.
    """
    record = np.dtype([("key", "<u8"), ("check", "<u8"), ("row", "<f4", (width,))])
    pool, target = folder / "pool.bin", folder / f"{fingerprint_arrays({'keys': keys})}.npy"
    distinct, first, number = np.unique(keys, return_index=True, return_inverse=True)
    with taking_turns(pool), storage_errors(folder, KEPT):
        remove_leftovers(folder)
        records, place = _places(pool, record, distinct)
        missing = np.flatnonzero(place < 0)
        logger.info("rows %s: %d of %d %s are there", folder.name, np.sum(place >= 0), len(distinct), unit)
        if len(missing):
            done = len(distinct) - len(missing)
            with open(pool, "ab") as handle, task(doing, len(distinct), unit, done) as bar:
                for positions, rows in make(first[missing]):
                    made = np.empty(len(positions), dtype=record)
                    made["key"], made["row"] = distinct[missing[positions]], rows
                    made["check"] = _checksums(made)
                    handle.write(made.tobytes())
                    handle.flush()
                    bar.advance(len(positions))
                os.fsync(handle.fileno())
            records, place = _places(pool, record, distinct)
        with atomic_path(target) as temporary:
            found = create_array(temporary, "<f4", (len(keys), width))
            for start in range(0, len(keys), _CHUNK):
                found[start : start + _CHUNK] = records["row"][place[number[start : start + _CHUNK]]]
                release_pages(records)
            found.flush()  # type: ignore[attr-defined]
    return map_array(target), not len(missing)


def _places(pool: Path, record: np.dtype[Any], keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    count = pool.stat().st_size // record.itemsize if pool.is_file() else 0
    place = np.full(len(keys), -1)
    if not count:
        return np.empty(0, dtype=record), place
    os.truncate(pool, count * record.itemsize)  # a record of which a kill left a part
    records = np.memmap(pool, record, "r", shape=(count,))
    for start in range(0, count, _CHUNK):
        block = np.array(records[start : start + _CHUNK])
        at = np.minimum(np.searchsorted(keys, block["key"]), len(keys) - 1)
        sound = (keys[at] == block["key"]) & (_checksums(block) == block["check"])
        place[at[sound]] = start + np.flatnonzero(sound)
        release_pages(records)
    return records, place


def _checksums(records: np.ndarray) -> np.ndarray:
    """Return (n,) sums, modulo 2^64, of the bits of key and row: any changed bit changes its record's."""
    words = np.ascontiguousarray(records["row"]).view("<u4")
    drawn = np.random.default_rng(0).integers(0, 2**63, words.shape[1], dtype=np.uint64)
    odd = drawn * np.uint64(2) + np.uint64(1)
    return np.asarray(records["key"] + words.astype(np.uint64) @ odd)


def release_pages(rows: np.ndarray | None) -> None:
    """Give mapped pages back, which would count as the process's own memory."""
    mapped = getattr(rows, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
