"""Targets on disk: computed once per model and caption, whatever the collection, memory-mapped.

A store is a folder named by the model's fingerprint. Rows are kept in blocks with the fingerprints
of their captions' texts: another split, another dataset with captions in common, or the same one
with captions added, only computes what no block has. A block is written whole or not at all, so that
a kill loses at most the one that was being computed, and two runs may fill a store at the same time.

``sets/`` holds, for each sequence of captions that was asked for, its rows in its order, which is
what is mapped. Both are a cache: anything may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import logging
import os
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from diptych.core.errors import StorageError
from diptych.core.files import atomic_path, create_array
from diptych.core.fingerprint import fingerprint_arrays
from diptych.core.progress import task
from diptych.encoders.targets.contract import BATCH_SIZE, TargetModel

__all__ = ["targets_of"]

logger = logging.getLogger(__name__)

_BLOCK_CAPTIONS = 2048
_FINGERPRINT_LENGTH = 16


def targets_of(
    model: TargetModel, captions: Sequence[str], root: Path | str, batch_size: int = BATCH_SIZE
) -> np.ndarray:
    """(n, width) float32 unit rows, one per caption, memory-mapped for reading.

    Args:
        model: makes the rows that are not there yet.
        captions: in any order, with or without repetitions.
        root: folder of stores.
        batch_size: captions that the model takes at once.

    Raises:
        NumericalError: a row is NaN or infinite.
        StorageError: a file of the store is damaged, or the disk is full; what was computed stays
            and is used by the next try.
    """
    if not captions:
        return np.empty((0, model.width), dtype=np.float32)
    folder = Path(root) / model.fingerprint
    texts = _fingerprints(captions)
    path = folder / "sets" / f"{fingerprint_arrays({'texts': texts})}.npy"
    shape = (len(captions), model.width)
    rows = _open_set(path, shape)
    if rows is None:
        _make_set(path, model, captions, texts, batch_size)
        rows = _open_set(path, shape)
        assert rows is not None
        empty = sum(
            int((~block.any(axis=1)).sum()) for block in np.array_split(rows, -(-len(rows) // 65_536))
        )
        if empty:
            logger.warning("%d of %d captions have no target: no known word in them", empty, len(rows))
    return rows


def _fingerprints(captions: Sequence[str]) -> np.ndarray:
    """(n,) uint64, by text."""
    digests = (hashlib.blake2b(caption.encode(), digest_size=8).digest() for caption in captions)
    return np.frombuffer(b"".join(digests), dtype="<u8")


def _open_set(path: Path, shape: tuple[int, int]) -> np.ndarray | None:
    """The rows of a set that is there and whole; None when it is not there."""
    if not path.is_file():
        return None
    fix = f"it is a cache: delete {path.name}"
    try:
        rows: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
        with open(path, "rb") as handle:
            handle.seek(-_FINGERPRINT_LENGTH, os.SEEK_END)
            content = handle.read()
    except (OSError, ValueError, EOFError) as error:
        raise StorageError(f"{path} cannot be read: {error}", fix) from None
    if rows.shape != shape or content != fingerprint_arrays({"rows": rows}).encode():
        raise StorageError(f"{path} is not what was written", fix)
    return rows


def _make_set(
    path: Path, model: TargetModel, captions: Sequence[str], texts: np.ndarray, batch_size: int
) -> None:
    """Gather the rows of all blocks, compute those that are missing, and write the set."""
    distinct, first, place = np.unique(texts, return_index=True, return_inverse=True)
    folder = path.parents[1]
    with atomic_path(path) as temporary:
        rows = create_array(temporary, "float32", (len(captions), model.width))
        there = np.zeros(len(distinct), dtype=bool)
        order = np.argsort(place, kind="stable")
        ends = np.searchsorted(place[order], np.arange(len(distinct) + 1))

        def fill(found: np.ndarray, block: np.ndarray) -> None:
            """Put the rows of the distinct texts ``found`` wherever these texts occur."""
            for number, row in zip(found, block, strict=True):
                rows[order[ends[number] : ends[number + 1]]] = row
            there[found] = True

        for file in sorted((folder / "blocks").glob("*.npz")):
            names, block = _read_block(file, model.width)
            known = np.isin(names, distinct)
            fill(np.searchsorted(distinct, names[known]), block[known])
        missing = np.flatnonzero(~there)
        logger.info("targets %s: %d of %d captions are there", model.fingerprint, there.sum(), len(distinct))
        with task("encoding captions", len(distinct), "captions", int(there.sum())) as bar:
            parts: list[tuple[np.ndarray, np.ndarray]] = []
            wanted = [captions[number] for number in first[missing]]
            for positions, part in model.encode_batches(wanted, batch_size):
                parts.append((missing[positions], part))
                done = sum(len(numbers) for numbers, _ in parts)
                if done >= _BLOCK_CAPTIONS:
                    fill(*_write_block(folder, distinct, parts))
                    parts = []
                bar.advance(len(positions))
            if parts:
                fill(*_write_block(folder, distinct, parts))
        rows.flush()  # type: ignore[attr-defined]
        content = fingerprint_arrays({"rows": rows})
        # Behind the array, where no reader of .npy looks: two files could be of two different runs.
        with open(temporary, "ab") as handle:
            handle.write(content.encode())


def _write_block(
    folder: Path, distinct: np.ndarray, parts: list[tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """Write some rows under their texts' fingerprints, and give the numbers of the texts, and the rows."""
    numbers, rows = (np.concatenate(values) for values in zip(*parts, strict=True))
    names = distinct[numbers]
    path = folder / "blocks" / f"{fingerprint_arrays({'texts': names})}.npz"
    with atomic_path(path) as temporary, open(temporary, "wb") as handle:
        np.savez(handle, texts=names, rows=rows)
    return numbers, rows


def _read_block(path: Path, width: int) -> tuple[np.ndarray, np.ndarray]:
    """The fingerprints and rows of a block; an .npz holds a check sum of each."""
    fix = f"it is a cache: delete {path.name}, its captions are computed again"
    try:
        with open(path, "rb") as handle, np.load(handle, allow_pickle=False) as file:
            names, rows = file["texts"], file["rows"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise StorageError(f"{path} cannot be read: {error}", fix) from None
    if rows.shape != (len(names), width):
        raise StorageError(f"{path} holds rows of shape {rows.shape} for {len(names)} captions", fix)
    return names, rows
