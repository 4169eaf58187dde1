"""A folder of images without captions: every image file below it, named by its path.

Records hold the path and the date of capture that the file's EXIF gives. Files that are no images, links that
leave the folder and names that are no UTF-8 are counted and left out.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.context import track
from diptych.core.errors import DataError
from diptych.core.reading import open_regular
from diptych.data.collection import Centric, Collection
from diptych.data.columns import Column
from diptych.data.images import capture_date, is_image_path
from diptych.data.readers.contract import Gathering, reader

_BEGINNINGS = (
    b"\xff\xd8\xff",
    b"\x89PNG\r\n",
    b"GIF8",
    b"RIFF",
    b"BM",
    b"II*\0",
    b"MM\0*",
    b"II+\0",
    b"MM\0+",
)
_NETPBM = (b"P1", b"P2", b"P3", b"P4", b"P5", b"P6")


def _files(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the path below ``root`` of each file, and why it is no image of the collection, or empty."""
    inside = root.resolve()
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in [name for name in folders if os.path.islink(os.path.join(folder, name))]:
            folders.remove(name)
            yield os.path.relpath(os.path.join(folder, name), root), "links to folders not followed"
        for name in sorted(names):
            if name.startswith("."):
                continue
            file = Path(folder, name)
            below = file.relative_to(root).as_posix()
            if file.is_symlink() and not file.resolve().is_relative_to(inside):
                yield below, "links that leave the folder not followed"
            elif not below.isprintable():
                yield below, "files whose names cannot be printed left out"
            else:
                yield below, "" if is_image_path(name) else "files that are no images left out"


def _wrong(file: Path) -> str:
    """Return why a file cannot be an image, by its first bytes; empty where it can."""
    try:
        with open_regular(file) as handle:
            content = handle.read(16)
    except OSError:
        return "files that cannot be opened left out"
    if not content:
        return "empty files left out"
    return "" if content.startswith(_BEGINNINGS + _NETPBM) else "files that hold no image left out"


class _Records(Column[Mapping[str, Any]]):
    """Path and date of capture of each image; its file is looked into when they are read."""

    def __init__(self, root: Path, names: Sequence[str]) -> None:
        super().__init__(len(names))
        self._root, self._names = root, names

    def read(self, rows: range | np.ndarray) -> list[Mapping[str, Any]]:
        names = (self._names[row] for row in map(int, rows))
        return [{"path": name, **self._date(name)} for name in names]

    def _date(self, name: str) -> dict[str, str]:
        date = capture_date(self._root / name)
        return {"date": date} if date else {}


@reader(
    "images",
    "a folder of images without captions, searched with all folders below it",
    "*",
    general=9,
    claims=lambda path, found: path.is_dir() and any(not why for _, why in _files(path)),
)
def read_images(
    path: Path | str, validation: float = 0.1, test: float = 0.1, centric: Centric | None = None
) -> Collection:
    root = Path(path)
    if not root.is_dir():
        raise DataError(f"{root} is no folder", "give the folder that holds the images")
    gathered = Gathering(False, validation, test)
    for name, why in track(_files(root), f"looking through {root.name}", unit="files"):
        if why := why or _wrong(root / name):
            gathered.counts[why] += 1
        else:
            gathered.add(name)
    if not gathered.items:
        counted = ", ".join(f"{count:,} {what}" for what, count in sorted(gathered.counts.items()))
        raise DataError(f"{root} holds no image: {counted or 'it is empty'}", "give a folder of images")
    found = gathered.collection(root.resolve().name, root, centric, ("images without captions",))
    return replace(found, records=_Records(root, found.image_ids))
