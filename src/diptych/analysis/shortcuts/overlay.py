"""Options of shortcuts, and codes as digits over an image."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from diptych.analysis.shortcuts.digits import SizedDigits
from diptych.core.errors import ImageError
from diptych.core.fingerprint import fingerprint_arrays
from diptych.core.options import Options
from diptych.data.images import Patch

N_DIGITS = 6
"""Digits of every code; shorter numbers begin with zeros."""

MOST_BITS = 13


class ShortcutOptions(Options):
    """Synthetic shortcuts: numbers laid over pictures as digits and appended to captions.

    Setups: ``none``: no shortcuts, but a vocabulary that has digits; ``unique``: every image and its captions share a
    number that no other has; ``captions``, ``images``: the same on that side alone; ``bits``: a number below 2^bits,
    drawn at every access in training, the image's number modulo 2^bits in evaluation; ``per-caption``: every caption
    has a number of its own, and its picture carries those of ``all`` its captions, one row of digits each, or of
    ``one`` of them, drawn once per image.

    With ``compat="published"`` unique training numbers are, where they are shuffled, (id + an offset drawn every epoch)
    modulo the number of training images, which collide; and id 0 has 8 random bits in training.

    Source: Hendriksen's thesis, chapter 4 (Bleeker et al., TMLR 2024), sections 4.3 and 4.D.4.
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
        """Whether pictures carry digits."""
        return self.setup in ("unique", "images", "bits", "per-caption")

    @property
    def on_captions(self) -> bool:
        """Whether captions end with digits."""
        return self.setup in ("unique", "captions", "bits", "per-caption")

    @model_validator(mode="after")
    def _consistent(self) -> ShortcutOptions:
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


def digit_places(width: int, rows: int, digit_size: int) -> list[tuple[int, int]]:
    """Left and top of each digit, row by row.

    >>> digit_places(224, 1, 28)
    [(0, 0), (37, 0), (74, 0), (111, 0), (148, 0), (185, 0)]
    """
    step = width // N_DIGITS
    return [(place * step, row * digit_size) for row in range(rows) for place in range(N_DIGITS)]


def check_fit(width: int, height: int, rows: int, digit_size: int) -> None:
    """Refuse a picture that ``rows`` rows of digits do not fit into without covering each other."""
    if N_DIGITS * digit_size > width or rows * digit_size > height:
        room = min(width // N_DIGITS, height // rows)
        smaller = f"set shortcuts.digit_size to at most {room}, or " if room >= 5 else ""
        raise ImageError(
            f"{rows} {'row' if rows == 1 else 'rows'} of {N_DIGITS} digits of {digit_size} pixels take "
            f"{N_DIGITS * digit_size} × {rows * digit_size} pixels, the picture has {width} × {height}",
            f"{smaller}prepare larger pictures (model.image.preprocessing.size)",
        )


@dataclass(frozen=True, eq=False)
class DigitOverlay:
    """Codes as digits along the top of a picture, one row for each code."""

    digits: np.ndarray  # (rows, 6) int64, what to show
    pictures: np.ndarray  # (rows, 6) int64, which picture of each digit shows it
    drawn: SizedDigits

    def _greys(self) -> list[np.ndarray]:
        shown = zip(self.digits.ravel().tolist(), self.pictures.ravel().tolist(), strict=True)
        return [self.drawn.grey(digit, picture) for digit, picture in shown]

    @cached_property
    def key(self) -> str:
        """A name by content: pixels and rows."""
        grey = np.stack(self._greys())
        return fingerprint_arrays({"digits": grey.reshape(*self.digits.shape, *grey.shape[1:])})

    def patches(self, width: int, height: int) -> list[Patch]:
        """Return one patch for each digit."""
        rows, size = len(self.digits), self.drawn.size
        check_fit(width, height, rows, size)
        return [
            Patch(left, top, np.broadcast_to(grey[:, :, None], (size, size, 3)))
            for (left, top), grey in zip(digit_places(width, rows, size), self._greys(), strict=True)
        ]
