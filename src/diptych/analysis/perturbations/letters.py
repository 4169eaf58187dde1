"""Letters of words as people type them, and the drawing of places for slips.

A letter is a letter or digit with the accents and vowel signs that follow it as characters of their own, so
that no slip parts them. Marks, blanks and emoji are no letters and are never touched.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal, NamedTuple, TypeVar

from diptych.core.draws import Draws
from diptych.data.language import Word

T = TypeVar("T")


class Letter(NamedTuple):
    """A letter or digit and what belongs to it: ``caption[start:end]``."""

    text: str
    start: int
    end: int


def letters_of(word: Word) -> list[Letter]:
    """The letters and digits of a word of a caption, in order, with their places in the caption."""
    if word.text.isascii():
        return [
            Letter(character, place, place + 1)
            for place, character in enumerate(word.text, word.start)
            if character.isalnum()
        ]
    letters: list[Letter] = []
    for place, character in enumerate(word.text, word.start):
        if letters and letters[-1].end == place and _joins(character):
            last = letters.pop()
            letters.append(Letter(last.text + character, last.start, place + 1))
        elif character.isalnum():
            letters.append(Letter(character, place, place + 1))
    return letters


def _joins(character: str) -> bool:
    """Whether it belongs to the letter before it: a combining mark, or a later part of a Hangul syllable."""
    return (
        unicodedata.category(character)[0] == "M"
        or "\u1160" <= character <= "\u11ff"
        or "\ud7b0" <= character <= "\ud7ff"
    )


def in_case_of(letter: str, model: str) -> str:
    """``letter`` as large or small as ``model``; as it is where one of them has no case.

    A letter whose other case is two (``ß``) stays too, so that one letter stays one.
    """
    if model.isupper():
        changed = letter.upper()
    elif model.islower():
        changed = letter.lower()
    else:
        return letter
    return changed if len(changed) == len(letter) else letter


def drawn_apart(places: Sequence[tuple[int, T]], draws: Draws, most: int) -> list[T]:
    """At most ``most`` of ``places``, each in another word: the first drawn among all, the next among the rest."""
    found: list[T] = []
    while places and len(found) < most:
        word, place = draws.choice(places)
        found.append(place)
        if len(found) < most:
            places = [other for other in places if other[0] != word]
    return found


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
