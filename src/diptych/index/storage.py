"""The header of a saved index: what it is, who can open it, what its files must look like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import StorageError, UsageError
from diptych.core.files import atomic_folder, write_json
from diptych.core.fingerprint import fingerprint_file
from diptych.core.reading import map_array, read_array, read_json
from diptych.index.engine import ENGINES, Engine

_FORMAT = 1
_NAME = "index.json"
_REBUILD = "build the index again from its embeddings"


@dataclass(frozen=True)
class Header:
    """What ``index.json`` says.

    Attributes:
        engine: the engine's name.
        encoder: fingerprint of what made the vectors.
        width: d.
        items: how many can be found.
        options: the engine's options.
        about: see :class:`diptych.index.contract.Index`.
        files: per file of the engine, its ``bytes`` and ``fingerprint``.
    """

    engine: str
    encoder: str
    width: int
    items: int
    options: dict[str, Any]
    about: dict[str, Any]
    files: dict[str, dict[str, Any]]

    def check_files(self, folder: Path, by_size_only: frozenset[str]) -> None:
        """Compare the files with what was written."""
        for name, written in self.files.items():
            path = folder / name
            if not path.is_file():
                raise StorageError(f"{path} is missing", _REBUILD)
            if not isinstance(written, Mapping):
                raise StorageError(f"{folder} is corrupt: {name} has {written!r:.40}", _REBUILD)
            if not isinstance(written, Mapping):
                raise StorageError(f"{folder} is corrupt: {name} has {written!r:.40}", _REBUILD)
            size = path.stat().st_size
            if size != written.get("bytes"):
                raise StorageError(
                    f"{path} is damaged: {written.get('bytes')} bytes expected, got {size}", _REBUILD
                )
            if name not in by_size_only and (content := fingerprint_file(path)) != written.get("fingerprint"):
                raise StorageError(
                    f"{path} is damaged: fingerprint {written.get('fingerprint')} expected, got {content}",
                    _REBUILD,
                )


def engine_of(header: Header, folder: Path | str) -> Engine:
    """The declaration of the engine that wrote ``header``."""
    try:
        engine = ENGINES.get(header.engine)
        engine.resolve(header.options)
    except UsageError as error:
        raise StorageError(
            f"the index in {folder} cannot be opened: {error.message}",
            "open it with the version that wrote it, or " + _REBUILD,
        ) from None
    return engine


_TYPES = {
    "engine": str,
    "encoder": str,
    "width": int,
    "items": int,
    "options": dict,
    "about": dict,
    "files": dict,
}


@contextmanager
def saving_folder(folder: Path | str) -> Iterator[Path]:
    """A temporary folder that becomes ``folder`` when the block succeeds."""
    folder = Path(folder)
    if (
        folder.exists()
        and not (folder / _NAME).is_file()
        and not (folder.is_dir() and not any(folder.iterdir()))
    ):
        raise UsageError(f"{folder} exists and is not an index", "name a new folder or an index to replace")
    with atomic_folder(folder) as temporary:
        yield temporary


def write_header(folder: Path, **said: Any) -> Header:
    """Write ``index.json`` beside the engine's files; ``said`` are :class:`Header`'s other fields."""
    files = {
        path.name: {"bytes": path.stat().st_size, "fingerprint": fingerprint_file(path)}
        for path in sorted(folder.iterdir())
    }
    header = Header(**said, files=files)
    write_json(folder / _NAME, {"format": _FORMAT, **vars(header)})
    return header


def read_header(folder: Path | str) -> tuple[Path, Header]:
    """The header of the index in ``folder``, and where its files are.

    A save that was killed between its two renames leaves the older index under ``.NAME.old``; then
    that one is opened (the next save puts it back first).
    """
    folder = Path(folder)
    older = folder.with_name(f".{folder.name}.old")
    where = older if not folder.exists() and older.is_dir() else folder
    path = where / _NAME
    if not path.is_file():
        what = "is not an index: it has no" if where.exists() else "does not exist: there is no"
        raise StorageError(f"{folder} {what} {_NAME}", "build one and save it there first")
    said = read_json(path)
    if not isinstance(said, Mapping):
        raise StorageError(f"{path} is not the header of an index", _REBUILD)
    if said.get("format") != _FORMAT:
        raise StorageError(
            f"{folder} holds an index of format {said.get('format')}, this version reads {_FORMAT}", _REBUILD
        )
    for name, kind in _TYPES.items():
        if type(said.get(name)) is not kind:
            raise StorageError(
                f"{path} is damaged: {name!r} is {said.get(name)!r}, not of type {kind.__name__}", _REBUILD
            )
    if said["width"] < 1 or said["items"] < 0:
        raise StorageError(
            f"{path} is damaged: {said['items']} items of width {said['width']} cannot be", _REBUILD
        )
    return where, Header(**{name: said[name] for name in _TYPES})


def load_array(
    path: Path, shape: tuple[int | None, ...], kind: type[np.generic], *, mapped: bool
) -> np.ndarray:
    """Read or map an array of a saved index."""
    read = map_array if mapped else read_array
    return read(path, kind, shape, fix=_REBUILD)


def load_ids(path: Path) -> list[str]:
    """Read the ids of a saved index."""
    ids = read_json(path)
    if not isinstance(ids, list) or not all(isinstance(name, str) for name in ids):
        raise StorageError(f"{path} does not hold a list of ids", _REBUILD)
    return ids
