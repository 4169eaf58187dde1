"""A text and what has to stand at its end, within what an encoder reads."""

from __future__ import annotations

import re
from collections.abc import Callable

from diptych.core.errors import CaptionError

__all__ = ["shortened"]

_WORD = re.compile(r"\S+")


def shortened(text: str, ending: str, fits: Callable[[str], bool]) -> str:
    """``text + " " + ending`` with as many of the text's first words as fit.

    A first word that does not fit whole (a script without spaces) is cut inside.

    Args:
        text: what may be cut, from its end.
        ending: what has to stay whole.
        fits: whether all of a text is read; a longer one does not fit where a shorter one does not.

    Raises:
        CaptionError: the ending does not fit by itself.

    >>> shortened("two dogs run", "0 1", lambda text: len(text) <= 12)
    'two dogs 0 1'
    """

    def joined(letters: int) -> str:
        kept = text[:letters]
        return f"{kept} {ending}" if kept.strip() else ending

    if not fits(ending):
        raise CaptionError(
            f"the ending {ending!r} is longer than all that the encoder reads of a text",
            "choose a shorter ending, or an encoder of longer texts",
        )
    ends = [0, *(word.end() for word in _WORD.finditer(text))]
    letters = ends[_last(len(ends), lambda number: fits(joined(ends[number])))]
    if letters == 0 and len(ends) > 1:
        letters = _last(ends[1], lambda number: fits(joined(number)))
    return joined(letters)


def _last(count: int, holds: Callable[[int], bool]) -> int:
    """The last of the numbers below ``count`` that holds, where 0 does and every one before the last does."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
