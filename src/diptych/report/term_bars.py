"""Weighted terms as bars on a sheet: label, bar, number, one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from diptych.report.palette import LIGHT
from diptych.report.paper import LINE, Sheet, bundled_font
from diptych.report.words import wrap

if TYPE_CHECKING:
    from PIL.Image import Image

_STEP = LINE + 2
_NUMBER = 52  # pixels for "12.34"


@dataclass(frozen=True)
class Bar:
    """One line of a bar chart.

    Attributes:
        label: before the bar.
        value: its length.
        colour: as ``#rrggbb``.
        number: after the bar.
        bold: whether the label is.
    """

    label: str
    value: float
    colour: str
    number: str
    bold: bool = False


def colour_of(own: bool | None) -> str:
    """Blue for a caption's own terms and for pictures' terms, orange for expansion terms."""
    return LIGHT["orange"] if own is False else LIGHT["blue"]


def draw_bars(
    sheet: Sheet, bars: Sequence[Bar], width: int, longest: float, number: int = _NUMBER, label: float = 0.4
) -> Image:
    """A block of bars.

    Args:
        width: of the block, in pixels.
        number: pixels for the number after the bar.
    """
    plain = sheet.letters(14)
    block, pen = sheet.block(width, max(1, _STEP * len(bars)))
    labels = int(width * label)
    space = width - labels - 8 - number
    for place, bar in enumerate(bars):
        top = _STEP * place
        letters = bundled_font(14, bold=True) if bar.bold and sheet.font is None else plain
        lines = wrap(bar.label, labels, letters.getlength, 1)
        pen.text((labels, top + 2), lines[0] if lines else "", fill=LIGHT["ink"], font=letters, anchor="ra")
        length = round(space * min(1.0, bar.value / longest)) if longest > 0 else 0
        left = labels + 8
        if length:
            pen.rectangle((left, top + 3, left + length - 1, top + 16), fill=bar.colour)
        pen.text((left + length + 6, top + 2), bar.number, fill=LIGHT["muted"], font=plain)
    return block
