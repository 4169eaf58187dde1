"""Where every code comes from: the number of an image or a caption is its row in the whole collection.

The whole collection is all splits together, in the order in which its reader gives them, so that an
image of the training split and one of the test split never have the same number. A code is a number
below 10^6, written with six digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from diptych.analysis.shortcuts.options import N_DIGITS
from diptych.core.errors import MismatchError, UsageError
from diptych.data.collection import Collection

N_CODES = 10**N_DIGITS
"""Different codes there are."""


def digits_of(codes: np.ndarray | int) -> np.ndarray:
    """(…, 6) int64 digits of codes, leading zeros included.

    >>> digits_of(1234).tolist()
    [0, 0, 1, 2, 3, 4]
    """
    powers = 10 ** np.arange(N_DIGITS - 1, -1, -1, dtype=np.int64)
    digits: np.ndarray = np.asarray(codes, dtype=np.int64)[..., None] // powers % 10
    return digits


def code_text(code: int) -> str:
    """A code as it is written in records and reports.

    >>> code_text(1234)
    '001234'
    """
    return f"{code:0{N_DIGITS}d}"


def check_room(tuples: int, what: str) -> None:
    """Whether every tuple can have a code of its own."""
    if tuples > N_CODES:
        raise UsageError(
            f"{tuples:,} {what} need a code each, and there are {N_CODES:,} codes of {N_DIGITS} digits",
            "take a part of the collection, or setup 'bits', whose codes are shared",
        )


class Numbers:
    """The numbers of a whole collection's images and captions."""

    def __init__(self, whole: Collection) -> None:
        self._whole = whole

    def images(self, part: Collection) -> np.ndarray:
        """(n_images,) int64: the number of each image of ``part``."""
        return self._rows(self._image_rows, part.image_ids, "image")

    def captions(self, part: Collection) -> np.ndarray:
        """(n_captions,) int64: the number of each caption of ``part``."""
        return self._rows(self._caption_rows, part.caption_ids, "caption")

    @cached_property
    def _image_rows(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self._whole.image_ids)}

    @cached_property
    def _caption_rows(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self._whole.caption_ids)}

    def _rows(self, known: dict[str, int], ids: Sequence[str], what: str) -> np.ndarray:
        try:
            return np.fromiter((known[name] for name in ids), dtype=np.int64, count=len(ids))
        except KeyError as error:
            raise MismatchError(
                f"{what} {error.args[0]!r} is not in the collection of {len(known):,} {what}s that codes "
                f"are numbered from ({self._whole.name})",
                "number them from the whole collection that this is a part of",
            ) from None
