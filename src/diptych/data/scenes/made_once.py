"""Folders that are made once and found again: whether one is whole, and what may not be replaced.

What every kind of scenes has in common: a header in JSON that says which dataset it is, of which version, made with
what, and a fingerprint of all that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from diptych.core.errors import StorageError, UsageError
from diptych.core.reading import read_json

HEADER = "dataset.json"


@dataclass(frozen=True)
class Wanted:
    """What a folder should hold.

    Attributes:
        dataset: the header's ``dataset``.
        called: in messages, with the article that it needs: ``scenes``, ``a shop log``.
        version: of what is made.
        fingerprint: of everything that it is made of.
        said: parameters, as messages print them.
        unsaid: values of parameters that a header leaves out.
    """

    dataset: str
    called: str
    version: int
    fingerprint: str
    said: Mapping[str, Any]
    unsaid: Mapping[str, Any] = field(default_factory=dict)


def header_of(folder: Path, dataset: str) -> dict[str, Any] | None:
    """What the folder's header says; None when it has none of this dataset."""
    if not (folder / HEADER).is_file():
        return None
    try:
        header = read_json(folder / HEADER)
    except StorageError:
        return None
    return header if isinstance(header, dict) and header.get("dataset") == dataset else None


def found(folder: Path, wanted: Wanted) -> dict[str, Any] | None:
    """The folder's header, if it is exactly of what is wanted; files may be missing still."""
    header = header_of(folder, wanted.dataset)
    return header if header is not None and header.get("fingerprint") == wanted.fingerprint else None


def sizes_hold(folder: Path, sizes: Iterable[tuple[str, int]]) -> bool:
    """Whether every named file is in the folder, with so many bytes."""
    return all((folder / name).is_file() and (folder / name).stat().st_size == size for name, size in sizes)


def refuse_strange(folder: Path, wanted: Wanted) -> None:
    """Let nothing be replaced but an empty folder or a damaged copy of what is wanted."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError(f"{folder} is a file", "give the name of a folder")
    if not any(folder.iterdir()):
        return
    header = header_of(folder, wanted.dataset)
    if header is None:
        raise UsageError(f"{folder} holds other files", "give a new or empty folder")
    if header.get("fingerprint") != wanted.fingerprint:
        asked = ", ".join(f"{key}={value}" for key, value in wanted.said.items())
        held = ", ".join(f"{key}={header.get(key, wanted.unsaid.get(key))}" for key in wanted.said)
        raise UsageError(
            f"{folder} holds {wanted.called} of version {header.get('version')} with {held}; "
            f"version {wanted.version} with {asked} was asked for",
            "give another folder, or delete this one",
        )
