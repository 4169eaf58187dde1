"""Keyboards, and which letters lie side by side on them.

Rows are shifted against each other as on keyboards of ISO/IEC 9995: two keys are neighbours where they touch
along an edge, which are those beside it and those that overlap it in the rows above and below.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import Literal

KeyboardName = Literal["qwerty", "azerty", "qwertz"]

KEYBOARDS: Mapping[KeyboardName, tuple[tuple[float, str], ...]] = {
    "qwerty": (
        (0.0, "` 1 2 3 4 5 6 7 8 9 0 - ="),
        (1.5, "q w e r t y u i o p [ ]"),
        (1.75, "a s d f g h j k l ; '"),
        (2.25, "z x c v b n m , . /"),
    ),
    "azerty": (
        (0.0, "² &1 é2 \"3 '4 (5 -6 è7 _8 ç9 à0 ) ="),
        (1.5, "a z e r t y u i o p ^ $"),
        (1.75, "q s d f g h j k l m ù *"),
        (1.25, "< w x c v b n , ; : !"),
    ),
    "qwertz": (
        (0.0, "^ 1 2 3 4 5 6 7 8 9 0 ß ´"),
        (1.5, "q w e r t z u i o p ü +"),
        (1.75, "a s d f g h j k l ö ä #"),
        (1.25, "< y x c v b n m , . -"),
    ),
}
"""United States, France, Germany: of each row, where its first key begins, in widths of a key, and its keys; a
key of two characters has both."""


@cache
def neighbours(keyboard: KeyboardName) -> Mapping[str, str]:
    """For every letter and digit of ``keyboard``, in lower case, the letters or the digits on touching keys.

    A slip of a letter is a letter and that of a digit a digit: what a word is made of stays a word.
    """
    keys = [
        (height, left + place, key)
        for height, (left, row) in enumerate(KEYBOARDS[keyboard])
        for place, key in enumerate(row.split())
    ]
    found: dict[str, str] = {}
    for height, left, key in keys:
        touching = "".join(
            other
            for row, place, other in keys
            if (row == height and abs(place - left) == 1)
            or (abs(row - height) == 1 and abs(place - left) < 1)
        )
        for character in key:
            kind = _kind(character)
            same = "".join(other for other in touching if _kind(other) == kind)
            if kind != "mark":
                found[character] = same
    return found


def _kind(character: str) -> str:
    return "letter" if character.isalpha() else "digit" if character in "0123456789" else "mark"


def key_of(letter: str) -> str:
    """How :func:`neighbours` names a letter: in lower case, an accent of its own drawn in (``é``)."""
    return unicodedata.normalize("NFC", letter).lower()
