"""The smallest encoder: mean colour of a picture, length of a text. Run as a script it is killed half-way.

``python shades.py DATA OUT STAGE``: embeds the validation split and ends itself, as by ``kill -9``, at a
stage of the writing.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core import files
from diptych.core.errors import ImageError
from diptych.data.readers import read_collection
from diptych.encoders import encode, row_blocks, sides
from diptych.encoders.dual_encoder import DualEncoder

STAGES = (
    "rows without record",
    "flushed without record",
    "half of a record",
    "record",
    "one half",
    "ids without header",
    "header without name",
    "between two names",
    "name with plan",
    "all but the last file",
)
BLOCK = 4


class Shades(DualEncoder):
    """Counts how many pictures and texts it has seen."""

    family = "shades"

    def __init__(self) -> None:
        self.seen = [0, 0]

    def encode_images(self, images: Iterable[Any], batch_size: int = 64) -> np.ndarray:
        rows = []
        for place, picture in enumerate(images):
            if picture.size[0] == 1:
                raise ImageError(f"image {place} is too small")
            rows.append(np.asarray(picture, dtype=np.float32).mean(axis=(0, 1)))
        self.seen[0] += len(rows)
        return np.stack(rows)

    def encode_texts(self, texts: Sequence[str], batch_size: int = 256) -> np.ndarray:
        self.seen[1] += len(texts)
        return np.array([[len(text), text.count(" "), 0] for text in texts], dtype=np.float32)

    def has_begun(self) -> bool:
        return self.seen[0] > 0

    @property
    def width(self) -> int:
        return 3

    @property
    def fingerprint(self) -> str:
        return "shades"

    def describe(self) -> dict[str, Any]:
        return {"family": "shades"}

    def _write(self, folder: Path) -> None:
        raise NotImplementedError


def killed(*args: Any, **options: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def arrange(stage: str) -> None:
    """Put the kill where the stage says."""
    write_at, record, describe = row_blocks._write_at, row_blocks.RowBlocks.record, row_blocks.describe_rows
    row_blocks._SECONDS = 1e9  # type: ignore[misc]
    if stage == "rows without record":
        row_blocks.RowBlocks.record = killed  # type: ignore[method-assign]
    elif stage in ("flushed without record", "half of a record"):
        marks = iter(range(9))

        def writing(handle: int, content: bytes, place: int) -> None:
            if content == b"\1" and next(marks) == (2 if stage == "half of a record" else 0):
                killed()
            write_at(handle, content, place)

        row_blocks._write_at = writing
    elif stage == "record":

        def recorded(self: row_blocks.RowBlocks) -> None:
            record(self)
            killed()

        row_blocks.RowBlocks.record = recorded  # type: ignore[method-assign]
    elif stage == "one half":
        Shades.encode_texts = killed  # type: ignore[method-assign]
    elif stage == "ids without header":
        row_blocks.describe_rows = lambda folder, ids, header: describe(folder, killed(), header)  # type: ignore[attr-defined]
    elif stage == "header without name":
        row_blocks.replace_folder = killed  # type: ignore[attr-defined]
    elif stage == "between two names":
        rename = Path.rename

        def renamed(path: Path, target: Any) -> Any:
            if path.name == "texts.unfinished":
                killed()
            return rename(path, target)

        Path.rename = renamed  # type: ignore[method-assign]
    elif stage == "name with plan":
        replace = files.replace_folder

        def replaced(source: Path, target: Path) -> None:
            replace(source, target)
            killed()

        row_blocks.replace_folder = replaced  # type: ignore[attr-defined]
    elif stage == "all but the last file":
        encode.write_json = killed  # type: ignore[attr-defined]
    else:
        raise ValueError(stage)


if __name__ == "__main__":
    data, out, stage = sys.argv[1:]
    sides._IMAGE_BLOCK = BLOCK  # type: ignore[misc]
    arrange(stage)
    encode.encode_collection(Shades(), read_collection(data).split("val"), out, "val")
    sys.exit("nothing killed it")
