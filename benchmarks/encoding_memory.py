"""Peak memory of embedding a thousand pictures against a hundred thousand and a million."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.memory import peak_mb
from benchmarks.table import Line
from diptych.data.collection import Collection
from diptych.data.columns import Column
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.encode import encode_collection

__all__ = ["measure"]

COUNTS = (1_000, 100_000, 1_000_000)
WIDTH = 64
PER_ITEM = 32
"""Bytes per picture that are allowed: its place and its caption's picture are 16, which is what a
collection holds of each, and hashes of ids while it is seen that none occurs twice are 8."""


class _Numbered(Column[str]):
    """Names that are made when they are asked for."""

    def __init__(self, size: int, form: str) -> None:
        super().__init__(size)
        self._form = form

    def read(self, rows: range | np.ndarray) -> list[str]:
        return [self._form.format(int(row)) for row in rows]


class _Source:
    """Pictures of 8 × 8 pixels that are made when they are asked for."""

    def read(self, row: int) -> Image.Image:
        return Image.new("RGB", (8, 8), (row & 255, row >> 8 & 255, row >> 16 & 255))

    def content(self, row: int) -> str:
        return f"{row:016x}"


class _Encoder(DualEncoder):
    """Costs nothing: a colour and a length, in 64 numbers."""

    family = "benchmark"

    def encode_images(self, images: Iterable[Any], batch_size: int = 64) -> np.ndarray:
        colours = [np.asarray(picture)[0, 0] for picture in images]
        return np.resize(np.asarray(colours, dtype=np.float32), (len(colours), WIDTH))

    def encode_texts(self, texts: Sequence[str], batch_size: int = 256) -> np.ndarray:
        return np.repeat(np.array([len(text) for text in texts], dtype=np.float32)[:, None], WIDTH, axis=1)

    @property
    def width(self) -> int:
        return WIDTH

    @property
    def fingerprint(self) -> str:
        return "benchmark"

    def describe(self) -> dict[str, Any]:
        return {"family": self.family}

    def _write(self, folder: Path) -> None:
        raise NotImplementedError


def _embed(count: int) -> float:
    """Peak megabytes of a whole process that embeds ``count`` pictures with a caption each."""
    rows = np.arange(count, dtype=np.int64)
    ids = _Numbered(count, "picture-{:09d}.jpg")
    collection = Collection(
        name="numbered",
        image_ids=ids,
        captions=_Numbered(count, "the picture of number {}"),
        caption_ids=_Numbered(count, "picture-{:09d}.jpg#0"),
        caption_image=rows,
        splits=_Numbered(count, "train"),
        source=_Source(),
        source_rows=rows,
    )
    with tempfile.TemporaryDirectory() as folder:
        encoded = encode_collection(_Encoder(), collection, folder)
        assert encoded.images.ids[count - 1] == ids[count - 1]
        assert len(encoded.texts) == count
        return peak_mb()


def _measured(count: int) -> float:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.encoding_memory", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    return float(json.loads(done.stdout.splitlines()[-1]))


def measure() -> list[Line]:
    """Pictures of 8 × 8 pixels and an encoder that costs nothing: what is left is the way there."""
    peaks = {count: _measured(count) for count in COUNTS}
    small = peaks[COUNTS[0]]
    how = f"peak resident set of a process that embeds them, {WIDTH} numbers each, one caption per picture"
    lines = []
    for count in COUNTS[1:]:
        allowed = small + 8 + count * PER_ITEM / 1e6
        lines.append(
            Line(
                f"memory of embedding {count:,} pictures",
                f"{peaks[count]:.0f} MB; {COUNTS[0]:,} pictures: {small:.0f} MB; their rows on disk: "
                f"{2 * count * WIDTH * 4 / 1e6:.0f} MB",
                f"≤ {small:.0f} MB + {PER_ITEM} bytes each",
                peaks[count] <= allowed,
                how,
            )
        )
    return lines


if __name__ == "__main__":
    print(json.dumps(_embed(int(sys.argv[1]))))
