"""Bags of weighted terms as plain data: what sheets and pages of sparse rows draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.core.errors import DataError, NumericalError, UsageError
from diptych.core.files import atomic_path
from diptych.report.page import LIGHT, wrap
from diptych.report.pictures import PictureSource
from diptych.report.sheets import CELL, GAP, LINE, MARGIN, Sheet, bundled_font

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class WeightedTerm:
    """One term of a row.

    Attributes:
        term: as people read it.
        weight: at least 0.
        own: whether the caption contains it; None where there is no caption to contain it.
    """

    term: str
    weight: float
    own: bool | None = None

    def __post_init__(self) -> None:
        _check_weight(self.term, self.weight)


@dataclass(frozen=True)
class TermCard:
    """A picture or a caption with its heaviest terms.

    Attributes:
        name: its id.
        terms: heaviest first.
        caption: the sentence, or a few words for the picture.
        picture: the picture; None for a caption.
    """

    name: str
    terms: Sequence[WeightedTerm]
    caption: str = ""
    picture: PictureSource | None = None

    @property
    def heaviest(self) -> float:
        """The largest weight, 0 without a term."""
        return max((one.weight for one in self.terms), default=0.0)


@dataclass(frozen=True)
class MatchTerm:
    """One term that a query and an item have in common.

    Attributes:
        term: as people read it.
        query: its weight in the query's row.
        item: its weight in the item's row.
        contribution: what it adds to the score.
    """

    term: str
    query: float
    item: float
    contribution: float

    def __post_init__(self) -> None:
        for weight in (self.query, self.item, self.contribution):
            _check_weight(self.term, weight)


@dataclass(frozen=True)
class Match:
    """A query, an item, and what their score is made of; each side is a caption or a picture.

    Attributes:
        query: with its own heaviest terms, or none.
        item: likewise.
        terms: all common terms, most first; their contributions add up to ``score``.
        score: of the pair.
    """

    query: TermCard
    item: TermCard
    terms: Sequence[MatchTerm]
    score: float

    def __post_init__(self) -> None:
        total = math.fsum(one.contribution for one in self.terms)
        if not math.isclose(total, self.score, rel_tol=1e-4, abs_tol=1e-6):
            raise DataError(
                f"{self.query.name!r} and {self.item.name!r}: contributions add up to {total:.6g}, the score is "
                f"{self.score:.6g}",
                "give all common terms, those that are not shown as well",
            )


def _check_weight(term: str, weight: float) -> None:
    if not (math.isfinite(weight) and weight >= 0):
        raise NumericalError(f"the weight of {term!r} is {weight}", "weights are finite and at least 0")


_STEP = LINE + 2
_NUMBER = 52  # pixels for "12.34"


@dataclass(frozen=True)
class Bar:
    """One line of a bar chart."""

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
    """A block of bars."""
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


_MATCH_SHEET_BARS = 520
_MATCH_SHEET_NUMBER = 190  # pixels for "12.34 = 1.23 × 4.56"


def draw_match_sheet(
    match: Match, *, title: str = "", shown: int = 15, font: Path | None = None
) -> tuple[Image, tuple[str, ...]]:
    """Draw what the score of a match is made of."""
    if shown < 1:
        raise UsageError(f"an explanation that shows {shown} terms", "show at least 1")
    width = CELL + 2 * GAP + _MATCH_SHEET_BARS
    sheet = Sheet(width + 2 * MARGIN, font)
    if title:
        sheet.blocks.append(title_block(sheet, title, width))
    left = _stacked(sheet, [_side(sheet, "Query", match.query), _side(sheet, "Item", match.item)])
    right = _bars(sheet, match, shown)
    block, _ = sheet.block(width, max(left.height, right.height))
    block.paste(left, (0, 0))
    block.paste(right, (CELL + 2 * GAP, 0))
    sheet.blocks.append(block)
    return sheet.stacked(), tuple(sheet.unreadable)


def write_match_sheet(
    path: Path | str, match: Match, *, title: str = "", shown: int = 15, font: Path | None = None
) -> tuple[str, ...]:
    """Draw the explanation of a match and write it as PNG, whole or not at all."""
    path = Path(path)
    if path.suffix.lower() != ".png":
        raise UsageError(f"explanation {path.name!r} ends in {path.suffix or 'nothing'!r}", "use .png")
    sheet, unreadable = draw_match_sheet(match, title=title, shown=shown, font=font)
    with atomic_path(path) as temporary:
        sheet.save(temporary, "PNG", optimize=True)
    return unreadable


def _bars(sheet: Sheet, match: Match, shown: int) -> Image:
    """The score, then what each common term adds to it."""
    head, pen = sheet.block(_MATCH_SHEET_BARS, 2 * LINE + 12)
    large, small = sheet.letters(20), sheet.letters(14)
    pen.text((0, 0), f"Score {match.score:.3f}", fill=LIGHT["ink"], font=large)
    words = "= sum of query weight × item weight" if match.terms else "no term in common"
    pen.text((0, 28), words, fill=LIGHT["muted"], font=small)
    bars = [
        Bar(
            one.term,
            one.contribution,
            LIGHT["blue"],
            f"{one.contribution:.2f} = {one.query:.2f} × {one.item:.2f}",
        )
        for one in match.terms[:shown]
    ]
    longest = max((bar.value for bar in bars), default=0.0)
    rest = match.terms[shown:]
    if rest:  # no bar: it would be longer than any term's and tell nothing about them
        total = sum(one.contribution for one in rest)
        label = f"{len(rest):,} more term{'s' if len(rest) > 1 else ''}"
        bars.append(Bar(label, 0.0, LIGHT["unknown"], f"{total:.2f} together"))
    return _stacked(
        sheet, [head, draw_bars(sheet, bars, _MATCH_SHEET_BARS, longest, _MATCH_SHEET_NUMBER, 0.3)], 8
    )


def _side(sheet: Sheet, word: str, card: TermCard) -> Image:
    """A picture or a caption below the word for what it is."""
    small, middle = sheet.letters(14), sheet.letters(16)
    picture = None
    if card.picture is not None:
        picture = sheet.picture(card.picture, card.name, LIGHT["line"], 1)
    letters, colour = (middle, LIGHT["ink"]) if picture is None else (small, LIGHT["muted"])
    text = card.caption or (card.name if picture is None else "")
    lines = wrap(text, CELL, letters.getlength, 6 if picture is None else 3)
    top = 26 + (0 if picture is None else picture.height + 8)
    block, pen = sheet.block(CELL, top + 24 * len(lines))
    pen.text((0, 0), word, fill=LIGHT["muted"], font=small)
    if picture is not None:
        block.paste(picture, (0, 26))
    for place, line in enumerate(lines):
        pen.text((0, top + 24 * place), line, fill=colour, font=letters)
    return block


def _stacked(sheet: Sheet, blocks: list[Image], gap: int = GAP) -> Image:
    height = sum(block.height for block in blocks) + gap * (len(blocks) - 1)
    whole, _ = sheet.block(max(block.width for block in blocks), height)
    top = 0
    for block in blocks:
        whole.paste(block, (0, top))
        top += block.height + gap
    return whole
