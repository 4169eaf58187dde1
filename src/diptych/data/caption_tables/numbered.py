"""Pictures that are called by a number: ``7.jpg``, ``000000007.jpg``, ``00000/000000007.jpg``.

Downloaders name a picture by the place of its address in a list. A folder of them is gone through entry
by entry; of each picture its number is kept, and of each way of writing names one text.
"""

from __future__ import annotations

import os
import zlib
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from diptych.core.errors import DataError
from diptych.data.images import PICTURE_ENDINGS


def _files(root: Path) -> Iterator[tuple[str, str]]:
    """Folder below ``root`` (with a ``/``, or empty) and name of every file, in no order."""
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(root / folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{folder}{entry.name}/")
                    else:
                        yield folder, entry.name
        except OSError as error:
            raise DataError(
                f"{root / folder} cannot be read: {error.strerror}", "check its permissions"
            ) from None


def _is_picture(file: str) -> bool:
    return file.rpartition(".")[2].lower() in PICTURE_ENDINGS


def folder_state(root: Path, every: bool = False) -> tuple[int, int]:
    """How many pictures, or files at all, are below ``root``, and a number that changes with their names."""
    count = names = 0
    for folder, file in _files(root):
        if not (every or _is_picture(file)):
            continue
        count += 1
        names += zlib.crc32(f"{folder}{file}".encode(errors="surrogateescape"))
    return count, names


class NumberedPictures:
    """The pictures below a folder whose names are numbers, in the order of these.

    Attributes:
        numbers: (n,) int64, ascending.
        strangers: pictures whose names are no numbers.
    """

    def __init__(self, root: Path) -> None:
        numbers, forms = array("q"), array("i")
        known: dict[tuple[str, int, str], int] = {}
        self.strangers = 0
        for folder, file in _files(root):
            if not _is_picture(file):
                continue
            stem, _, ending = file.rpartition(".")
            # Eighteen digits fit into 64 bits; a longer name is no place in a list.
            if not (stem.isascii() and stem.isdigit() and len(stem) <= 18):
                self.strangers += 1
                continue
            # The width matters where there are leading zeros; 7 and 07 would be two names of one number.
            width = len(stem) if stem[0] == "0" else 0
            numbers.append(int(stem))
            forms.append(known.setdefault((folder, width, ending), len(known)))
        order = np.argsort(np.frombuffer(numbers, dtype=np.int64), kind="stable") if numbers else slice(0)
        self.numbers: np.ndarray = np.array(numbers, dtype=np.int64)[order]
        self._forms: np.ndarray = np.array(forms, dtype=np.int32)[order]
        self._known = list(known)
        twice = np.flatnonzero(np.diff(self.numbers) == 0)
        if len(twice):
            at = int(twice[0])
            raise DataError(
                f"{root} has {self.name(at)} and {self.name(at + 1)}, both number {self.numbers[at]:,}",
                "remove one of them",
            )

    def name(self, place: int) -> str:
        """The file below the folder of the picture at that place in :attr:`numbers`."""
        folder, width, ending = self._known[self._forms[place]]
        return f"{folder}{self.numbers[place]:0{width}d}.{ending}"
