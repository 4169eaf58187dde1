"""Where NLTK's data lies: folders in the order in which NLTK looks, resources unpacked or still in their zip."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from diptych.core.errors import MissingExtraError, StorageError
from diptych.core.extras import require

EXTRA = "language"
"""The extra that brings the library."""

DOWNLOAD = "python -m nltk.downloader averaged_perceptron_tagger_eng wordnet"
"""What brings the data."""

_MOST = 1 << 28  # the largest file that is read is a sixteenth of it


def how_to_get() -> str:
    """What to do to have NLTK and its data."""
    return DOWNLOAD if find_spec("nltk") else f"pip install 'diptych[{EXTRA}]', then {DOWNLOAD}"


def data_folders() -> list[Path]:
    """The folders that NLTK looks in: those of ``NLTK_DATA``, then its own where it is installed."""
    folders = os.environ.get("NLTK_DATA", "").split(os.pathsep)
    with suppress(MissingExtraError):  # what was named can be read without it
        # NLTK reads the variable when it is imported; it may have been set since.
        folders += require("nltk.data", EXTRA, "looking for NLTK's data").path
    return [Path(folder) for folder in dict.fromkeys(folders) if folder]


def find_resource(folders: Sequence[Path], name: str) -> Path | None:
    """The folder or the zip file of a resource such as ``corpora/wordnet``; None where there is none."""
    for folder in folders:
        for path in (folder / name, folder / f"{name}.zip"):
            if path.exists():
                return path
    return None


def read_member(resource: Path, name: str) -> bytes:
    """A file of a resource that :func:`find_resource` found."""
    try:
        if resource.suffix != ".zip":
            return (resource / name).read_bytes()
        with zipfile.ZipFile(resource) as archive:
            member = archive.getinfo(f"{resource.stem}/{name}")
            if member.file_size > _MOST:
                raise zipfile.BadZipFile(f"{member.file_size:,} bytes unpacked, more than {_MOST:,}")
            return archive.read(member)
    # RuntimeError: a zip with a password, or packed in a way that Python does not know.
    except (OSError, KeyError, EOFError, RuntimeError, zlib.error, zipfile.BadZipFile) as error:
        raise StorageError(
            f"{resource}: {name} cannot be read: {error}", f"get it again: {DOWNLOAD}"
        ) from None
