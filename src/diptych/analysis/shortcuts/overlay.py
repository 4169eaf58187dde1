"""A code as digits over a picture.

Six digits stand along the top, the first at the left edge, each ``width // 6`` pixels right of the one
before: at 0, 37, 74, 111, 148, 185 in a picture 224 pixels wide. They are opaque, grey as RGB, and begin
at the first row of pixels; a second code has the next ``digit_size`` rows, and so on.

Source: thesis 4.D.4; the places are those of the published code.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from diptych.analysis.shortcuts.digits import SizedDigits
from diptych.analysis.shortcuts.options import N_DIGITS
from diptych.core.errors import ImageError
from diptych.core.fingerprint import fingerprint_arrays
from diptych.data.overlay import Patch


def digit_places(width: int, rows: int, digit_size: int) -> list[tuple[int, int]]:
    """Left and top of each digit, row by row.

    >>> digit_places(224, 1, 28)
    [(0, 0), (37, 0), (74, 0), (111, 0), (148, 0), (185, 0)]
    """
    step = width // N_DIGITS
    return [(place * step, row * digit_size) for row in range(rows) for place in range(N_DIGITS)]


def check_fit(width: int, height: int, rows: int, digit_size: int) -> None:
    """Whether ``rows`` rows of digits fit into a picture without covering each other."""
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
    """Codes as digits along the top of a picture, one row for each code.

    Attributes:
        digits: (rows, 6) int64, what to show.
        pictures: (rows, 6) int64, which picture of each digit shows it.
        drawn: the pictures.
    """

    digits: np.ndarray
    pictures: np.ndarray
    drawn: SizedDigits

    @cached_property
    def key(self) -> str:
        """A name by content: pixels and rows."""
        grey = np.stack([self._grey(place) for place in range(self.digits.size)])
        return fingerprint_arrays({"digits": grey.reshape(*self.digits.shape, *grey.shape[1:])})

    def patches(self, width: int, height: int) -> list[Patch]:
        """One patch for each digit."""
        rows, size = len(self.digits), self.drawn.size
        check_fit(width, height, rows, size)
        return [
            Patch(left, top, np.broadcast_to(self._grey(place)[:, :, None], (size, size, 3)))
            for place, (left, top) in enumerate(digit_places(width, rows, size))
        ]

    def _grey(self, place: int) -> np.ndarray:
        row, column = divmod(place, N_DIGITS)
        return self.drawn.grey(int(self.digits[row, column]), int(self.pictures[row, column]))
