"""Files of a saved index: its header, who can open it, what its files must look like, captions of its items."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diptych.core.artifact import Artifact
from diptych.core.errors import StorageError, UsageError
from diptych.core.fingerprint import fingerprint_file
from diptych.index.engine import ENGINES, Engine, Known

REBUILD = "build the index again from its embeddings"
# Files that are read where they are needed, of captions and of metadata.
_READ_LATER = frozenset(f"{name}.{ending}" for name in ("captions", "records") for ending in ("utf8", "ends"))


@dataclass(frozen=True)
class FileRecord:
    """A file's size and the fingerprint of its bytes."""

    bytes: int
    fingerprint: str


@dataclass(frozen=True)
class Header(Artifact, kind="index", version=3, recreate="diptych index RUN"):
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

    def known(self) -> Known:
        return Known(self.encoder, self.width, self.options, self.about)

    def declared_engine(self, folder: Path | str) -> Engine:
        try:
            engine = ENGINES.get(self.engine)
            engine.resolve(self.options)
        except UsageError as error:
            raise StorageError(
                f"the index in {folder} cannot be opened: {error.message}",
                "open it with the version that wrote it, or " + REBUILD,
            ) from None
        return engine

    def check_files(self, folder: Path, mapped: frozenset[str], verify: bool) -> None:
        """Compare the files with what was written: of mapped ones only the size, unless all are to be verified."""
        by_size_only = frozenset() if verify else mapped | _READ_LATER
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
    return {
        path.name: FileRecord(path.stat().st_size, fingerprint_file(path))
        for path in sorted(folder.iterdir())
    }


Captions = Mapping[str, list[str]]
