"""Contact sheets: queries with what was retrieved, and pictures as a tower sees them (thesis, Figure 4.D.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from diptych.core.errors import ImageError, StorageError, UsageError
from diptych.core.files import atomic_path
from diptych.report.content import Retrieved
from diptych.report.page import LIGHT, clean, frame_colour, wrap
from diptych.report.pictures import PictureSource, fit, read_picture

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont


CELL = 240
"""Side of the square a picture and its frame are fitted into, in pixels."""

FRAME = 6
"""Width of a frame, in pixels."""

MARGIN, GAP, LINE = 28, 20, 20


@cache
def bundled_font(size: int, bold: bool = False) -> FreeTypeFont:
    """DejaVu Sans, which Matplotlib brings: Latin, Greek, Cyrillic, Arabic, Hebrew, arrows, ticks."""
    import matplotlib
    from PIL import ImageFont

    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name, size)


class Sheet:
    """A canvas of fixed width that grows downwards: blocks are drawn apart and stacked."""

    def __init__(self, width: int, font: Path | None) -> None:
        self.width = width
        self.font = font
        self.blocks: list[Image] = []
        self.unreadable: list[str] = []

    def letters(self, size: int) -> FreeTypeFont:
        """The given font, or the bundled one."""
        if self.font is None:
            return bundled_font(size)
        from PIL import ImageFont

        try:
            return ImageFont.truetype(self.font, size)
        except OSError as error:
            raise StorageError(
                f"font {self.font} cannot be read: {error}", "give a .ttf or .otf file"
            ) from None

    def block(self, width: int, height: int) -> tuple[Image, ImageDraw]:
        """A white piece of paper and its pen."""
        from PIL import Image as pillow
        from PIL import ImageDraw as pillow_draw

        paper = pillow.new("RGB", (width, height), LIGHT["paper"])
        return paper, pillow_draw.Draw(paper)

    def picture(self, source: PictureSource | None, name: str, colour: str, frame: int) -> Image:
        """The picture fitted into a cell with its frame around it, or a placeholder of the same size."""
        from PIL import ImageOps

        inner = CELL - 2 * frame
        try:
            if source is None:
                raise ImageError(f"{name} has no picture")  # nothing is wrong with it, so it is not counted
            shown = fit(read_picture(source, name), inner, enlarge=True)
        except ImageError:
            if source is not None:
                self.unreadable.append(name)
            why = "has no picture" if source is None else "could not be read"
            shown, pen = self.block(inner, inner * 3 // 4)
            pen.rectangle((0, 0, *shown.size), fill=LIGHT["soft"])
            small = self.letters(14)
            lines = [*wrap(name, inner - 20, small.getlength, 3), why]
            for place, line in enumerate(lines):
                top = (shown.height - LINE * len(lines)) // 2 + LINE * place
                pen.text((inner // 2, top), line, fill=LIGHT["muted"], font=small, anchor="ma")
        return ImageOps.expand(shown, frame, fill=colour)

    def stacked(self) -> Image:
        """All blocks below each other on one sheet."""
        height = sum(block.height + GAP for block in self.blocks) - GAP + 2 * MARGIN
        sheet, _ = self.block(self.width, height)
        top = MARGIN
        for block in self.blocks:
            sheet.paste(block, (MARGIN, top))
            top += block.height + GAP
        return sheet


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


_MOST_LINES = 4
_NARROWEST, _WIDEST_ROW = 200, 1100


@dataclass(frozen=True)
class Example:
    """One picture of a sheet."""

    name: str
    pixels: np.ndarray
    captions: Sequence[str]


def draw_shortcut_sheet(title: str, examples: Sequence[Example]) -> Image:
    """A sheet (RGB) with ``title`` and the examples, several in a row where they fit."""
    if not examples:
        raise UsageError("a sheet of no pictures", "ask for at least 1")
    examples = [replace(example, pixels=_enlarged(example.pixels)) for example in examples]
    cell = max(_NARROWEST, *(example.pixels.shape[1] for example in examples))
    across = max(1, min(len(examples), (_WIDEST_ROW + GAP) // (cell + GAP)))
    inner = max(across * cell + (across - 1) * GAP, 2 * _NARROWEST)
    sheet = Sheet(inner + 2 * MARGIN, None)
    letters = sheet.letters(16)
    lines = wrap(title, inner, letters.getlength, _MOST_LINES)
    head, pen = sheet.block(inner, 24 * len(lines))
    for place, line in enumerate(lines):
        pen.text((0, 24 * place), line, fill=LIGHT["ink"], font=letters)
    sheet.blocks.append(head)
    for start in range(0, len(examples), across):
        sheet.blocks.append(_shortcut_sheet_row(sheet, examples[start : start + across], cell, inner))
    return sheet.stacked()


def write_shortcut_sheet(path: Path | str, title: str, examples: Sequence[Example]) -> Path:
    """Draw the sheet and write it as PNG, whole or not at all."""
    path = Path(path)
    if path.suffix.lower() != ".png":
        raise UsageError(
            f"sheet {path.name!r} ends in {path.suffix or 'nothing'!r}", "use .png, which keeps every pixel"
        )
    sheet = draw_shortcut_sheet(title, examples)
    with atomic_path(path) as temporary:
        sheet.save(temporary, "PNG", optimize=True)
    return path


def _enlarged(pixels: np.ndarray) -> np.ndarray:
    """Every pixel as a square, as large as a narrow cell allows."""
    factor = max(1, _NARROWEST // pixels.shape[1])
    return pixels.repeat(factor, axis=0).repeat(factor, axis=1)


def _shortcut_sheet_row(sheet: Sheet, examples: Sequence[Example], cell: int, width: int) -> Image:
    from PIL import Image as pillow

    small = sheet.letters(14)
    captions = [
        [line for caption in example.captions for line in wrap(caption, cell, small.getlength, _MOST_LINES)]
        for example in examples
    ]
    tallest = max(example.pixels.shape[0] for example in examples)
    block, pen = sheet.block(width, LINE + 4 + tallest + 8 + LINE * max(1, *map(len, captions)))
    for place, (example, lines) in enumerate(zip(examples, captions, strict=True)):
        left = place * (cell + GAP)
        name = wrap(example.name, cell, small.getlength, 1)
        pen.text((left, 0), name[0] if name else "", fill=LIGHT["muted"], font=small)
        block.paste(pillow.fromarray(example.pixels), (left, LINE + 4))
        for row, line in enumerate(lines):
            top = LINE + 4 + tallest + 8 + LINE * row
            pen.text((left, top), line, fill=LIGHT["ink"], font=small)
    return block
