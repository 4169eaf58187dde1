"""Colours and markers for figures with more than two lines, and small panels that stay readable on a phone.

A line never differs from another in colour alone: each has a marker of its own, which the legend shows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from diptych.report import palette
from diptych.report.drawing import BLUE, INK, ORANGE, Drawing, draw
from diptych.report.words import clean

LIGHT = {**palette.LIGHT, "green": "#007a5c", "purple": "#a84a86", "olive": "#857000"}
"""The page's colours with three more of the Okabe–Ito set, darkened until they read on white paper."""

DARK = {**palette.DARK, "green": "#34c9a0", "purple": "#e39cc8", "olive": "#e6d84a"}

PAPER = "#fdfefc"
"""A colour nothing else has; it becomes the paper behind the figure."""


@dataclass(frozen=True)
class Series:
    """How one line is drawn.

    Attributes:
        name: of its colour on the page.
        marker: as Matplotlib calls it.
        glyph: the same in words' legends.
        dash: of the line.
    """

    name: str
    marker: str
    glyph: str
    dash: str = "-"

    @property
    def colour(self) -> str:
        """On light paper."""
        return LIGHT[self.name] if self.name != "ink" else INK


SERIES = (
    Series("blue", "o", "●"),
    Series("orange", "s", "■"),
    Series("green", "^", "▲"),
    Series("purple", "D", "◆"),
    Series("olive", "v", "▼"),
    Series("ink", "x", "✕"),
)

PURCHASE = Series("blue", "o", "●")
OTHER = Series("orange", "s", "■", "--")

assert PURCHASE.colour == BLUE
assert OTHER.colour == ORANGE


def series(place: int) -> Series:
    """The way of the ``place``-th line; from the seventh on the same again, dashed."""
    one = SERIES[place % len(SERIES)]
    return one if place < len(SERIES) else Series(one.name, one.marker, f"{one.glyph}╌", "--")


def label(text: str, limit: int = 22) -> str:
    """A name from a log as figures show it: one line of at most ``limit`` characters, its head and its tail.

    Names that are long are often alike at their beginning, so the tail stays.
    """
    one = clean(text if len(text) <= 8 * limit else f"{text[: 4 * limit]} {text[-4 * limit :]}") or "(empty)"
    if len(one) <= limit:
        return one
    tail = (limit - 1) // 3
    return f"{one[: limit - 1 - tail].rstrip()}…{one[len(one) - tail :].lstrip()}"


@contextmanager
def panel(name: str, summary: str = "", size: tuple[float, float] = (4.4, 2.9)) -> Iterator[Drawing]:
    """:func:`diptych.report.drawing.draw` with all of :data:`LIGHT` turned into colours of the page.

    Letters that Matplotlib's font lacks are no matter: the reader's browser draws them.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        with draw(name, summary, size) as drawing:
            yield drawing
    for colour in ("green", "purple", "olive"):
        drawing.svg = drawing.svg.replace(LIGHT[colour], f"var(--{colour}, {LIGHT[colour]})")
    drawing.svg = drawing.svg.replace(PAPER, f"var(--paper, {palette.LIGHT['paper']})")
