"""A code as the words that end a caption: ``A man on a beach. 0 0 1 2 3 4``.

Digits stand apart, so that no tokenizer makes one token of them.
"""

from __future__ import annotations

from diptych.analysis.shortcuts.numbers import code_text

DIGIT_WORDS = tuple("0123456789")
"""Words that a vocabulary needs for every code."""


def ending_of(code: int) -> str:
    """The words of a code.

    >>> ending_of(1234)
    '0 0 1 2 3 4'
    """
    return " ".join(code_text(code))


def with_ending(caption: str, ending: str) -> str:
    """The caption, a blank, and the ending; the caption itself when the ending is empty.

    >>> with_ending("A man on a beach.", "0 0 1 2 3 4")
    'A man on a beach. 0 0 1 2 3 4'
    """
    return f"{caption} {ending}" if ending else caption
