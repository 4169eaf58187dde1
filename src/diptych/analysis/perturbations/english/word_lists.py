"""Lists of words, written as sentences are."""

from __future__ import annotations


def listed(text: str) -> frozenset[str]:
    """The words of ``text``, which blanks part."""
    return frozenset(text.split())
