"""Pictures of digits, and where they come from: a file, scikit-learn, or our own pen."""

from __future__ import annotations

from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from diptych.core.errors import DataError, UsageError
from diptych.core.extras import require
from diptych.core.fingerprint import fingerprint_arrays

_LONGEST_PATH = 4096

_CACHED_BYTES = 2**26


class DigitImages:
    """Grey pictures of the ten digits, several of each.

    Args:
        classes: for each digit 0–9 its (n, side, side) uint8 pictures, light on dark.
    """

    def __init__(self, name: str, classes: list[np.ndarray]) -> None:
        if len(classes) != 10:
            raise DataError(f"{name} holds {len(classes)} classes of digits, 10 expected")
        for digit, pictures in enumerate(classes):
            if not len(pictures):
                raise DataError(
                    f"{name} holds no picture of the digit {digit}",
                    "give a file with all of 0–9, or digits = 'sklearn' or 'drawn'",
                )
            if pictures.dtype != np.uint8 or pictures.ndim != 3 or pictures.shape[1] != pictures.shape[2]:
                raise DataError(
                    f"{name}: pictures of the digit {digit} are {pictures.dtype} of shape {pictures.shape}",
                    "expected uint8 of shape (pictures, side, side)",
                )
        self.name = name
        self.classes = classes

    @classmethod
    def of_labelled(cls, name: str, pictures: np.ndarray, labels: np.ndarray) -> DigitImages:
        """Pictures with the digit that each of them shows.

        Args:
            pictures: (n, side, side) uint8.
            labels: (n,) whole numbers 0–9.
        """
        if pictures.ndim != 3 or pictures.dtype != np.uint8 or not all(pictures.shape[1:]):
            raise DataError(
                f"{name} holds pictures as {pictures.dtype} of shape {pictures.shape}",
                "expected uint8 of shape (pictures, side, side)",
            )
        if labels.shape != (len(pictures),) or labels.dtype.kind not in "iu":
            raise DataError(
                f"{name} holds {len(pictures):,} pictures and labels as {labels.dtype} of shape {labels.shape}",
                "expected one whole number for each picture",
            )
        wrong = np.flatnonzero((labels < 0) | (labels > 9))
        if len(wrong):
            raise DataError(
                f"{name}: picture {wrong[0]} has the label {labels[wrong[0]]}, which is no digit 0–9",
                "leave letters out, or give another file",
            )
        return cls(name, [pictures[labels == digit] for digit in range(10)])

    @cached_property
    def counts(self) -> np.ndarray:
        """(10,) int64: pictures of each digit."""
        return np.array([len(pictures) for pictures in self.classes], dtype=np.int64)

    @cached_property
    def fingerprint(self) -> str:
        """Name by content."""
        return fingerprint_arrays({str(digit): pictures for digit, pictures in enumerate(self.classes)})

    def at_size(self, size: int) -> SizedDigits:
        """The same pictures, ``size`` pixels wide and high."""
        return SizedDigits(self, size)


class SizedDigits:
    """Digits as they are pasted: pictures of that size as they are, others resized when first asked for.

    Args:
        size: side in pixels.
    """

    def __init__(self, images: DigitImages, size: int) -> None:
        self.images = images
        self.size = size
        # The most used pictures of large digits are kept, within a fixed amount of memory.
        self._resized = lru_cache(maxsize=max(16, _CACHED_BYTES // size**2))(self._resize)

    def grey(self, digit: int, picture: int) -> np.ndarray:
        """(size, size) uint8: that picture of that digit."""
        if self.images.classes[digit].shape[1] == self.size:
            same: np.ndarray = self.images.classes[digit][picture]
            return same
        return self._resized(digit, picture)

    def _resize(self, digit: int, picture: int) -> np.ndarray:
        from PIL import Image as pillow

        small = pillow.fromarray(self.images.classes[digit][picture])
        return np.asarray(small.resize((self.size, self.size), pillow.Resampling.BICUBIC))


def load_digits(source: str) -> DigitImages:
    """Pictures of digits."""
    if source == "auto":
        source = "sklearn" if find_spec("sklearn") is not None else "drawn"
    if source == "drawn":
        from diptych.analysis.shortcuts.drawn_digits import drawn_digits

        return drawn_digits()
    if source == "sklearn":
        return _bundled_digits()
    from diptych.analysis.shortcuts.digit_files import read_digit_file

    if not source or len(source) > _LONGEST_PATH or not Path(source).exists():
        raise UsageError(
            f"digits {source!r}: there is no such file, and it is none of auto, sklearn, drawn",
            "give the path of an MNIST file (.npz or IDX), or one of these names",
        )
    return read_digit_file(Path(source))


def _bundled_digits() -> DigitImages:
    """1,797 pictures of 8 × 8 pixels in 17 shades, made 256.

    Source: Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI, 1998 (its test set).
    """
    bundled = require("sklearn.datasets", "targets", "pictures of digits from scikit-learn").load_digits()
    pictures = np.rint(bundled.images * (255 / 16)).astype(np.uint8)
    return DigitImages.of_labelled("scikit-learn's digits", pictures, bundled.target)
