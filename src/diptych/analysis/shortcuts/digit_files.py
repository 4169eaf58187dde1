"""Files of digit pictures: MNIST as an .npz archive, or as IDX with its labels beside it.

What a header promises is checked before anything of that size is made, so that a file cannot take more
memory than :data:`MAX_BYTES`.

Source of the IDX format: LeCun, Cortes and Burges, The MNIST Database of Handwritten Digits.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np

from diptych.analysis.shortcuts.digits import DigitImages
from diptych.core.errors import DataError
from diptych.core.reading import file_errors, open_bytes, open_regular, read_arrays

MAX_BYTES = 500_000_000
"""An array of more bytes is refused (MNIST's 60,000 training pictures are 47 million)."""

_PICTURE_KEYS = ("x_train", "images", "train_images", "x", "data")
_LABEL_KEYS = ("y_train", "labels", "train_labels", "y", "target")
_FORMATS = (
    "give MNIST as an .npz file (x_train and y_train) or as train-images-idx3-ubyte[.gz] with "
    "train-labels-idx1-ubyte[.gz] beside it"
)


def read_digit_file(path: Path) -> DigitImages:
    """Pictures of digits from a file, or from a folder that holds MNIST's training files."""
    if path.is_dir():
        found = sorted(path.glob("train-images*idx3-ubyte*"))
        if not found:
            raise DataError(f"{path} holds no train-images-idx3-ubyte[.gz]", _FORMATS)
        path = found[0]
    with file_errors(path, DataError), open_regular(path) as handle:
        start = handle.read(4)
    if start[:2] == b"PK":
        pictures, labels = read_npz(path)
    else:
        pictures, labels = read_idx(path, 3), read_idx(_labels_beside(path), 1)
    return DigitImages.of_labelled(path.name, pictures, labels)


def read_npz(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Pictures and labels of an .npz archive: ``x_train`` and ``y_train``, or ``images`` and ``labels``."""
    arrays = read_arrays(path, error=DataError, fix=_FORMATS)
    pictures, labels = (
        next((key for key in keys if key in arrays), "") for keys in (_PICTURE_KEYS, _LABEL_KEYS)
    )
    if not pictures or not labels:
        raise DataError(
            f"{path} holds the arrays {', '.join(sorted(arrays)) or 'none'}",
            f"pictures are called {' or '.join(_PICTURE_KEYS[:2])}, labels {' or '.join(_LABEL_KEYS[:2])}",
        )
    return arrays[pictures], arrays[labels]


def _check_size(size: int, what: str) -> None:
    if size > MAX_BYTES:
        raise DataError(f"{what} has {size:,} bytes, more than the {MAX_BYTES:,} allowed", _FORMATS)


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """A uint8 array of an IDX file, gzipped or not."""
    with file_errors(path, DataError):
        with open_regular(path) as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
        with open_bytes(path, zipped) as handle:
            header = handle.read(4 + 4 * dimensions)
            if header[:4] != bytes([0, 0, 8, dimensions]) or len(header) < 4 + 4 * dimensions:
                raise DataError(
                    f"{path} is no IDX file of {dimensions} dimensions of bytes: it begins with "
                    f"{header[:4].hex(' ') or 'nothing'}",
                    _FORMATS,
                )
            shape = struct.unpack(f">{dimensions}I", header[4:])
            size = math.prod(shape)
            _check_size(size, str(path))
            content = handle.read(size + 1)
    if len(content) != size:
        have = f"{len(content):,}" if len(content) < size else f"more than {size:,}"
        raise DataError(f"{path} holds {have} bytes, its header says {size:,}", "fetch the file again")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)


def _labels_beside(path: Path) -> Path:
    """The labels' file of a file of pictures, zipped like it or not."""
    if "images" not in path.name or "idx3" not in path.name:
        raise DataError(f"{path} is neither an .npz archive nor named as IDX pictures", _FORMATS)
    name = path.name.replace("images", "labels").replace("idx3", "idx1")
    plain = name.removesuffix(".gz")
    for candidate in (name, plain, f"{plain}.gz"):
        if (path.parent / candidate).is_file():
            return path.parent / candidate
    raise DataError(f"the labels of {path} are not beside it: {plain} or {plain}.gz expected", _FORMATS)
