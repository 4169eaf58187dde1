"""Tar shards of samples, read by position and never unpacked.

``tarfile`` reads the headers once; afterwards an image is one read in the middle of a shard, in any order.
"""

from __future__ import annotations

import glob
import os
import re
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from diptych.core.errors import DataError, ImageError, StorageError, UsageError
from diptych.core.fingerprint import fingerprint_bytes
from diptych.core.reading import parse_json
from diptych.data.columns import Column, NumberTable, first_duplicate, read_at
from diptych.data.images import MAX_BYTES, check_inside, decode_image

if TYPE_CHECKING:
    from PIL.Image import Image

# Patterns that stand for more files are refused.
MAX_SHARDS = 1_000_000

IGNORED = "links and other members that are no files passed over"

_COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst", ".tar.lz4")
_BRACES = re.compile(r"\{([^{}]*)\}")
_MAX_HEADER_BYTES = 1 << 20  # of one member; real ones have a few thousand


class Shard(NamedTuple):
    """One tar file, and what ids begin with: its path below the dataset's folder, without ending."""

    path: Path
    name: str


def is_pattern(path: Path) -> bool:
    return any(mark in str(path) for mark in "*?[{") and not path.exists()


def _expanded(pattern: str) -> Iterator[str]:
    """Yield a pattern without its braces: ``{000..012}`` and ``{a,b}``, as shells read them."""
    if (found := _BRACES.search(pattern)) is None:
        yield pattern
        return
    parts: Iterator[str] = iter(found[1].split(","))
    if numbers := re.fullmatch(r"(\d+)\.\.(\d+)", found[1]):
        width = len(numbers[1]) if numbers[1].startswith("0") else 0
        parts = (f"{number:0{width}d}" for number in range(int(numbers[1]), int(numbers[2]) + 1))
    for part in parts:
        yield from _expanded(pattern[: found.start()] + part + pattern[found.end() :])


def find_shards(path: Path) -> list[Shard]:
    """Return the shards below a folder, of a pattern, or a single one, in the order of their names."""
    root = path
    if path.is_dir():
        ends = (".tar", *_COMPRESSED)
        files = sorted(file for file in path.rglob("[!.]*") if file.name.endswith(ends) and not file.is_dir())
    else:
        names = list(islice(_expanded(str(path)), MAX_SHARDS + 1)) if is_pattern(path) else [str(path)]
        if len(names) > MAX_SHARDS:
            raise UsageError(f"{path} stands for more than {MAX_SHARDS:,} files", "check its braces")
        plain = [name for name in names if not glob.has_magic(name) or not is_pattern(path)]
        if missing := [name for name in plain if not Path(name).is_file()]:
            raise DataError(
                f"{len(missing):,} of {len(names):,} files of {path} are missing, the first: {missing[0]}",
                "fetch them, or correct the pattern",
            )
        matching = (sorted(glob.glob(name)) if name not in plain else [name] for name in names)
        files = list(dict.fromkeys(Path(name) for found in matching for name in found))
        root = Path(os.path.commonpath([file.parent for file in files])) if files else path
    if not files:
        raise DataError(f"{path}: no shards (*.tar)", "give their folder or a pattern such as {000..012}.tar")
    if packed := [file for file in files if file.name.endswith(_COMPRESSED)]:
        raise DataError(
            f"{packed[0]} is compressed: no image in the middle can be read without unpacking what is before",
            "unpack shards to .tar (gunzip); images hardly grow by it",
        )
    shards = [Shard(file, file.relative_to(root).as_posix().removesuffix(".tar")) for file in files]
    if (twice := first_duplicate([shard.name for shard in shards])) is not None:
        raise DataError(f"{path}: two shards are called {twice}", "rename one of them")
    return shards


class CutError(DataError):
    """A shard that ends too early or is corrupt; members that came before are whole."""


class Member(NamedTuple):
    """A file in a shard: ``KEY.ENDING``, the key ending at the first dot of the file's name."""

    key: str
    ending: str  # in lower case
    offset: int  # of its first byte in the shard
    size: int  # in bytes; the shard holds all of them


class _Headers:
    """A shard as ``tarfile`` sees it: so many bytes per member, however large a header says it is."""

    def __init__(self, handle: BinaryIO) -> None:
        self._handle, self.left = handle, _MAX_HEADER_BYTES
        self.seek, self.tell = handle.seek, handle.tell

    def read(self, size: int) -> bytes:
        self.left -= size
        if size < 0 or self.left < 0:
            raise tarfile.ReadError(f"a header of more than {_MAX_HEADER_BYTES:,} bytes")
        return self._handle.read(size)


def read_members(path: Path, handle: BinaryIO, counts: Counter[str]) -> Iterator[Member]:
    """Yield the files of a shard in order; links, devices and sparse files are counted and passed over.

    Raises:
        CutError: behind the last member that is whole.
        DataError: it is no tar file.
    """
    total, at = handle.seek(0, os.SEEK_END), -1
    handle.seek(0)
    headers: Any = _Headers(handle)
    try:
        archive = tarfile.open(fileobj=headers, mode="r:", encoding="utf-8")  # noqa: SIM115
        while (info := archive.next()) is not None:
            archive.members.clear()  # type: ignore[attr-defined]  # it would grow with the shard
            left, has_data = (
                total - info.offset_data,
                info.isreg() or info.type not in tarfile.SUPPORTED_TYPES,
            )
            if has_data and not 0 <= info.size <= left:
                raise tarfile.ReadError(f"{info.name!r} has {info.size:,} bytes, {left:,} are left")
            headers.left, at = _MAX_HEADER_BYTES, info.offset
            if not info.isreg() or info.issparse():
                counts[IGNORED] += not info.isdir()
                continue
            name = info.name.removeprefix("./")
            check_inside(name, f"{path} (byte {at:,})")
            folder, slash, file = name.rpartition("/")
            stem, dot, ending = file.partition(".")
            if stem and dot:
                key = f"{folder}{slash}{stem}"
                key.encode()
                yield Member(key, ending.lower(), info.offset_data, info.size)
        at = archive.offset
        handle.seek(at)
        if handle.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise tarfile.ReadError("no mark of the end")
    except (tarfile.TarError, ValueError, LookupError, ArithmeticError, RecursionError, OSError) as error:
        if at < 0:
            raise DataError(f"{path} is no tar file, or cut off: {error}", "fetch it again") from None
        raise CutError(
            f"{path} is corrupt or cut off behind byte {at:,} of {total:,}: {error}",
            "fetch it again, or use what comes before with --reader-option truncated=skip",
        ) from None


# Numbers per sample: its shard, then where its image, its JSON and its class begin and their sizes.
PLACES = 7


def json_object(content: bytes, where: str) -> dict[str, Any]:
    value = parse_json(content, where, error=DataError, fix="write the shard again")
    if not isinstance(value, dict):
        raise DataError(f"{where} is no JSON object but {value!r:.40}", "write the shard again")
    return value


class ShardSource:
    """Images in shards; shards are opened for every one, so that any number of them will do."""

    def __init__(self, shards: Sequence[Shard], places: NumberTable) -> None:
        self._shards, self._places = shards, places

    def _bytes(self, row: int) -> tuple[bytes, str]:
        shard, offset, size, *_ = self._places[row]
        name = f"{self._shards[shard].path}, image at byte {offset:,}"
        if size > MAX_BYTES:
            raise ImageError(
                f"{name} has {size:,} bytes, more than the {MAX_BYTES:,} allowed", "leave it out"
            )
        try:
            return read_at(self._shards[shard].path, offset, size), name
        except StorageError as error:
            raise ImageError(error.message, "fetch the shard again, then read the dataset again") from None

    def read(self, row: int) -> Image:
        return decode_image(*self._bytes(row))

    def content(self, row: int) -> str:
        return fingerprint_bytes(self._bytes(row)[0])


class ShardRecords(Column[Mapping[str, Any]]):
    """The JSON and the class of samples, read when they are used; ``shard`` is where a sample is from."""

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
