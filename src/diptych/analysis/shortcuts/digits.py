"""Images of digits, and where they come from: a file, scikit-learn, or drawn here.

Files are MNIST as an .npz archive, or as IDX with its labels (LeCun, Cortes and Burges, The MNIST Database of
Handwritten Digits). What a header promises is checked before anything of that size is allocated.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from diptych.core.errors import DataError, UsageError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint_arrays
from diptych.core.reading import file_errors, open_bytes, open_regular, read_arrays

MAX_BYTES = 500_000_000  # an array of more bytes is refused (MNIST's 60,000 training images are 47 million)
_PICTURE_KEYS = ("x_train", "images", "train_images", "x", "data")
_LABEL_KEYS = ("y_train", "labels", "train_labels", "y", "target")
_FORMATS = (
    "give MNIST as an .npz file (x_train and y_train) or as train-images-idx3-ubyte[.gz] with "
    "train-labels-idx1-ubyte[.gz] next to it"
)

_LONGEST_PATH = 4096
_CACHED_BYTES = 2**26
DRAWN_OF_EACH = 40  # drawn images of each digit


@dataclass(frozen=True, eq=False)
class DigitImages:
    """Grey images of the ten digits, several of each: ``classes[digit]`` is (n, side, side) uint8, light on dark."""

    name: str
    classes: list[np.ndarray]

    @classmethod
    def of_labelled(cls, name: str, pictures: np.ndarray, labels: np.ndarray) -> DigitImages:
        """Sort (n, side, side) uint8 images by the digit that each of them shows; each at least once."""
        shape, what = pictures.shape, ""
        if pictures.dtype != np.uint8 or len(shape) != 3 or shape[1] != shape[2] or not shape[1]:
            what = f" holds images as {pictures.dtype} of shape {shape}"
            fix = "expected uint8 of shape (images, side, side)"
        elif labels.shape != shape[:1] or labels.dtype.kind not in "iu":
            what = f" holds {len(pictures):,} images and labels as {labels.dtype} of shape {labels.shape}"
            fix = "expected one whole number for each image"
        elif len(wrong := np.flatnonzero((labels < 0) | (labels > 9))):
            what = f": image {wrong[0]} has the label {labels[wrong[0]]}, which is no digit 0–9"
            fix = "leave letters out, or give another file"
        elif len(missing := np.setdiff1d(np.arange(10), labels)):
            what = f" holds no image of the digit {missing[0]}"
            fix = "give a file with all of 0–9, or digits = 'sklearn' or 'drawn'"
        if what:
            raise DataError(f"{name}{what}", fix)
        return cls(name, [pictures[labels == digit] for digit in range(10)])

    @cached_property
    def counts(self) -> np.ndarray:
        return np.array([len(pictures) for pictures in self.classes], dtype=np.int64)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint_arrays({str(digit): pictures for digit, pictures in enumerate(self.classes)})

    def at_size(self, size: int) -> SizedDigits:
        return SizedDigits(self, size)


class SizedDigits:
    """Digits ``size`` pixels wide as they are pasted: of that size as they are, others resized when first used."""

    def __init__(self, images: DigitImages, size: int) -> None:
        self.images = images
        self.size = size
        # The most used images of large digits are kept, within a fixed amount of memory.
        self.grey = lru_cache(maxsize=max(16, _CACHED_BYTES // size**2))(self._grey)

    def _grey(self, digit: int, picture: int) -> np.ndarray:
        from PIL import Image as pillow

        grey: np.ndarray = self.images.classes[digit][picture]
        if len(grey) == self.size:
            return grey
        small = pillow.fromarray(grey)
        return np.asarray(small.resize((self.size, self.size), pillow.Resampling.BICUBIC))


def load_digits(source: str) -> DigitImages:
    """Load images of digits: ``auto``, ``sklearn``, ``drawn`` or the path of a file."""
    if source == "auto":
        source = "sklearn" if find_spec("sklearn") is not None else "drawn"
    if source == "drawn":
        return drawn_digits()
    if source == "sklearn":
        # 1,797 images of 8 × 8 pixels in 17 shades, made 256; Alpaydin and Kaynak, Optical Recognition of
        # Handwritten Digits, UCI, 1998 (its test set)
        bundled = require("sklearn.datasets", "targets", "images of digits from scikit-learn").load_digits()
        pictures = np.rint(bundled.images * (255 / 16)).astype(np.uint8)
        return DigitImages.of_labelled("scikit-learn's digits", pictures, bundled.target)
    if not source or len(source) > _LONGEST_PATH or not Path(source).exists():
        raise UsageError(
            f"digits {source!r}: there is no such file, and it is none of auto, sklearn, drawn",
            "give the path of an MNIST file (.npz or IDX), or one of these names",
        )
    return read_digit_file(Path(source))


def read_digit_file(path: Path) -> DigitImages:
    if path.is_dir():
        found = sorted(path.glob("train-images*idx3-ubyte*"))
        if not found:
            raise DataError(f"{path} holds no train-images-idx3-ubyte[.gz]", _FORMATS)
        path = found[0]
    with file_errors(path, DataError), open_regular(path) as handle:
        start = handle.read(4)
    if start[:2] == b"PK":
        arrays = read_arrays(path, error=DataError, fix=_FORMATS)
        pictures, labels = (
            next((key for key in keys if key in arrays), "") for keys in (_PICTURE_KEYS, _LABEL_KEYS)
        )
        if not (pictures and labels):
            fix = f"images are called {' or '.join(_PICTURE_KEYS[:2])}, labels {' or '.join(_LABEL_KEYS[:2])}"
            raise DataError(f"{path} holds the arrays {', '.join(sorted(arrays)) or 'none'}", fix)
        return DigitImages.of_labelled(path.name, arrays[pictures], arrays[labels])
    return DigitImages.of_labelled(path.name, read_idx(path, 3), read_idx(_labels_of(path), 1))


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    with file_errors(path, DataError):
        with open_regular(path) as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
        with open_bytes(path, zipped) as handle:
            header = handle.read(4 + 4 * dimensions)
            if header[:4] != bytes([0, 0, 8, dimensions]) or len(header) < 4 + 4 * dimensions:
                begins = header[:4].hex(" ") or "nothing"
                what = f"{path} is no IDX file of {dimensions} dimensions of bytes: it begins with {begins}"
                raise DataError(what, _FORMATS)
            shape = struct.unpack(f">{dimensions}I", header[4:])
            size = math.prod(shape)
            if size > MAX_BYTES:
                raise DataError(f"{path} has {size:,} bytes, more than the {MAX_BYTES:,} allowed", _FORMATS)
            content = handle.read(size + 1)
    if len(content) != size:
        have = f"{len(content):,}" if len(content) < size else f"more than {size:,}"
        raise DataError(f"{path} holds {have} bytes, its header says {size:,}", "fetch the file again")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)


def _labels_of(path: Path) -> Path:
    if "images" not in path.name or "idx3" not in path.name:
        raise DataError(f"{path} is neither an .npz archive nor named as IDX images", _FORMATS)
    name = path.name.replace("images", "labels").replace("idx3", "idx1")
    plain = name.removesuffix(".gz")
    for candidate in (name, plain, f"{plain}.gz"):
        if (path.parent / candidate).is_file():
            return path.parent / candidate
    raise DataError(f"the labels of {path} are missing: {plain} or {plain}.gz expected", _FORMATS)


@cache
def drawn_digits() -> DigitImages:
    """Return forty images of each digit, 28 × 28 pixels, light on dark, drawn for this package."""
    return DigitImages("drawn digits", list(read_arrays(Path(__file__).with_name("drawn.npz"))["pictures"]))
