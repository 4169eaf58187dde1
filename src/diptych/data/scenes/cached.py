"""Cached datasets: generated once in a folder of their own or of the cache, and found again.

``dataset.json`` says which dataset a folder holds, of which version, generated with what, and a fingerprint of all
that; ``files`` are the sizes of what belongs to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.files import atomic_folder, cache_root, write_text
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import taking_turns
from diptych.core.options import Options, parameter
from diptych.core.reading import read_json

HEADER = "dataset.json"


def _as_text(given: Any) -> str:
    return "-".join(map(str, given)) if isinstance(given, list | tuple) else str(given)


Span = Annotated[str, BeforeValidator(_as_text)]
"""A number, or the least and the most: ``3``, ``"2-9"`` or ``(2, 9)``."""


class GeneratedOptions(Options):
    """What all generators take."""

    seed: int = parameter(0, "The same seed gives the same bytes.")


class GeneratedImages(GeneratedOptions):
    """What generators of images take."""

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


@dataclass(frozen=True)
class Specification:
    """What a folder should hold."""

    dataset: str  # the header's dataset
    called: str  # in messages, with the article that it needs: scenes, a shop log
    version: int
    parameters: Mapping[str, Any]  # the header's further entries
    further: tuple[Any, ...] = ()  # what the fingerprint depends on beyond the parameters
    usual: Mapping[str, Any] = field(default_factory=dict)  # values of parameters that a header leaves out

    @property
    def fingerprint(self) -> str:
        """Of everything that it is generated from."""
        return fingerprint(self.dataset, self.version, dict(self.parameters), *self.further)


def cached_dataset(
    folder: Path | str | None,
    wanted: Specification,
    write: Callable[[Path], Mapping[str, Any]],
) -> Path:
    """Return the folder of a dataset, generated where it is missing or incomplete.

    Args:
        folder: None for one of the cache.
        write: writes the files into a folder and returns further entries of its header.

    Raises:
        UsageError: the folder holds other things.
    """
    target = cache_root() / wanted.dataset / wanted.fingerprint if folder is None else Path(folder)
    if _is_complete(target, wanted):
        return target
    with taking_turns(target) if folder is None else nullcontext():
        if not _is_complete(target, wanted):
            _refuse_other(target, wanted)
            with atomic_folder(target) as temporary:
                entries = write(temporary)
                header = {
                    "dataset": wanted.dataset,
                    "version": wanted.version,
                    "fingerprint": wanted.fingerprint,
                    **wanted.parameters,
                    **entries,
                }
                # without indentation: half the size, and several times faster to write and to read
                write_text(temporary / HEADER, json.dumps(header, separators=(",", ":")) + "\n")
    return target


def sizes_of(folder: Path) -> dict[str, int]:
    """Return the size of every file below a folder, by name."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.stat().st_size for file in files}


def read_header(folder: Path | str, dataset: str, called: str, version: int, command: str) -> dict[str, Any]:
    """Read the header of a folder that is to be read as a dataset.

    Raises:
        DataError: it holds another dataset or version.
    """
    path = Path(folder) / HEADER
    header = read_json(path)
    if not isinstance(header, dict) or header.get("dataset") != dataset:
        raise DataError(f"{path} holds no {called}", f"generate them with `{command}`")
    if header.get("version") != version:
        found = f"{called} of version {header.get('version')}, this version reads {version}"
        raise DataError(f"{path} holds {found}", f"generate them again with `{command}`")
    return header


def _header_of(folder: Path, dataset: str) -> dict[str, Any] | None:
    """Return the header of a folder; None where it has none of this dataset."""
    try:
        header = read_json(folder / HEADER)
    except StorageError:
        return None
    return header if isinstance(header, dict) and header.get("dataset") == dataset else None


def _is_complete(folder: Path, wanted: Specification) -> bool:
    """Return whether a folder holds exactly what is wanted, with every file in its length."""
    header = _header_of(folder, wanted.dataset)
    if header is None or header.get("fingerprint") != wanted.fingerprint:
        return False
    sizes = header.get("files") or dict.fromkeys(image["filename"] for image in header["images"])
    files = ((folder / name, size) for name, size in sizes.items())
    return all(file.is_file() and size in (None, file.stat().st_size) for file, size in files)


def _refuse_other(folder: Path, wanted: Specification) -> None:
    """Let nothing be replaced but an empty folder or an incomplete copy of what is wanted."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError(f"{folder} is a file", "give the name of a folder")
    if not any(folder.iterdir()):
        return
    header = _header_of(folder, wanted.dataset)
    if header is None:
        raise UsageError(f"{folder} holds other files", "give a new or empty folder")
    if header.get("fingerprint") != wanted.fingerprint:
        asked = {**wanted.parameters, **{k: v for k, v in wanted.usual.items() if k not in wanted.parameters}}
        expected = ", ".join(f"{key}={value}" for key, value in asked.items())
        held = ", ".join(f"{key}={header.get(key, wanted.usual.get(key))}" for key in asked)
        raise UsageError(
            f"{folder} holds {wanted.called} of version {header.get('version')} with {held}; "
            f"version {wanted.version} with {expected} was asked for",
            "give another folder, or delete this one",
        )
