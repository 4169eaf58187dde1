"""Generators: datasets that are a function of their options, made once and found again, in a folder or in the cache.

A generator samples its world by keyed draws, chunk by chunk in any process, and writes what it tells in order. So
neither the number of processes nor the size of the dataset changes what it begins with. A folder is whole or not
there; its ``dataset.json`` says what it was generated with, a fingerprint of that, and the sizes of its files.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator

from diptych.core.context import task
from diptych.core.errors import DataError, Interrupted, StorageError, UnknownNameError, UsageError
from diptych.core.files import atomic_folder, cache_root, write_text
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import taking_turns
from diptych.core.options import Options, parameter
from diptych.core.processes import available_cores, in_processes
from diptych.core.reading import read_json

HEADER = "dataset.json"

# Images that are drawn at once.
CHUNK = 64

_SERIAL_BELOW = 512  # starting processes takes longer than drawing this many


def _as_text(given: Any) -> str:
    return "-".join(map(str, given)) if isinstance(given, list | tuple) else str(given)


# A number, or the least and the most: ``3``, ``"2-9"`` or ``(2, 9)``.
Span = Annotated[str, BeforeValidator(_as_text)]


class GeneratorOptions(Options):
    seed: int = parameter(0, "The same seed gives the same bytes.")


class ImageOptions(GeneratorOptions):
    size: int = parameter(64, "Side of an image, in pixels.", ge=32, le=1024)
    workers: int | None = parameter(None, "Processes; as many as there are CPUs.", ge=1)


def least_and_most(given: str, what: str, most: int) -> tuple[int, int]:
    """Return the least and the most of a :data:`Span`, which are 1 to ``most``."""
    first, dash, last = given.partition("-")
    try:
        ends = int(first), int(last if dash else first)
    except ValueError:
        ends = 0, 0
    if not 1 <= ends[0] <= ends[1] <= most:
        raise UsageError(
            f"{what} are {given!r}", f"give 1 to {most}, or the least and the most, e.g. 1-{most}"
        )
    return ends


class Generator(ABC):
    """A dataset that can be generated.

    Attributes:
        parameters: entries of the header that the data depend on.
        planted: what the data depend on beyond them.
        total: images, or whatever ``unit`` names.
        workers: processes; None for as many as there are CPUs.
    """

    dataset: ClassVar[str]  # the header's dataset
    noun: ClassVar[str]  # in messages, with the article that it needs: scenes, a shop log
    command: ClassVar[str]
    version: ClassVar[int]  # raised whenever the same options would give other data
    unit: ClassVar[str]
    usual: ClassVar[Mapping[str, Any]] = {}  # values of parameters that a header leaves out

    def __init__(
        self, parameters: Mapping[str, Any], total: int, workers: int | None = None, planted: Any = None
    ) -> None:
        self.parameters, self.total, self.planted = parameters, total, planted
        self.workers: int = workers or (1 if total < _SERIAL_BELOW else available_cores())

    @abstractmethod
    def chunks(self) -> Sequence[Any]:
        """Return the pieces of the work, in order; each is small."""

    @abstractmethod
    def make_chunk(self, folder: Path, chunk: Any) -> Any:
        """Sample one chunk, draw its images into the folder, and return its metadata; called in any process."""

    @abstractmethod
    def write(self, folder: Path, chunks: Iterator[Any]) -> dict[str, Any]:
        """Write the metadata of all chunks, which come in order, and return further entries of the header."""

    @property
    def fingerprint(self) -> str:
        planted = () if self.planted is None else (self.planted,)
        return fingerprint(self.dataset, self.version, dict(self.parameters), *planted)

    def make(self, folder: Path | str | None) -> Path:
        """Return the folder of the dataset, generated where it is missing or incomplete; None for one of the cache.

        Raises:
            UsageError: the folder holds other things.
            Interrupted: a stop was requested; nothing is left behind.
        """
        target = cache_root() / self.dataset / self.fingerprint if folder is None else Path(folder)
        if self._is_complete(target):
            return target
        with taking_turns(target) if folder is None else nullcontext():
            if not self._is_complete(target):
                self._refuse_other(target)
                with atomic_folder(target) as temporary:
                    self._fill(temporary)
        return target

    def _fill(self, folder: Path) -> None:
        entries = self.write(folder, self._made(folder))
        own = {"dataset": self.dataset, "version": self.version, "fingerprint": self.fingerprint}
        header = {**own, **self.parameters, **entries}
        # without indentation: half the size, and several times faster to write and to read
        write_text(folder / HEADER, json.dumps(header, separators=(",", ":")) + "\n")

    def _made(self, folder: Path) -> Iterator[Any]:
        chunks, done = self.chunks(), 0
        work = partial(self.make_chunk, folder)
        with task(f"making {self.noun}", self.total, self.unit) as bar:
            for made in in_processes(chunks, work, self.workers, ordered=True):
                yield made
                done += 1
                bar.advance(self.total * done // len(chunks) - self.total * (done - 1) // len(chunks))
        if done < len(chunks):
            raise Interrupted(f"stopped while making {self.noun}", "the same command begins again")

    @classmethod
    def read_header(cls, folder: Path | str) -> dict[str, Any]:
        """Read the header of a folder that is to be read as this dataset.

        Raises:
            DataError: it holds another dataset or version.
        """
        path = Path(folder) / HEADER
        header = read_json(path)
        if not isinstance(header, dict) or header.get("dataset") != cls.dataset:
            raise DataError(f"{path} holds no {cls.noun}", f"generate them with `{cls.command}`")
        if header.get("version") != cls.version:
            found = f"{cls.noun} of version {header.get('version')}, this version reads {cls.version}"
            raise DataError(f"{path} holds {found}", f"generate them again with `{cls.command}`")
        return header

    def _header_of(self, folder: Path) -> dict[str, Any] | None:
        """Return the header of a folder; None where it has none of this dataset."""
        try:
            header = read_json(folder / HEADER)
        except StorageError:
            return None
        return header if isinstance(header, dict) and header.get("dataset") == self.dataset else None

    def _is_complete(self, folder: Path) -> bool:
        """Return whether a folder holds exactly the requested dataset, with every file in its length."""
        header = self._header_of(folder)
        if header is None or header.get("fingerprint") != self.fingerprint:
            return False
        sizes = header.get("files") or dict.fromkeys(image["filename"] for image in header["images"])
        files = ((folder / name, size) for name, size in sizes.items())
        return all(file.is_file() and size in (None, file.stat().st_size) for file, size in files)

    def _refuse_other(self, folder: Path) -> None:
        """Refuse to replace anything but an empty folder or an incomplete copy of the requested dataset."""
        if not folder.exists():
            return
        if not folder.is_dir():
            raise UsageError(f"{folder} is a file", "give the name of a folder")
        if not any(folder.iterdir()):
            return
        header = self._header_of(folder)
        if header is None:
            raise UsageError(f"{folder} holds other files", "give a new or empty folder")
        if header.get("fingerprint") != self.fingerprint:
            held, requested = self._listed(header), self._listed(self.parameters)
            raise UsageError(
                f"{folder} holds {self.noun} of version {header.get('version')} with {held}; "
                f"version {self.version} with {requested} was requested",
                "give another folder, or delete this one",
            )

    def _listed(self, header: Mapping[str, Any]) -> str:
        keys = dict.fromkeys([*self.parameters, *self.usual])
        return ", ".join(f"{key}={header.get(key, self.usual.get(key))}" for key in keys)


def with_changes(usual: Mapping[str, Any], changes: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what is planted, with other values for some of it."""
    for name in changes or ():
        if name not in usual:
            raise UnknownNameError("effect", name, usual)
    return {**usual, **(changes or {})}


def parts_of(total: int, size: int = CHUNK) -> list[range]:
    return [range(start, min(start + size, total)) for start in range(0, total, size)]


def sizes_of(folder: Path) -> dict[str, int]:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.stat().st_size for file in files}
