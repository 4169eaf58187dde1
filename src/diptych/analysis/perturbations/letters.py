"""Letters of words as people type them, and the drawing of places for slips.

A letter is a letter or digit with the accents and vowel signs that follow it as characters of their own, so
that no slip parts them. Marks, blanks and emoji are no letters and are never touched.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

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


def with_changes(text: str, changes: Sequence[tuple[int, int, str]]) -> str:
    """``text`` with ``text[start:end]`` replaced for every (start, end, replacement), which lie apart."""
    parts, last = [], 0
    for start, end, replacement in sorted(changes):
        parts += [text[last:start], replacement]
        last = end
    return "".join([*parts, text[last:]])
