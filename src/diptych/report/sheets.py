"""Contact sheets: galleries drawn into one PNG or JPEG, or written as a page."""

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
from PIL import Image as pillow
from PIL import ImageDraw, ImageFont, ImageOps
from PIL.Image import Image
from PIL.ImageFont import FreeTypeFont

from diptych.analysis.shortcuts.codes import with_ending
from diptych.analysis.shortcuts.shortcuts import Shortcuts
from diptych.core.errors import ImageError, StorageError, UsageError
from diptych.core.extras import require
from diptych.core.files import atomic_path
from diptych.data import Batch, Collection
from diptych.data.images import pasted, read_image, split_overlay
from diptych.encoders.preprocessing import Preprocessing
from diptych.index.engine import query_type
from diptych.report.document import MARKS, Card, Gallery, Page, Section, state_of
from diptych.report.pictures import fit, read_picture
from diptych.report.searcher import Found
from diptych.report.style import LIGHT, wrap

FRAME, MARGIN, GAP = 6, 28, 20
"""Pixels; cards without a state have a line instead of a frame."""

_NAMES, _BARS = 130, 170  # pixels for the names of bars, and for the longest bar
_SHEET, _NARROWEST = 1000, 200  # pixels: of a sheet of shortcuts, about, and of an image that is enlarged
_FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".html": "HTML"}
_JPEG_SIDE = 65_500


def write_sheet(
    path: Path | str,
    title: str,
    galleries: Sequence[Gallery],
    columns: int = 5,
    side: int = 240,
    font: Path | None = None,
    exact: bool = False,
) -> tuple[str, ...]:
    """Draw galleries below each other and write the sheet; return names of unreadable images.

    ``columns`` cards stand next to each other (half as many with bars), images at most ``side`` pixels long.
    ``exact`` keeps every pixel: small images are enlarged by whole factors, only to .png.
    """
    path = Path(path)
    kind = _FORMATS.get(path.suffix.lower())
    if kind == "HTML" and not exact:
        Page(title, sections=[Section("Results", galleries)]).save(path)
        return ()  # the page names them
    if kind is None or (exact and kind != "PNG"):
        raise UsageError(
            f"sheet {path.name!r} ends in {path.suffix or 'nothing'!r}",
            "use .png, which keeps every pixel" if exact else f"use one of {', '.join(_FORMATS)}",
        )
    if columns < 1 or not galleries:
        raise UsageError(
            f"a sheet of {len(galleries)} groups in {columns} columns", "give at least 1 of each"
        )
    pen = _Pen(side, font, exact)
    blocks = [pen.text(title, 4 * side, 20, most=4)] if title else []
    blocks += [pen.gallery(one, columns) for one in galleries]
    sheet = _framed(_stack(blocks, GAP), MARGIN, "paper")
    if kind == "JPEG" and max(sheet.size) > _JPEG_SIDE:
        size = f"{sheet.width:,} × {sheet.height:,}"
        raise UsageError(f"a sheet of {size} pixels is too large for JPEG", "write a .png, or show fewer")
    options = {"quality": 92, "subsampling": 0} if kind == "JPEG" else {"optimize": True}
    with atomic_path(path) as temporary:
        sheet.save(temporary, kind, **options)
    return tuple(pen.unreadable)


@cache
def _letters(font: Path | None, size: int, bold: bool = False) -> FreeTypeFont:
    """Load a font, or DejaVu Sans, which Matplotlib brings: Latin, Greek, Cyrillic, Arabic, Hebrew, arrows, ticks."""
    matplotlib = require("matplotlib", purpose="a sheet without a font of yours")
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    try:
        return ImageFont.truetype(font or Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name, size)
    except OSError as error:
        raise StorageError(f"font {font} cannot be read: {error}", "give a .ttf or .otf file") from None


def _paper(width: float, height: float, colour: str = "paper") -> Image:
    return pillow.new("RGB", (max(1, round(width)), max(1, round(height))), LIGHT[colour])


def _framed(block: Image, width: int, colour: str) -> Image:
    return ImageOps.expand(block, width, fill=LIGHT[colour])


def _stack(blocks: Sequence[Image], gap: int, across: bool = False) -> Image:
    """Stack blocks below each other, or next to each other, their left sides or tops aligned."""
    sizes = [one.size if across else one.size[::-1] for one in blocks]
    length, depth = sum(size[0] for size in sizes) + gap * (len(sizes) - 1), max(size[1] for size in sizes)
    whole, at = _paper(*((length, depth) if across else (depth, length))), 0
    for one, size in zip(blocks, sizes, strict=True):
        whole.paste(one, (at, 0) if across else (0, at))
        at += size[0] + gap
    return whole


def write_hits(path: Path, found: Sequence[Found]) -> tuple[str, ...]:
    """Write the hits of searches, a gallery per query; return names of unreadable images."""
    galleries = []
    for one in found:
        cards = []
        for rank, hit in enumerate(one.hits, 1):
            state = "" if hit.right is None else state_of(hit.right)
            cards.append(Card(hit.name, hit.image, hit.text, f"{rank}", state, f"{hit.score:.3f}"))
        is_image = query_type(one.query) == "image"
        query = Card(one.query, partial(read_image, Path(one.query)), label="Query") if is_image else None
        galleries.append(Gallery(one.shown.caption if len(found) > 1 else "", cards, query))
    return write_sheet(
        path, found[0].shown.caption if len(found) == 1 else f"{len(found)} searches", galleries
    )


def write_shortcuts(
    path: Path, made: Shortcuts, whole: Collection, split: str, size: int, most: int, epoch: int | None
) -> list[Card]:
    """Draw images from all over a split, prepared, with the shortcuts of an epoch (from 1) or of evaluation."""
    part = whole.split(split)
    part = part.subset(np.linspace(0, part.n_images - 1, min(most, part.n_images)).astype(np.int64))
    shown = made.injected(part)
    overlays = [split_overlay(shown.item(row))[1] for row in range(part.n_images)]
    captions = list(shown.captions)
    if epoch is not None:
        batch = Batch(np.arange(part.n_images), np.arange(part.n_captions), part.caption_image)
        given = made.training(part, batch, epoch - 1)
        overlays = given.overlays
        captions = [with_ending(*pair) for pair in zip(part.captions, given.endings, strict=True)]
    # the usual share of the shorter side: 224 of 256 pixels
    preprocessing = Preprocessing(size=size, resize=max(size, size * 8 // 7))
    listed = None if made.options.setup == "per-caption" else 1
    cards = []
    for row, (name, overlay) in enumerate(zip(part.image_ids, overlays, strict=True)):
        pixels = preprocessing.central(part.image(row))
        image = pillow.fromarray(pixels if overlay is None else pasted(pixels, overlay))
        first, stop = part.caption_start[row : row + 2]
        cards.append(Card(name, image, "\n".join(captions[first:stop][:listed]), name))
    columns = max(1, _SHEET // max(size, _NARROWEST))
    title = f"{whole.name}, {split}; {made.line()}"
    write_sheet(path, title, [Gallery("", cards)], columns, _NARROWEST, exact=True)
    return cards


class _Pen:
    """Draw cards in one size and one font, and note the images that cannot be read."""

    def __init__(self, side: int, font: Path | None, exact: bool) -> None:
        self.side, self.font, self.exact = side, font, exact
        self.unreadable: list[str] = []

    def text(self, text: str, width: float, size: int = 14, colour: str = "ink", most: int = 3) -> Image:
        """Draw lines of text, each line of its own broken into at most ``most``."""
        letters, step = _letters(self.font, size), round(1.4 * size)
        lines = [line for part in text.split("\n") for line in wrap(part, width, letters.getlength, most)]
        block = _paper(max((letters.getlength(line) for line in lines), default=0) + 1, step * len(lines))
        for place, line in enumerate(lines):
            ImageDraw.Draw(block).text((0, place * step), line, fill=LIGHT[colour], font=letters)
        return block

    def picture(self, card: Card) -> Image:
        frame = FRAME if card.state else 1
        inner = self.side if self.exact else self.side - 2 * frame
        try:
            if card.picture is None:
                raise ImageError(f"{card.name} has no image")
            shown = read_picture(card.picture, card.name)
            if self.exact:
                shown = ImageOps.scale(shown, max(1, inner // shown.width), pillow.Resampling.NEAREST)
            else:
                shown = fit(shown, inner, enlarge=True)
        except ImageError:
            if card.picture is not None:
                self.unreadable.append(card.name)
            why = "has no image" if card.picture is None else "could not be read"
            words = self.text(f"{card.name}\n{why}", inner - 20, 14, "muted")
            shown = _paper(inner, inner * 3 // 4, "soft")
            shown.paste(words, (10, (shown.height - words.height) // 2))
        return _framed(shown, frame, card.state or "line")

    def words(self, card: Card, width: float, size: int = 14, most: int = 3) -> Image:
        """Draw label, mark and score in one line, the text below."""
        mark = f"{MARKS[card.state]} {card.state}" if card.state in ("right", "wrong") else ""
        parts = [(card.label, "ink", True), (mark, card.state, True), (card.score, "muted", False)]
        head, left = _paper(width, 21 if any(words for words, *_ in parts) else 1), 0.0
        for words, colour, bold in parts:
            if words:
                letters = _letters(None, 15, bold)  # a font of captions need not have ticks
                shown = wrap(words, width - left, letters.getlength, 1) or [""]
                ImageDraw.Draw(head).text((left, 0), shown[0], fill=LIGHT[colour], font=letters)
                left += letters.getlength(shown[0]) + 10
        text, colour = (card.text or card.name, "ink") if card.picture is None else (card.text, "muted")
        return _stack([head, self.text(text, width, size, colour, most)], 4)

    def bars(self, card: Card) -> Image:
        letters = _letters(self.font, 14)
        numbers = max((letters.getlength(number) for _, _, number, _ in card.bars), default=0)
        block = _paper(_NAMES + _BARS + 16 + numbers, 22 * len(card.bars))
        pen = ImageDraw.Draw(block)
        for place, (name, share, number, strong) in enumerate(card.bars):
            bold = _letters(self.font, 14, strong)
            shown = wrap(name, _NAMES, bold.getlength, 1) or [""]
            pen.text((_NAMES, 22 * place + 2), shown[0], fill=LIGHT["ink"], font=bold, anchor="ra")
            left, top = _NAMES + 8, 22 * place + 3
            if share > 0:
                end = left + max(1, round(_BARS * share))
                pen.rectangle((left, top, end - 1, top + 13), fill=LIGHT["blue" if strong else "orange"])
                left = end
            pen.text((left + 6, top - 1), number, fill=LIGHT["muted"], font=letters)
        return block

    def gallery(self, gallery: Gallery, columns: int) -> Image:
        barred = any(card.bars for card in gallery.cards)
        listed = not barred and not any(card.picture is not None for card in gallery.cards)
        if barred:
            columns, shown = max(1, columns // 2), [self.barred(card) for card in gallery.cards]
        elif listed:
            columns, shown = 1, [self.boxed(card) for card in gallery.cards]
        else:
            shown = self.pictured(gallery.cards)
        starts = range(0, len(shown), columns)
        rows = [_stack(shown[start : start + columns], GAP, across=True) for start in starts]
        body = _stack(rows, 8 if listed else GAP) if rows else self.text("Nothing.", self.side)
        card, head = gallery.query, []
        for words, size, colour in ((gallery.caption, 18, "ink"), (gallery.text, 14, "muted")):
            head += [self.text(words, max(4 * self.side, body.width), size, colour)] if words else []
        if card is not None and card.picture is not None:
            query = _stack([self.picture(card), self.words(card, self.side)], 8)
            body = _stack([query, body], GAP, across=listed)
        elif card is not None:  # a sentence needs room even above one narrow column
            body = _stack([self.words(card, max(3 * self.side, body.width), 24, 4), body], GAP)
        return _stack([*head, body], 8)

    def pictured(self, cards: Sequence[Card]) -> list[Image]:
        """Draw images on one line, so that the words below them do too."""
        pictures = [self.picture(card) for card in cards]
        width, height = (max(sizes) for sizes in zip(*(one.size for one in pictures), strict=True))
        shown = []
        for card, picture in zip(cards, pictures, strict=True):
            place = _paper(max(self.side, width), height)
            place.paste(picture, (0, height - picture.height))
            shown.append(_stack([place, self.words(card, place.width, most=4)], 8))
        return shown

    def barred(self, card: Card) -> Image:
        left = self.words(card, self.side, 14 if card.picture else 16, 3 if card.picture else 8)
        left = _stack([self.picture(card), left], 8) if card.picture else left
        right = self.bars(card) if card.bars else self.text("no term", self.side)
        return _stack([left, right], GAP, across=True)

    def boxed(self, card: Card) -> Image:
        """Draw a caption in a box as wide as four images, with the colour of its state."""
        words, colour = self.words(card, 4 * self.side - 36, 16), card.state or "line"
        box = _paper(4 * self.side - FRAME - 4, words.height + 16)
        box.paste(words, (12, 10))
        box = _framed(box, 2, colour)
        return _stack([_paper(FRAME, box.height, colour), box], 0, across=True)
