"""An explanation of a match in one picture: the query, the item, and what each common term adds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from diptych.core.errors import UsageError
from diptych.core.files import atomic_path
from diptych.report.palette import LIGHT
from diptych.report.paper import CELL, GAP, LINE, MARGIN, Sheet
from diptych.report.term_bars import Bar, draw_bars
from diptych.report.terms import Match, TermCard
from diptych.report.terms_sheet import title_block
from diptych.report.words import wrap

if TYPE_CHECKING:
    from PIL.Image import Image

_BARS = 520
_NUMBER = 190  # pixels for "12.34 = 1.23 × 4.56"


def draw_match_sheet(
    match: Match, *, title: str = "", shown: int = 15, font: Path | None = None
) -> tuple[Image, tuple[str, ...]]:
    """Draw what the score of a match is made of."""
    if shown < 1:
        raise UsageError(f"an explanation that shows {shown} terms", "show at least 1")
    width = CELL + 2 * GAP + _BARS
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
    head, pen = sheet.block(_BARS, 2 * LINE + 12)
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
    return _stacked(sheet, [head, draw_bars(sheet, bars, _BARS, longest, _NUMBER, 0.3)], 8)


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
