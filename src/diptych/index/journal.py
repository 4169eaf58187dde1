"""Journal: changes of a saved index, each durable when its call returns and seen by other processes.

A change is appended to a file in the index's folder and flushed before it is made in memory; opening the index makes
them all again, and :meth:`StoredIndex.compact` writes an index without any. A writer locks the folder meanwhile.

The file holds frames behind each other: a head (mark, length, digest, checksum of the head) and a payload, which is a
line of JSON and the vectors' arrays. A digest is of the payload and the digest before it, the first of the index's
own header. What a kill cut off at the end no reader counts, and the next writer removes it.
"""

import json
import os
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from diptych.core.errors import DataError, MismatchError, NumericalError, StorageError, UsageError
from diptych.core.files import storage_errors, sync
from diptych.core.fingerprint import fingerprint_file
from diptych.core.locking import locked_in_place
from diptych.core.reading import file_errors, open_regular
from diptych.index.contract import Change, Index
from diptych.index.engine import Vectors
from diptych.index.storage import REBUILD, Header

JOURNAL = "changes.journal"

_HEAD, _MARK = struct.Struct("<4sQ8sI"), b"DJ02"
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_NOTHING: dict[str, Any] = {"records": {}, "captions": []}  # of an item without any
_UNDERWAY = 600  # seconds that an image may have been sent before its item
_TOGETHER = 1 << 14  # items of adjacent frames that are inserted at once


def _digest(before: bytes, payload: bytes) -> bytes:
    return blake2b(before + payload, digest_size=8).digest()


class Journal:
    """The frames of a file.

    Attributes:
        position: the byte up to which they were read or written.
        digest: of the last of them.
    """

    def __init__(self, path: Path, of: str) -> None:
        self.path, self.position, self.digest = path, 0, _digest(b"", of.encode())
        self._last = 0  # where the last frame begins

    def read(self) -> Iterator[bytes]:
        """Yield the payloads of frames that were appended since the last time."""
        if not self.position and not self.path.exists():
            return
        with file_errors(self.path, fix=REBUILD), open_regular(self.path) as handle:
            size = os.fstat(handle.fileno()).st_size
            if self.position:  # the last frame, which could not be flushed, may have been taken back
                handle.seek(self._last)
                head = handle.read(_HEAD.size)
                if size < self.position or _HEAD.unpack(head)[2] != self.digest:
                    self._refuse()
            handle.seek(self.position)
            while size - handle.tell() >= _HEAD.size:
                head = handle.read(_HEAD.size)
                mark, length, digest, check = _HEAD.unpack(head)
                if not any(head):
                    return  # space without content, which a file system may leave after a power cut
                if mark != _MARK or zlib.crc32(head[:-4]) != check:
                    self._refuse()
                if length > size - handle.tell():
                    return
                payload = handle.read(length)
                if _digest(self.digest, payload) != digest:
                    if handle.tell() == size:
                        return
                    self._refuse()
                self._last, self.position, self.digest = self.position, handle.tell(), digest
                yield payload

    def _refuse(self) -> None:
        raise StorageError(
            f"{self.path} is corrupt at byte {self.position:,}: its content is not what was written",
            "restore it from a copy; or remove it, and all changes since the index was saved are lost",
        )

    def append(self, payload: bytes) -> None:
        """Write a frame behind all others, which were read, and flush it; all or nothing."""
        digest = _digest(self.digest, payload)
        head = _HEAD.pack(_MARK, len(payload), digest, 0)[:-4]
        frame = head + struct.pack("<I", zlib.crc32(head)) + payload
        with storage_errors(self.path):
            is_new = not self.path.exists()
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | _FLAGS, 0o644)
            try:
                if is_new:
                    sync(self.path.parent)
                os.ftruncate(handle, self.position)
                os.lseek(handle, self.position, os.SEEK_SET)
                rest = memoryview(frame)
                while rest:
                    rest = rest[os.write(handle, rest) :]
                os.fsync(handle)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(handle, self.position)
                raise
            finally:
                os.close(handle)
        self._last, self.position, self.digest = self.position, self.position + len(frame), digest


def _encoded(change: Change) -> bytes:
    rows: Any = change.vectors
    content = {"kind": "delete" if rows is None else "add", "ids": list(change.ids)}
    content |= {what: list(map(json.loads, lines)) for what, lines in change.lines.items()}
    arrays = [] if rows is None else [rows.astype("<f4", copy=False)]
    if isinstance(rows, csr_array):
        arrays = [rows.indptr.astype("<i8"), rows.indices.astype("<i4"), rows.data.astype("<f4")]
    return b"".join([json.dumps(content).encode(), b"\n", *(one.tobytes() for one in arrays)])


def _decoded(payload: bytes, index: Index) -> tuple[list[str], Vectors, dict[str, Any]]:
    """Return ids, the vectors of inserted items or None, and what else :meth:`Index.check_add` takes."""
    end = payload.index(b"\n")
    content, rest = json.loads(payload[:end]), memoryview(payload)[end + 1 :]
    ids = content["ids"]
    if content["kind"] == "delete":
        return ids, None, {}
    given = {what: content[what] for what in _NOTHING if content.get(what) is not None}
    if index.engine().vectors == "dense":
        return ids, np.frombuffer(rest, "<f4").reshape(len(ids), index.width).copy(), given
    ends = 8 * (len(ids) + 1)
    columns = ends + (len(rest) - ends) // 2
    indptr, indices = np.frombuffer(rest[:ends], "<i8"), np.frombuffer(rest[ends:columns], "<i4")
    rows = csr_array((np.frombuffer(rest[columns:], "<f4"), indices, indptr), shape=(len(ids), index.width))
    return ids, rows, given


def _replay(journal: Journal, index: Index) -> None:
    """Make the changes of new frames; items of adjacent ones are inserted together."""
    pending: list[tuple[list[str], Vectors, dict[str, Any]]] = []
    names: set[str] = set()

    def insert() -> None:
        if pending:
            ids = [name for one, _, _ in pending for name in one]
            rows = [one for _, one, _ in pending]
            more: dict[str, Any] = {}
            for what in {what for _, _, given in pending for what in given}:
                parts = (given.get(what, [_NOTHING[what]] * len(one)) for one, _, given in pending)
                more[what] = [entry for part in parts for entry in part]
            whole = vstack(rows, format="csr") if isinstance(rows[0], csr_array) else np.concatenate(rows)
            index.add(ids, whole, replace=True, **more)
            pending.clear()
            names.clear()

    for payload in journal.read():
        ids, vectors, given = _decoded(payload, index)
        if vectors is None or not names.isdisjoint(ids) or len(names) > _TOGETHER:
            insert()
        if vectors is None:
            index.delete(ids)
        else:
            pending.append((ids, vectors, given))
            names.update(ids)
    insert()


class StoredIndex:
    """A saved index with the changes made to it since, which other processes may make too.

    Attributes:
        folder: where it lies.
        index: as of the last change or :meth:`refresh`; another object after the folder was replaced.
    """

    def __init__(self, folder: Path | str, *, verify: bool = False) -> None:
        self.folder = Path(folder)
        self._open(verify)

    def _state(self) -> tuple[int, ...]:
        with suppress(OSError):
            state = (self.folder / Header.marker()).stat()
            return state.st_ino, state.st_mtime_ns, state.st_size
        return ()

    def _open(self, verify: bool = False) -> None:
        while True:
            state = self._state()
            try:
                index = Index.open(self.folder, verify=verify)
                journal = Journal(self.folder / JOURNAL, fingerprint_file(self.folder / Header.marker()))
                self._replay(journal, index)
            except (StorageError, OSError):
                if state == self._state():
                    raise
                continue  # another process replaced the folder meanwhile
            if state == self._state():
                break
        self.index: Index = index
        self._journal, self._opened = journal, state

    def _replay(self, journal: Journal, index: Index) -> None:
        try:
            with file_errors(journal.path, fix=REBUILD):
                _replay(journal, index)
        except (DataError, MismatchError, NumericalError, UsageError) as error:
            message = f"{journal.path} holds a change that cannot be made: {error.message}"
            raise StorageError(message, REBUILD) from None

    @property
    def fingerprint(self) -> str:
        """Return a name of the content, another one after every change."""
        return self._journal.digest.hex()

    @property
    def is_replaced(self) -> bool:
        """Return whether the folder holds another index by now."""
        return self._state() != self._opened

    def refresh(self) -> bool:
        """Make the changes that other processes made, and return whether there were any."""
        before = self.fingerprint
        if self.is_replaced:
            self._open()
            return True
        try:
            self._replay(self._journal, self.index)
        except StorageError:
            self._open()
        return self.fingerprint != before

    def add(self, ids: Sequence[str], rows: Vectors, **given: Any) -> None:
        """Insert items; they are on the disk when this returns. Arguments as of :meth:`Index.check_add`."""
        self._change(lambda: self.index.check_add(ids, rows, **given))

    def delete(self, ids: Sequence[str]) -> None:
        """Remove items; none is removed when one of the ids is unknown."""
        self._change(lambda: self.index.check_delete(ids))

    def _change(self, check: Callable[[], Change]) -> None:
        with locked_in_place(self.folder):
            self.refresh()
            change = check()
            if not change.ids:
                return
            if not self.index.on_server:
                self._journal.append(_encoded(change))
            self.index.apply(change)

    @property
    def journal_size(self) -> int:
        """Return how many bytes of changes an opening index reads."""
        return self._journal.position

    @property
    def sent(self) -> Path:
        """Return the folder of images that clients sent with their items."""
        return Path(f"{self.folder}.items")

    def compact(self) -> bool:
        """Write the index as it is, without a journal, and return whether there was one; all or nothing.

        Images that clients sent are deleted when no item has them, some minutes after they came.
        """
        with locked_in_place(self.folder):
            self.refresh()
            if is_changed := self.journal_size > 0:
                self.index.write(self.folder)
                self._open()
            if self.sent.is_dir():
                named = {Path(str(record.get("path"))).name for record in self.index.records.values()}
                for file in self.sent.glob("*/*.img"):
                    if file.name not in named and time.time() - file.stat().st_mtime > _UNDERWAY:
                        file.unlink()
        return is_changed


def open_index(folder: Path | str, *, verify: bool = False) -> Index:
    """The index saved in ``folder`` with its changes since, or at a ``qdrant:`` address; see :meth:`Index.open`."""
    if str(folder).startswith("qdrant:"):
        from diptych.index.engines.qdrant import open_address

        return open_address(str(folder))
    return StoredIndex(folder, verify=verify).index
