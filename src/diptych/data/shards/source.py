"""Pictures and records out of the middle of shards."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.core.errors import DataError, ImageError, StorageError, UsageError
from diptych.core.fingerprint import fingerprint_bytes
from diptych.core.reading import parse_json
from diptych.data.captions import SPLIT_WORDS
from diptych.data.columns import Column, NumberTable, first_duplicate, read_at
from diptych.data.images import MAX_BYTES, decode_image

if TYPE_CHECKING:
    from PIL.Image import Image


MAX_SHARDS = 1_000_000
"""Patterns that stand for more files are refused."""

_ENDING = ".tar"
_COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst", ".tar.lz4")
_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")


@dataclass(frozen=True)
class Shard:
    """One tar file."""

    path: Path  # where it is
    name: str  # what ids begin with: its path below the dataset's folder, without ending


def is_pattern(path: Path) -> bool:
    """Return whether a path stands for several files."""
    return any(mark in str(path) for mark in "*?[{") and not path.exists()


def holds_shards(folder: Path) -> bool:
    """Return whether shards lie in a folder or in one of its folders that is called like a split."""
    folders = [folder, *(folder / name for name in SPLIT_WORDS)]
    return any(next(place.glob(f"[!.]*{_ENDING}"), None) is not None for place in folders)


def _expanded(pattern: str) -> Iterator[str]:
    """Yield a pattern without its braces: ``{000..012}`` and ``{a,b}``, as shells read them."""
    found = _BRACES.search(pattern)
    if found is None:
        yield pattern
        return
    numbers = _RANGE.fullmatch(found[1])
    if numbers is None:
        parts = iter(found[1].split(","))
    else:
        width = len(numbers[1]) if numbers[1].startswith("0") else 0
        parts = (f"{number:0{width}d}" for number in range(int(numbers[1]), int(numbers[2]) + 1))
    for part in parts:
        yield from _expanded(pattern[: found.start()] + part + pattern[found.end() :])


def _matching(pattern: str) -> list[Path]:
    names = list(islice(_expanded(pattern), MAX_SHARDS + 1))
    if len(names) > MAX_SHARDS:
        raise UsageError(f"{pattern} stands for more than {MAX_SHARDS:,} files", "check its braces")
    missing = [name for name in names if not glob.has_magic(name) and not Path(name).is_file()]
    if missing:
        raise DataError(
            f"{len(missing):,} of {len(names):,} files that {pattern} stands for are missing, the first: "
            f"{missing[0]}",
            "fetch them, or correct the pattern",
        )
    found: dict[Path, None] = {}
    for name in names:
        found.update(dict.fromkeys(map(Path, sorted(glob.glob(name)) if glob.has_magic(name) else [name])))
    return list(found)


def find_shards(path: Path) -> list[Shard]:
    """Return the shards below a folder, of a pattern, or a single one, in the order of their names."""
    if path.is_dir():
        ends = (_ENDING, *_COMPRESSED)
        files = sorted(file for file in path.rglob("[!.]*") if file.name.endswith(ends) and not file.is_dir())
        root = path
    else:
        files = _matching(str(path)) if is_pattern(path) else [path]
        root = Path(os.path.commonpath([file.parent for file in files])) if files else path
    if not files:
        raise DataError(f"{path}: no shards (*.tar)", "give their folder or a pattern such as {000..012}.tar")
    packed = [file for file in files if file.name.endswith(_COMPRESSED)]
    if packed:
        raise DataError(
            f"{packed[0]} is compressed, with {len(packed) - 1:,} more: nothing in the middle of such a file can "
            "be read without unpacking what is before",
            "unpack shards to .tar (gunzip); pictures hardly grow by it",
        )
    shards = [Shard(file, file.relative_to(root).as_posix().removesuffix(_ENDING)) for file in files]
    twice = first_duplicate([shard.name for shard in shards])
    if twice is not None:
        raise DataError(f"{path}: two shards are called {twice}", "rename one of them")
    return shards


MAX_TEXT_BYTES = 1 << 20
"""Texts of a sample that are longer (1 MiB) are refused before they are read."""

PLACES = 7
"""Numbers per sample: its shard, then where its picture, its JSON and its class begin and their sizes."""


def json_object(content: bytes, where: str) -> dict[str, Any]:
    """Return the object that a sample's JSON file holds."""
    value = parse_json(content, where, error=DataError, fix="write the shard again")
    if not isinstance(value, dict):
        raise DataError(f"{where} is no JSON object but {value!r:.40}", "write the shard again")
    return value


class ShardSource:
    """Pictures in shards, read by position; shards are opened for every one, so that any number will do."""

    def __init__(self, shards: Sequence[Shard], places: NumberTable) -> None:
        self._shards, self._places = shards, places

    def _bytes(self, row: int) -> tuple[bytes, str]:
        shard, offset, size, *_ = self._places[row]
        path = self._shards[shard].path
        name = f"{path}, picture at byte {offset:,}"
        if size > MAX_BYTES:
            raise ImageError(
                f"{name} has {size:,} bytes, more than the {MAX_BYTES:,} allowed", "leave it out"
            )
        try:
            return read_at(path, offset, size), name
        except StorageError as error:
            raise ImageError(error.message, "fetch the shard again, then read the dataset again") from None

    def read(self, row: int) -> Image:
        """Return the picture of source row ``row``, upright, RGB."""
        return decode_image(*self._bytes(row))

    def content(self, row: int) -> str:
        """Return a fingerprint of the picture's bytes, that of a file which holds them."""
        return fingerprint_bytes(self._bytes(row)[0])


class ShardRecords(Column[Mapping[str, Any]]):
    """What a sample's JSON and class files say, read when asked for; ``shard`` is where it is from."""

    def __init__(self, shards: Sequence[Shard], places: NumberTable, leave_out: str) -> None:
        super().__init__(len(places))
        self._shards, self._places, self._leave_out = shards, places, leave_out

    def read(self, rows: range | np.ndarray) -> list[Mapping[str, Any]]:
        return [self._record(*place) for place in self._places.read(rows)]

    def _record(self, shard: int, *members: int) -> Mapping[str, Any]:
        _, _, json_at, json_size, class_at, class_size = members
        path = self._shards[shard].path
        record: dict[str, Any] = {"shard": self._shards[shard].name}
        if json_size:
            found = json_object(read_at(path, json_at, json_size), f"{path}, byte {json_at:,}")
            record |= {key: value for key, value in found.items() if key != self._leave_out}
        if class_size:
            text = read_at(path, class_at, class_size).decode("utf-8", "replace").strip()
            record["class"] = int(text) if text.isascii() and text.isdigit() else text
        return record
