"""Folders of precomputed features as VSE++, SCAN and VSRN read them.

``{split}_caps.txt`` holds one caption per line, ``{split}_ims.npy`` the features: (n, regions, d) or
(n, d). An image has captions / images captions, next to each other. Their ``dev`` is our ``val``. Some of
these arrays hold every image five times, once per caption; that is looked for and undone.
"""

from pathlib import Path

import numpy as np

from diptych.core.context import task
from diptych.core.errors import DataError
from diptych.core.reading import read_text
from diptych.data.collection import Centric, Collection
from diptych.data.known import known_by_name
from diptych.data.readers.contract import Gathering, reader
from diptych.data.regions import RegionSource, open_regions

_NAMES = {"dev": "val"}
_ORDER = ("train", "dev", "test")
_COPIES = 5
_BLOCK_BYTES = 1 << 26


def _splits(folder: Path) -> list[str]:
    found = [file.name.removesuffix("_caps.txt") for file in folder.glob("*_caps.txt")]
    return sorted(found, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))


def _copies(rows: np.ndarray, name: str) -> int:
    """5 when every image is there five times in a row, bit for bit; else 1."""
    if len(rows) % _COPIES or not len(rows):
        return 1
    groups = rows.reshape(-1, _COPIES, *rows.shape[1:])
    step = max(1, _BLOCK_BYTES // max(1, groups[:1].nbytes))
    with task(f"looking for repeated images in {name}", len(rows), "images") as bar:
        for start in range(0, len(groups), step):
            block = groups[start : start + step]
            if not np.array_equal(block[:, 1:], np.broadcast_to(block[:, :1], block[:, 1:].shape)):
                return 1
            bar.advance(len(block) * _COPIES)
    return _COPIES


def _captions(file: Path) -> list[str]:
    lines = read_text(file, error=DataError, fix="save it as UTF-8").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


@reader(
    "precomp",
    "precomputed region features of VSE++, SCAN and VSRN: SPLIT_caps.txt and SPLIT_ims.npy",
    "*_ims.npy",
    claims=lambda path, found: path.is_dir(),
)
def read_precomp(
    path: Path | str, skip_bad_captions: bool = False, centric: Centric | None = None
) -> Collection:
    folder = Path(path)
    names = _splits(folder)
    if not names:
        raise DataError(f"no *_caps.txt in {folder}", "give the folder that holds train_caps.txt")
    arrays: list[np.ndarray] = []
    source_rows: list[np.ndarray] = []
    notes: list[str] = []
    gathered = Gathering(skip_bad_captions)
    before = 0
    for name in names:
        texts = _captions(folder / f"{name}_caps.txt")
        rows = open_regions(folder / f"{name}_ims.npy")
        copies = _copies(rows, f"{name}_ims.npy") if len(rows) == len(texts) else 1
        n_images = len(rows) // copies
        if not n_images or not texts or len(texts) % n_images:
            raise DataError(
                f"{folder / name}: {len(texts):,} captions for {n_images:,} images",
                "every image has equally many captions in this format",
            )
        if copies > 1:
            notes.append(f"{name}_ims.npy holds every image {copies} times; it is read once")
        arrays.append(rows)
        source_rows.append(before + np.arange(0, len(rows), copies))
        before += len(rows)
        width, each = len(str(n_images - 1)), len(texts) // n_images
        for row in range(n_images):
            image = f"{name}-{row:0{width}d}"
            lines = texts[row * each : (row + 1) * each]
            where = f"{folder / name}_caps.txt, lines from {row * each + 1}"
            gathered.add(image, lines, _NAMES.get(name, name), where=where)
    known = known_by_name(folder.resolve().name)  # f30k_precomp
    dataset = folder.resolve().name if known is None else known.name
    source = RegionSource(arrays, folder.name)
    return gathered.collection(dataset, source, centric, notes, np.concatenate(source_rows))
