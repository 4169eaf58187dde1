"""Comparison of English adjectives."""

from __future__ import annotations

import re
from typing import Literal

_IRREGULAR = {"good": ("better", "best"), "bad": ("worse", "worst"), "far": ("farther", "farthest")}
_SYLLABLES = re.compile(r"[aeiouy]+")
_DOUBLED = re.compile(r"[^aeiouy]*[aeiouy][bdgmnpt]")


def compared(adjective: str, degree: Literal["comparative", "superlative"]) -> str:
    """``larger`` or ``largest`` of ``large``; ``more`` or ``most`` before what takes no ending.

    >>> [compared(word, "comparative") for word in ("large", "big", "tiny", "wooden", "dark red")]
    ['larger', 'bigger', 'tinier', 'more wooden', 'more dark red']
    """
    which = ("comparative", "superlative").index(degree)
    if adjective.lower() in _IRREGULAR:
        return _IRREGULAR[adjective.lower()][which]
    ending = ("er", "est")[which]
    syllables = len(_SYLLABLES.findall(adjective.removesuffix("e"))) or 1
    if (
        " " in adjective
        or "-" in adjective
        or not (syllables == 1 or (syllables == 2 and adjective.endswith(("y", "ow", "le"))))
    ):
        return f"{('more', 'most')[which]} {adjective}"
    if adjective.endswith("y") and adjective[-2:-1] not in ("a", "e", "o"):
        return adjective[:-1] + "i" + ending
    if adjective.endswith("e"):
        return adjective + ending[1:]
    return adjective + (adjective[-1] if _DOUBLED.fullmatch(adjective) else "") + ending
