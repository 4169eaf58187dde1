"""A contact sheet: what a query retrieved, in one picture, as papers show it.

Retrieved pictures stand in a grid, retrieved captions in a list; each has its rank and score and a
frame, green when right, red when wrong, grey when nobody has said (the figures of ConVSE, thesis ch. 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.core.errors import UsageError
from diptych.core.files import atomic_path
from diptych.report.palette import LIGHT, frame_colour
from diptych.report.paper import CELL, FRAME, GAP, LINE, MARGIN, Sheet, bundled_font
from diptych.report.pictures import PictureSource, fit, read_picture
from diptych.report.retrievals import Retrieved
from diptych.report.words import clean, wrap

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

_JPEG_SIDE = 65_500
_FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}
_WORDS = {True: "✓ right", False: "✗ wrong", None: ""}


def draw_contact_sheet(
    query: str | PictureSource, retrieved: Sequence[Retrieved], *, columns: int = 5, font: Path | None = None
) -> tuple[Image, tuple[str, ...]]:
    """Draw what ``query`` retrieved."""
    if columns < 1:
        raise UsageError(f"a contact sheet of {columns} columns", "give at least 1")
    are_pictures = any(item.picture is not None for item in retrieved)
    # a sentence needs room even above one narrow column
    across = max(3, min(columns, len(retrieved))) if are_pictures else 4
    inner = across * CELL + (across - 1) * GAP
    sheet = Sheet(inner + 2 * MARGIN, font)
    sheet.blocks.append(_header(sheet, query, inner))
    if are_pictures:
        for start in range(0, len(retrieved), columns):
            sheet.blocks.append(_row(sheet, retrieved[start : start + columns], start, inner))
    elif isinstance(query, str):
        sheet.blocks.append(_list(sheet, retrieved, inner))
    else:
        beside = _list(sheet, retrieved, inner - CELL - GAP)
        sheet.blocks = [_side_by_side(sheet, sheet.blocks[0], beside, inner)]
    return sheet.stacked(), tuple(sheet.unreadable)


def write_contact_sheet(
    path: Path | str,
    query: str | PictureSource,
    retrieved: Sequence[Retrieved],
    *,
    columns: int = 5,
    font: Path | None = None,
) -> tuple[str, ...]:
    """Draw a contact sheet and write it, whole or not at all, as PNG or JPEG by the name's ending.

    Args and errors as :func:`draw_contact_sheet`.
    """
    path = Path(path)
    kind = _FORMATS.get(path.suffix.lower())
    if kind is None:
        raise UsageError(
            f"contact sheet {path.name!r} ends in {path.suffix or 'nothing'!r}",
            f"use one of {', '.join(_FORMATS)}",
        )
    sheet, unreadable = draw_contact_sheet(query, retrieved, columns=columns, font=font)
    if kind == "JPEG" and max(sheet.size) > _JPEG_SIDE:
        raise UsageError(
            f"a contact sheet of {sheet.width:,} × {sheet.height:,} pixels is too large for JPEG",
            "write a .png, or retrieve fewer",
        )
    options = {"quality": 92, "subsampling": 0} if kind == "JPEG" else {"optimize": True}
    with atomic_path(path) as temporary:
        sheet.save(temporary, kind, **options)
    return unreadable


def _header(sheet: Sheet, query: str | PictureSource, width: int) -> Image:
    small = sheet.letters(14)
    if isinstance(query, str):
        large = sheet.letters(24)
        lines = wrap(query, width, large.getlength, 4)
        block, pen = sheet.block(width, 26 + 34 * len(lines))
        for place, line in enumerate(lines):
            pen.text((0, 26 + 34 * place), line, fill=LIGHT["ink"], font=large)
    else:
        shown = fit(read_picture(query, "of the query"), CELL, enlarge=True)
        block, pen = sheet.block(CELL, 26 + shown.height)
        block.paste(shown, (0, 26))
    pen.text((0, 0), "Query", fill=LIGHT["muted"], font=small)
    return block


def _side_by_side(sheet: Sheet, left: Image, right: Image, width: int) -> Image:
    # the list starts where the picture does, below the word above it
    block, _ = sheet.block(width, max(left.height, right.height + 26))
    block.paste(left, (0, 0))
    block.paste(right, (width - right.width, 26))
    return block


def _row(sheet: Sheet, items: Sequence[Retrieved], start: int, width: int) -> Image:
    small = sheet.letters(14)
    cells = [
        (item, sheet.picture(item.picture, item.name, frame_colour(item.is_right), FRAME)) for item in items
    ]
    captions = [wrap(item.caption, CELL, small.getlength, 3) for item in items]
    tallest = max(picture.height for _, picture in cells)
    block, pen = sheet.block(width, tallest + 34 + LINE * max(map(len, captions)))
    for place, ((item, picture), lines) in enumerate(zip(cells, captions, strict=True)):
        left = place * (CELL + GAP)
        # pictures stand on one line, so that the words below them do too
        block.paste(picture, (left, tallest - picture.height))
        _verdict(pen, (left, tallest + 8), item, start + place + 1)
        for row, line in enumerate(lines):
            pen.text((left, tallest + 32 + LINE * row), line, fill=LIGHT["muted"], font=small)
    return block


def _verdict(pen: ImageDraw, corner: tuple[int, int], item: Retrieved, place: int) -> None:
    """Rank, tick or cross, score: on one line from ``corner``."""
    left, top = float(corner[0]), corner[1]
    rank = f"{item.rank if item.rank is not None else place:,}"
    for words, colour, bold in (
        (rank, LIGHT["ink"], True),
        (_WORDS[item.is_right], frame_colour(item.is_right), True),
        (f"{item.score:.3f}", LIGHT["muted"], False),
    ):
        if words:
            letters = bundled_font(15, bold)  # a font of captions need not have ticks
            pen.text((left, top), words, fill=colour, font=letters)
            left += letters.getlength(words) + 10


def _list(sheet: Sheet, items: Sequence[Retrieved], width: int) -> Image:
    middle = sheet.letters(16)
    head, room = 190, width - 190 - 16
    wrapped = [wrap(item.caption or clean(item.name), room, middle.getlength, 3) or [""] for item in items]
    heights = [24 * len(lines) + 20 for lines in wrapped] or [24]
    block, pen = sheet.block(width, sum(heights) + 8 * (len(heights) - 1))
    if not items:
        pen.text((0, 0), "Nothing was retrieved.", fill=LIGHT["muted"], font=middle)
    top = 0
    for place, (item, lines, height) in enumerate(zip(items, wrapped, heights, strict=False)):
        colour = frame_colour(item.is_right)
        pen.rectangle((0, top, width - 1, top + height - 1), outline=colour, width=2, fill=LIGHT["soft"])
        pen.rectangle((0, top, FRAME - 1, top + height - 1), fill=colour)
        _verdict(pen, (18, top + 11), item, place + 1)
        for row, line in enumerate(lines):
            pen.text((head, top + 10 + 24 * row), line, fill=LIGHT["ink"], font=middle)
        top += height + 8
    return block
