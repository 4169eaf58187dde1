"""Options of shortcuts; which number an image gets, its code, and how it is written over images and into captions."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from diptych.analysis.shortcuts.digits import SizedDigits
from diptych.core.draws import draw_below
from diptych.core.errors import ImageError
from diptych.core.fingerprint import fingerprint_arrays
from diptych.core.options import Options
from diptych.data.images import Patch

N_DIGITS = 6  # digits of every code; shorter numbers begin with zeros
MOST_BITS = 13


class ShortcutOptions(Options):
    """Synthetic shortcuts: numbers laid over images as digits and appended to captions.

    docs/explanation/shortcuts.md describes the setups and ``compat="published"``. Source: Hendriksen's thesis,
    chapter 4 (Bleeker et al., TMLR 2024), sections 4.3 and 4.D.4.
    """

    setup: Literal["none", "unique", "captions", "images", "bits", "per-caption"] = Field(
        "unique", description="Which side carries which numbers."
    )
    bits: int | None = Field(None, ge=0, le=MOST_BITS, description=f"Of setup bits: 0 to {MOST_BITS}.")
    carries: Literal["all", "one"] = Field(
        "all", description="Of setup per-caption: images carry the numbers of all their captions, or one."
    )
    shuffled: bool = Field(False, description="Deal unique numbers anew every epoch.")
    digits: str = Field(
        "auto", description="Images of digits: an MNIST file (.npz or IDX), sklearn, drawn or auto."
    )
    digit_size: int = Field(28, ge=5, le=512, description="Side of a digit, in pixels.")
    in_targets: bool = Field(False, description="Latent targets are those of captions with their numbers.")
    compat: Literal["none", "published"] = Field("none", description="published: faults included.")

    @property
    def on_images(self) -> bool:
        return self.setup in ("unique", "images", "bits", "per-caption")

    @property
    def on_captions(self) -> bool:
        return self.setup in ("unique", "captions", "bits", "per-caption")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.bits is not None) != (self.setup == "bits"):
            needs = f"bits, 0 to {MOST_BITS}" if self.bits is None else "no bits: they belong to setup 'bits'"
            raise ValueError(f"setup {self.setup!r} needs {needs}")
        if self.carries != "all" and self.setup != "per-caption":
            raise ValueError(f"setup {self.setup!r}: carries = {self.carries!r} belongs to 'per-caption'")
        if self.shuffled and self.setup in ("none", "bits"):
            raise ValueError(f"setup {self.setup!r} has no unique numbers that could be shuffled")
        if self.compat == "published" and self.setup == "per-caption":
            raise ValueError("setup 'per-caption' was never published: leave compat out")
        if self.in_targets and not self.on_captions:
            raise ValueError(f"setup {self.setup!r} gives captions no numbers that targets could have")
        return self


N_CODES = 10**N_DIGITS  # different codes there are
DIGIT_WORDS = tuple("0123456789")  # words that a vocabulary needs for every code

PUBLISHED_BITS = 8  # of the random code that the published code gives to the image of number 0 in training

# What keeps draws of one seed apart from each other and from everybody else's.
_BITS, _OFFSET = (int.from_bytes(word) for word in (b"bits", b"offset"))


def digits_of(codes: np.ndarray | int) -> np.ndarray:
    """Return (…, 6) int64 digits of codes, leading zeros included: 0, 0, 1, 2, 3, 4 of 1234."""
    powers = 10 ** np.arange(N_DIGITS - 1, -1, -1, dtype=np.int64)
    return np.asarray(np.asarray(codes, dtype=np.int64)[..., None] // powers % 10)


def code_text(code: int) -> str:
    return f"{code:0{N_DIGITS}d}"


def ending_of(code: int) -> str:
    return " ".join(code_text(code))


def with_ending(caption: str, ending: str) -> str:
    return f"{caption} {ending}" if ending else caption


def random_bits(bits: int, seed: int, epoch: int, images: np.ndarray, captions: np.ndarray) -> np.ndarray:
    """Draw (n,) codes, uniform in [0, 2^bits - 1], one per access of an image with its first caption (numbers)."""
    return draw_below(2**bits, seed, _BITS, epoch, images, captions)


def published_codes(
    images: np.ndarray, captions: np.ndarray, seed: int, epoch: int, n_training: int | None
) -> np.ndarray:
    """Return (n,) unique codes in training as the published code makes them: shifted modulo the training images where
    shuffled, so that some collide, and 8 random bits for the image of number 0, taken for one without a number."""
    codes = images
    if n_training is not None:
        offset = int(np.random.default_rng([seed, _OFFSET, epoch]).integers(n_training))
        codes = (images + offset) % n_training
    return np.where(images == 0, random_bits(PUBLISHED_BITS, seed, epoch, images, captions), codes)


def digit_places(width: int, rows: int, digit_size: int) -> list[tuple[int, int]]:
    """Return left and top of each digit, row by row.

    >>> digit_places(224, 1, 28)
    [(0, 0), (37, 0), (74, 0), (111, 0), (148, 0), (185, 0)]
    """
    step = width // N_DIGITS
    return [(place * step, row * digit_size) for row in range(rows) for place in range(N_DIGITS)]


def check_fit(width: int, height: int, rows: int, digit_size: int) -> None:
    if N_DIGITS * digit_size > width or rows * digit_size > height:
        room = min(width // N_DIGITS, height // rows)
        smaller = f"set shortcuts.digit_size to at most {room}, or " if room >= 5 else ""
        raise ImageError(
            f"{rows} {'row' if rows == 1 else 'rows'} of {N_DIGITS} digits of {digit_size} pixels take "
            f"{N_DIGITS * digit_size} × {rows * digit_size} pixels, the image has {width} × {height}",
            f"{smaller}prepare larger images (model.image.preprocessing.size)",
        )


@dataclass(frozen=True, eq=False)
class DigitOverlay:
    """Codes as digits along the top of an image, one row for each code."""

    digits: np.ndarray  # (rows, 6) int64, what to show
    pictures: np.ndarray  # (rows, 6) int64, which image of each digit shows it
    drawn: SizedDigits

    def _greys(self) -> list[np.ndarray]:
        shown = zip(self.digits.ravel().tolist(), self.pictures.ravel().tolist(), strict=True)
        return [self.drawn.grey(digit, picture) for digit, picture in shown]

    @cached_property
    def key(self) -> str:
        grey = np.stack(self._greys())
        return fingerprint_arrays({"digits": grey.reshape(*self.digits.shape, *grey.shape[1:])})

    def patches(self, width: int, height: int) -> list[Patch]:
        rows, size = len(self.digits), self.drawn.size
        check_fit(width, height, rows, size)
        return [
            Patch(left, top, np.broadcast_to(grey[:, :, None], (size, size, 3)))
            for (left, top), grey in zip(digit_places(width, rows, size), self._greys(), strict=True)
        ]
