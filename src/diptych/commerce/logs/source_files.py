"""Files of a raw log: what kind each is and what its columns are called, by looking at its beginning.

The kind is told by the content, not by the name: Parquet, JSON lines, or text with a delimiter; the latter two
may be gzipped.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from diptych.core.errors import DataError, DiptychError
from diptych.core.extras import require
from diptych.core.reading import file_errors, open_bytes, open_regular

ENDINGS = (".csv", ".tsv", ".dat", ".txt", ".json", ".jsonl", ".ndjson", ".parquet")
"""Of the files that are taken from a folder, also with ``.gz``."""

_BEGINNING = 1 << 20
_DELIMITERS = (",", ";", "\t", "|")
_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_UNPACKED = 6  # times as large as gzipped, roughly


@dataclass(frozen=True)
class SourceFile:
    """One file of a raw log."""

    path: Path  # where it is
    kind: Literal["text", "json", "parquet"]  # text with a delimiter, json lines or parquet
    # of text, the fields of its first line, which may be names or values; else the columns' names. Fields
    # of JSON objects inside objects are called outer.inner
    first: tuple[str, ...]
    size: int  # bytes
    rows: int  # how many there are, of text roughly
    delimiter: str = ","  # of text
    gzipped: bool = False  # whether it is
    # columns that hold dates or timestamps (Parquet)
    timed: frozenset[str] = field(default_factory=frozenset)
    # of JSON, where each value is in its object (RFC 6901)
    pointers: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name without the folder."""
        return self.path.name

    @property
    def stem(self) -> str:
        """Its name in lower case without its endings."""
        return self.path.name.lower().removesuffix(".gz").rpartition(".")[0]

    def has(self, *columns: str) -> bool:
        """Return whether there are columns of these names."""
        return set(columns) <= set(self.first)


def files_in(folder: Path) -> list[Path]:
    """Return the files of a folder that a log may be in, sorted by name."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_file()
        and not path.name.startswith(".")
        and path.name.lower().removesuffix(".gz").endswith(ENDINGS)
    )


def look_at(path: Path) -> SourceFile:
    """Find out what a file is."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise DataError(
                f"{path} is no file: a log is read more than once", "write to a file what comes from there"
            )
        with open_regular(path) as handle:
            magic = handle.read(4)
        size = path.stat().st_size
    except FileNotFoundError:
        raise DataError(f"{path} does not exist", "check the path") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}", "check its permissions") from None
    if not magic:
        raise DataError(f"{path} is empty", "check how it was made; leave it out")
    if magic == _PARQUET:
        return _look_at_parquet(path, size)
    gzipped = magic.startswith(_GZIP)
    lines = _first_lines(path, gzipped)
    if not lines:
        raise DataError(f"{path} holds nothing but blank lines", "check how it was made; leave it out")
    unpacked = size * _UNPACKED if gzipped else size
    per_line = sum(len(line.encode()) + 1 for line in lines) / len(lines)
    rows = max(1, round(unpacked / per_line))
    if lines[0].startswith("{"):
        pointers = _pointers(lines)
        return SourceFile(path, "json", tuple(pointers), size, rows, gzipped=gzipped, pointers=pointers)
    if lines[0].startswith("["):
        raise DataError(f"{path} is one JSON list", "write one object per line (JSON lines): jq -c '.[]'")
    delimiter = max(_DELIMITERS, key=lambda one: (lines[0].count(one), one == ","))
    first = tuple(name.strip() for name in next(csv.reader(lines[:1], delimiter=delimiter)))
    return SourceFile(path, "text", first, size, rows, delimiter, gzipped)


def check_whole(file: SourceFile) -> None:
    """See that a gzipped file is whole; the database would read what there is of it and say nothing."""
    if not file.gzipped:
        return
    with file_errors(file.path, DataError), open_bytes(file.path, gzipped=True) as handle:
        while handle.read(_BEGINNING):
            pass


def _first_lines(path: Path, gzipped: bool) -> list[str]:
    """Return the lines of a file's beginning that are not blank, each whole but for a very long first."""
    with file_errors(path, DataError), open_bytes(path, gzipped) as handle:
        content = handle.read(_BEGINNING)
    if content.startswith(_UTF16):
        raise DataError(f"{path} is in UTF-16", "write it in UTF-8: iconv -f utf-16 -t utf-8")
    whole = content if len(content) < _BEGINNING else content.rpartition(b"\n")[0] or content
    # Of the first line alone everything is needed: in the others a strange byte is one bad row.
    lines = [line for line in whole.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip(b" ")]
    if not lines:
        return []
    try:
        first = lines[0].decode()
    except UnicodeDecodeError:
        raise DataError(f"the first line of {path} is not UTF-8", "write it in UTF-8, with iconv") from None
    if "\0" in first:
        raise DataError(f"{path} is no text, JSON lines or Parquet", "unpack or export it as one of these")
    return [first, *(line.decode(errors="replace") for line in lines[1:])]


def _pointers(lines: list[str]) -> dict[str, str]:
    """Return all keys of the first objects, in the order in which they come, and where their values are."""
    found: dict[str, str] = {}

    def add(value: Mapping[str, Any], name: str = "", pointer: str = "") -> None:
        for key, inner in value.items():
            place = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
            if isinstance(inner, dict):
                add(inner, f"{name}{key}.", place)
            else:
                found.setdefault(name + key, place)

    for line in lines:
        try:
            value = json.loads(line)
            if isinstance(value, dict):
                add(value)
        except (ValueError, RecursionError):  # one bad row, which the import counts
            continue
    return found


def _look_at_parquet(path: Path, size: int) -> SourceFile:
    require("pyarrow", "commerce", "reading Parquet")
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.ParquetFile(path)
        schema, rows = metadata.schema_arrow, metadata.metadata.num_rows
    except DiptychError:
        raise
    except (pa.ArrowException, OSError) as error:
        line = str(error).split("\n", 1)[0]
        raise DataError(f"{path} is no whole Parquet file: {line}", "it is damaged: fetch it again") from None
    timed = {one.name for one in schema if pa.types.is_timestamp(one.type) or pa.types.is_date(one.type)}
    return SourceFile(path, "parquet", tuple(schema.names), size, rows, timed=frozenset(timed))
