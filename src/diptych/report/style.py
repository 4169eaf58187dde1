"""Colours, and captions made fit for drawing."""

import unicodedata
from bisect import bisect_right
from collections.abc import Callable

LIGHT = {
    "paper": "#ffffff",
    "soft": "#f5f7f9",
    "line": "#d9dee4",
    "ink": "#1b1f24",
    "muted": "#5b6470",
    "right": "#1a7f37",
    "wrong": "#cf222e",
    "unknown": "#8a929c",
    "blue": "#0072b2",
    "orange": "#d55e00",
    "green": "#007a5c",
    "purple": "#a84a86",
    "olive": "#857000",
}
"""Of the Okabe–Ito set; green, purple and olive darkened until they read on white paper."""

DARK = {
    "paper": "#14171b",
    "soft": "#1c2126",
    "line": "#2f363e",
    "ink": "#e4e8ec",
    "muted": "#9aa4af",
    "right": "#3fb950",
    "wrong": "#f85149",
    "unknown": "#6e7681",
    "blue": "#56b4e9",
    "orange": "#e69f00",
    "green": "#34c9a0",
    "purple": "#e39cc8",
    "olive": "#e6d84a",
}


def clean(text: str) -> str:
    """``text`` on one line, without control characters and with ``�`` for lone surrogates."""
    kept = "".join(
        " " if character.isspace() else "\ufffd" if unicodedata.category(character) == "Cs" else character
        for character in text
        if character.isspace() or unicodedata.category(character) != "Cc"
    )
    return " ".join(kept.split())


def shorten(text: str, limit: int) -> str:
    """Return ``text`` cleaned and, when it is longer than ``limit`` characters, cut with its length stated."""
    # a slice first: a caption of megabytes is not cleaned whole to show its head
    if len(text) <= limit:
        return clean(text)
    return f"{clean(text[:limit])}… ({len(text):,} characters)"


def wrap(text: str, width: float, measure: Callable[[str], float], max_lines: int) -> list[str]:
    """Break ``text`` into at most ``max_lines`` lines no wider than ``width``.

    Lines break at spaces; a word wider than a line is broken inside. What does not fit is replaced
    by an ellipsis at the end of the last line.
    """
    words = clean(text).split(" ")[::-1] if text.strip() else []
    lines: list[str] = []
    line = ""
    while words:
        word = words.pop()
        longer = f"{line} {word}" if line else word
        if measure(longer) <= width:
            line = longer
            continue
        if not line:
            head = _head(word, width, measure)
            line, word = word[:head], word[head:]
        if len(lines) == max_lines - 1 and (word or words):
            return [*lines, _with_ellipsis(line, width, measure)]
        lines.append(line)
        line = ""
        if word:
            words.append(word)
    return [*lines, line] if line else lines


def _head(word: str, width: float, measure: Callable[[str], float]) -> int:
    """Return how many leading characters of ``word`` fit into ``width``; at least 1."""
    return max(1, bisect_right(range(len(word) + 1), width, key=lambda length: measure(word[:length])) - 1)


def _with_ellipsis(line: str, width: float, measure: Callable[[str], float]) -> str:
    while len(line) > 1 and measure(f"{line}…") > width:
        line = line[:-1]
    return f"{line.rstrip()}…"


def label(text: str, limit: int = 22) -> str:
    """Return a name as figures show it: one line of at most ``limit`` characters, its head and its tail.

    Names that are long are often alike at their beginning, so the tail stays.
    """
    one = clean(text if len(text) <= 8 * limit else f"{text[: 4 * limit]} {text[-4 * limit :]}") or "(empty)"
    if len(one) <= limit:
        return one
    tail = (limit - 1) // 3
    return f"{one[: limit - 1 - tail].rstrip()}…{one[len(one) - tail :].lstrip()}"
