"""Words of a caption: runs of letters and digits, and where each stands.

A word may hold apostrophes and hyphens between letters (``don't``, ``medium-sized``); what a vocabulary reads
as words (:mod:`diptych.data.vocabulary`) is never cut apart here. Vowel signs and accents that are characters
of their own belong to the letter before them, so words of every script are whole.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache
from typing import NamedTuple


class Word(NamedTuple):
    """A word, or a mark of punctuation, and its place: ``text[start:end]``."""

    text: str
    start: int
    end: int


def words_of(text: str, *, marks: bool = False) -> list[Word]:
    """The words of ``text`` in order."""
    return [
        Word(found.group(), found.start(), found.end())
        for found in _pattern().finditer(text)
        if marks or is_word(found.group())
    ]


def is_word(token: str) -> bool:
    """Whether one of :func:`words_of` is a word rather than a mark."""
    return token[0] == "_" or token[0].isalnum()


@cache
def _pattern() -> re.Pattern[str]:
    """A word or one other character. Python's ``\\w`` leaves out combining marks; they are added."""
    ranges: list[list[int]] = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code))[0] == "M":
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    combining = "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)
    letters = rf"\w[\w{combining}]*"
    return re.compile(rf"{letters}(?:['’\-]{letters})*|[^\w\s]")
