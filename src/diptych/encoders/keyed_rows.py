"""Rows on disk under the content of what they are rows of: computed once, memory-mapped.

A store is a folder for one maker of rows. Rows are kept in blocks with the keys of their items, which are hashes
of their content: another split, another dataset with items in common, or the same one with items added, only
computes what no block has. A block is written whole or not at all, so that a kill loses at most the one that
was being computed, and two runs may fill a store at the same time.

``sets/`` holds, for each sequence of items that was asked for, its rows in its order, which is what is mapped.
Both are a cache: anything may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import logging
import mmap
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from diptych.core.context import task
from diptych.core.errors import StorageError
from diptych.core.files import atomic_path, create_array
from diptych.core.fingerprint import fingerprint_arrays
from diptych.core.reading import file_errors, map_array, read_arrays

logger = logging.getLogger(__name__)

_FINGERPRINT_LENGTH = 16
_LOOK = 8192
"""Rows that are looked at together."""

Make = Callable[[np.ndarray], Iterator[tuple[np.ndarray, np.ndarray]]]


def keyed_rows(
    folder: Path, keys: np.ndarray, width: int, make: Make, *, block: int, doing: str, unit: str
) -> tuple[np.ndarray, bool]:
    """(n, width) float32 rows, one per key, memory-mapped for reading, and whether this very set was there.

    Args:
        keys: (n,) uint64, of the items' content; in any order, with or without repetitions.
    """
    path = folder / "sets" / f"{fingerprint_arrays({'texts': keys})}.npy"
    shape = (len(keys), width)
    rows = _open_set(path, shape)
    if rows is not None:
        return rows, True
    _make_set(path, keys, width, make, block, doing, unit)
    rows = _open_set(path, shape)
    assert rows is not None
    return rows, False


def text_keys(texts: Iterable[str]) -> np.ndarray:
    """(n,) uint64, a key for each text."""
    digests = bytearray()
    for text in texts:
        digests += hashlib.blake2b(text.encode(), digest_size=8).digest()
    return np.frombuffer(bytes(digests), dtype="<u8")


def _open_set(path: Path, shape: tuple[int, int]) -> np.ndarray | None:
    """The rows of a set that is there and whole; None when it is not there."""
    if not path.is_file():
        return None
    fix = f"it is a cache: delete {path.name}"
    rows = map_array(path, fix=fix, more=_FINGERPRINT_LENGTH)
    with file_errors(path, fix=fix), open(path, "rb") as handle:
        handle.seek(-_FINGERPRINT_LENGTH, os.SEEK_END)
        content = handle.read()
    if rows.shape != shape or content != _content(rows):
        raise StorageError(f"{path} is not what was written", fix)
    return rows


def _make_set(
    path: Path, keys: np.ndarray, width: int, make: Make, block_rows: int, doing: str, unit: str
) -> None:
    """Gather the rows of all blocks, compute those that are missing, and write the set."""
    distinct, first, place = np.unique(keys, return_index=True, return_inverse=True)
    folder = path.parents[1]
    with atomic_path(path) as temporary:
        rows = create_array(temporary, "float32", (len(keys), width))
        there = np.zeros(len(distinct), dtype=bool)
        order = np.argsort(place, kind="stable")
        ends = np.searchsorted(place[order], np.arange(len(distinct) + 1))

        def fill(found: np.ndarray, block: np.ndarray) -> None:
            """Put the rows of the distinct items ``found`` wherever these items occur."""
            for number, row in zip(found, block, strict=True):
                rows[order[ends[number] : ends[number + 1]]] = row
            there[found] = True
            let_go(rows)

        for file in sorted((folder / "blocks").glob("*.npz")):
            names, block = _read_block(file, width)
            at = np.minimum(np.searchsorted(distinct, names), len(distinct) - 1)
            known = distinct[at] == names
            fill(at[known], block[known])
        missing = np.flatnonzero(~there)
        logger.info("rows %s: %d of %d %s are there", folder.name, there.sum(), len(distinct), unit)
        with task(doing, len(distinct), unit, int(there.sum())) as bar:
            parts: list[tuple[np.ndarray, np.ndarray]] = []
            for positions, part in make(first[missing]):
                parts.append((missing[positions], part))
                done = sum(len(numbers) for numbers, _ in parts)
                if done >= block_rows:
                    fill(*_write_block(folder, distinct, parts))
                    parts = []
                bar.advance(len(positions))
            if parts:
                fill(*_write_block(folder, distinct, parts))
        rows.flush()  # type: ignore[attr-defined]
        content = _content(rows)
        # Behind the array, where no reader of .npy looks: two files could be of two different runs.
        with open(temporary, "ab") as handle:
            handle.write(content)


def _write_block(
    folder: Path, distinct: np.ndarray, parts: list[tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """Write some rows under their items' keys, and give the numbers of the items, and the rows."""
    numbers, rows = (np.concatenate(values) for values in zip(*parts, strict=True))
    names = distinct[numbers]
    path = folder / "blocks" / f"{fingerprint_arrays({'texts': names})}.npz"
    with atomic_path(path) as temporary, open(temporary, "wb") as handle:
        np.savez(handle, texts=names, rows=rows)
    return numbers, rows


def _read_block(path: Path, width: int) -> tuple[np.ndarray, np.ndarray]:
    """The keys and rows of a block; an .npz holds a check sum of each."""
    fix = f"it is a cache: delete {path.name}, what it held is computed again"
    names, rows = read_arrays(path, ("texts", "rows"), fix=fix).values()
    if rows.shape != (len(names), width):
        raise StorageError(f"{path} holds rows of shape {rows.shape} for {len(names)} items", fix)
    return names, rows


def _content(rows: np.ndarray) -> bytes:
    """``fingerprint_arrays({"rows": rows})``, with a block of the rows in memory."""
    hasher = hashlib.blake2b(f"rows:{rows.dtype.str}:{rows.shape}\0".encode(), digest_size=8)
    for start in range(0, len(rows), _LOOK):
        hasher.update(np.ascontiguousarray(rows[start : start + _LOOK]).view(np.uint8).reshape(-1).data)
        let_go(rows)
    return hasher.hexdigest().encode()


def let_go(rows: np.ndarray) -> None:
    """Give mapped pages back: they are in the file, and would count as the process's own memory."""
    mapped = getattr(rows, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
