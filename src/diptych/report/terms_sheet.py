"""A terms sheet: pictures and captions with their heaviest terms as bars, in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.core.errors import UsageError
from diptych.core.files import atomic_path
from diptych.report.palette import LIGHT
from diptych.report.paper import CELL, GAP, LINE, MARGIN, Sheet
from diptych.report.term_bars import Bar, colour_of, draw_bars
from diptych.report.terms import TermCard
from diptych.report.words import wrap

if TYPE_CHECKING:
    from PIL.Image import Image

LEGEND = (
    (LIGHT["blue"], "bold: the caption's own terms"),
    (LIGHT["orange"], "expansion terms"),
)
"""Colours of captions' terms and what they mean."""

_BARS = 300  # pixels for bars
_CARD = CELL + GAP + _BARS
_BETWEEN = 2 * GAP  # side by side, so that bars of one card keep away from the next picture
_FRAME = 1


def draw_terms_sheet(
    title: str, cards: Sequence[TermCard], *, columns: int = 2, font: Path | None = None
) -> tuple[Image, tuple[str, ...]]:
    """Draw pictures and captions with their terms; bars are relative to the heaviest term of each card."""
    if not cards or columns < 1:
        raise UsageError(f"a sheet of {len(cards)} cards in {columns} columns", "give at least 1 of each")
    across = min(columns, len(cards))
    width = across * _CARD + (across - 1) * _BETWEEN
    sheet = Sheet(width + 2 * MARGIN, font)
    sheet.blocks.append(title_block(sheet, title, width))
    for start in range(0, len(cards), across):
        row = [_card(sheet, card) for card in cards[start : start + across]]
        block, _ = sheet.block(width, max(card.height for card in row))
        for place, card in enumerate(row):
            block.paste(card, (place * (_CARD + _BETWEEN), 0))
        sheet.blocks.append(block)
    if any(one.own is not None for card in cards for one in card.terms):
        sheet.blocks.append(legend_block(sheet, width))
    return sheet.stacked(), tuple(sheet.unreadable)


def write_terms_sheet(
    path: Path | str,
    title: str,
    cards: Sequence[TermCard],
    *,
    columns: int = 2,
    font: Path | None = None,
) -> tuple[str, ...]:
    """Draw a terms sheet and write it as PNG, whole or not at all."""
    path = Path(path)
    if path.suffix.lower() != ".png":
        raise UsageError(f"terms sheet {path.name!r} ends in {path.suffix or 'nothing'!r}", "use .png")
    sheet, unreadable = draw_terms_sheet(title, cards, columns=columns, font=font)
    with atomic_path(path) as temporary:
        sheet.save(temporary, "PNG", optimize=True)
    return unreadable


def title_block(sheet: Sheet, title: str, width: int) -> Image:
    """A title, broken into at most four lines."""
    letters = sheet.letters(20)
    lines = wrap(title, width, letters.getlength, 4)
    block, pen = sheet.block(width, max(1, 28 * len(lines)))
    for place, line in enumerate(lines):
        pen.text((0, 28 * place), line, fill=LIGHT["ink"], font=letters)
    return block


def term_bars(sheet: Sheet, card: TermCard, width: int) -> Image:
    """A card's terms as bars, or the word that there are none."""
    if not card.terms:
        block, pen = sheet.block(width, LINE + 2)
        pen.text((0, 2), "no term", fill=LIGHT["muted"], font=sheet.letters(14))
        return block
    bars = [
        Bar(one.term, one.weight, colour_of(one.own), f"{one.weight:.2f}", bold=bool(one.own))
        for one in card.terms
    ]
    return draw_bars(sheet, bars, width, card.heaviest)


def legend_block(sheet: Sheet, width: int) -> Image:
    """What the colours of captions' terms mean."""
    letters = sheet.letters(14)
    block, pen = sheet.block(width, LINE)
    left = 0.0
    for colour, words in LEGEND:
        pen.rectangle((left, 3, left + 24, 16), fill=colour)
        pen.text((left + 32, 2), words, fill=LIGHT["muted"], font=letters)
        left += 32 + letters.getlength(words) + 28
    return block


def _card(sheet: Sheet, card: TermCard) -> Image:
    """The picture or the caption on the left, its terms on the right."""
    small = sheet.letters(14)
    right = term_bars(sheet, card, _BARS)
    if card.picture is None:
        middle = sheet.letters(16)
        lines = wrap(card.caption or card.name, CELL, middle.getlength, 8)
        left, pen = sheet.block(CELL, 24 * max(1, len(lines)))
        for place, line in enumerate(lines):
            pen.text((0, 24 * place), line, fill=LIGHT["ink"], font=middle)
    else:
        picture = sheet.picture(card.picture, card.name, LIGHT["line"], _FRAME)
        lines = wrap(card.caption, CELL, small.getlength, 3)
        left, pen = sheet.block(CELL, picture.height + (8 + LINE * len(lines) if lines else 0))
        left.paste(picture, (0, 0))
        for place, line in enumerate(lines):
            pen.text((0, picture.height + 8 + LINE * place), line, fill=LIGHT["muted"], font=small)
    block, _ = sheet.block(_CARD, max(left.height, right.height))
    block.paste(left, (0, 0))
    block.paste(right, (CELL + GAP, 0))
    return block
