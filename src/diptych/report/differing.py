"""Where two captions differ, word by word: what a page strikes out and underlines."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import NamedTuple

__all__ = ["Piece", "differing"]

_MOST = 400
"""Words of a caption that are compared; what lies behind is one piece."""


class Piece(NamedTuple):
    """A few words in order.

    Attributes:
        text: they.
        differs: whether the other caption lacks them at this place.
    """

    text: str
    differs: bool


def differing(one: str, other: str) -> tuple[list[Piece], list[Piece]]:
    """The words of two captions in pieces, those that differ marked; blanks between words are not compared."""
    left, right = one.split(), other.split()
    tails = left[_MOST:], right[_MOST:]
    left, right = left[:_MOST], right[:_MOST]
    pieces: tuple[list[Piece], list[Piece]] = ([], [])
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    for kind, begin, end, other_begin, other_end in matcher.get_opcodes():
        for found, words in ((pieces[0], left[begin:end]), (pieces[1], right[other_begin:other_end])):
            if words:
                found.append(Piece(" ".join(words), kind != "equal"))
    for found, tail in zip(pieces, tails, strict=True):
        if tail:
            found.append(Piece(" ".join(tail), tails[0] != tails[1]))
    return pieces
