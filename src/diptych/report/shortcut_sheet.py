"""Pictures as a tower sees them, digits and all, with their captions below (thesis, Figure 4.D.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from diptych.core.errors import UsageError
from diptych.core.files import atomic_path
from diptych.report.palette import LIGHT
from diptych.report.paper import GAP, LINE, MARGIN, Sheet
from diptych.report.words import wrap

if TYPE_CHECKING:
    from PIL.Image import Image

_MOST_LINES = 4
_NARROWEST, _WIDEST_ROW = 200, 1100


@dataclass(frozen=True)
class Example:
    """One picture of a sheet.

    Attributes:
        name: what is written above it.
        pixels: (height, width, 3) uint8, shown pixel for pixel; small ones with each pixel as a square.
        captions: written below it.
    """

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
        sheet.blocks.append(_row(sheet, examples[start : start + across], cell, inner))
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


def _row(sheet: Sheet, examples: Sequence[Example], cell: int, width: int) -> Image:
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
