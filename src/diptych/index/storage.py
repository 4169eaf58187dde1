"""The header of a saved index: what it is, who can open it, what its files must look like."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.artifact import Artifact
from diptych.core.errors import StorageError, UsageError
from diptych.core.fingerprint import fingerprint_file
from diptych.core.reading import map_array, read_array
from diptych.index.engine import ENGINES, Engine

REBUILD = "build the index again from its embeddings"


@dataclass(frozen=True)
class FileRecord:
    """A file's size and the fingerprint of its bytes."""

    bytes: int
    fingerprint: str


@dataclass(frozen=True)
class Header(Artifact, kind="index", version=2, recreate="diptych index RUN"):
    """The content of ``index.json``, see :class:`diptych.index.contract.Index`."""

    engine: str
    encoder: str
    width: int
    items: int  # how many can be found
    options: dict[str, Any]
    about: dict[str, Any]
    files: dict[str, FileRecord]  # of the engine

    def __post_init__(self) -> None:
        if self.width < 1 or self.items < 0:
            raise ValueError(f"{self.items} items of width {self.width} are impossible")

    def known(self) -> dict[str, Any]:
        """Return what the index's constructor takes."""
        return {name: getattr(self, name) for name in ("encoder", "width", "options", "about")}

    def declared_engine(self, folder: Path | str) -> Engine:
        """Return the declaration of the engine that wrote the index."""
        try:
            engine = ENGINES.get(self.engine)
            engine.resolve(self.options)
        except UsageError as error:
            raise StorageError(
                f"the index in {folder} cannot be opened: {error.message}",
                "open it with the version that wrote it, or " + REBUILD,
            ) from None
        return engine

    def check_files(self, folder: Path, by_size_only: frozenset[str]) -> None:
        """Compare the files with what was written."""
        for name, written in self.files.items():
            path, wrong = folder / name, ""
            if not path.is_file():
                raise StorageError(f"{path} is missing", REBUILD)
            if (size := path.stat().st_size) != written.bytes:
                wrong = f"{written.bytes} bytes expected, got {size}"
            elif name not in by_size_only and (content := fingerprint_file(path)) != written.fingerprint:
                wrong = f"fingerprint {written.fingerprint} expected, got {content}"
            if wrong:
                raise StorageError(f"{path} is corrupt: {wrong}", REBUILD)


def records_of(folder: Path) -> dict[str, FileRecord]:
    """Return the records of all files of a folder."""
    return {
        path.name: FileRecord(path.stat().st_size, fingerprint_file(path))
        for path in sorted(folder.iterdir())
    }


def load_array(
    path: Path, shape: tuple[int | None, ...], kind: type[np.generic], *, mapped: bool
) -> np.ndarray:
    """Read or map an array of a saved index."""
    read = map_array if mapped else read_array
    return read(path, kind, shape, fix=REBUILD)
