"""The paper of a contact sheet: sizes, fonts, framed pictures, blocks stacked on one sheet."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.core.errors import ImageError, StorageError
from diptych.report.palette import LIGHT
from diptych.report.pictures import PictureSource, fit, read_picture
from diptych.report.words import wrap

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
