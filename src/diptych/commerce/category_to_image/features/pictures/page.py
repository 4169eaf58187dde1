"""Pictures of products on a white page, as shops show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["MAX_SIDE", "WHITE", "on_square_page", "without_white_margins"]

WHITE = 240
"""A pixel whose channels are all at least this is of the page."""


MAX_SIDE = 8192
"""Of a square page: a picture of 100,000 × 10 pixels would need 30 GB of white around it."""


def without_white_margins(picture: Image) -> Image:
    """The smallest part of an RGB picture that holds every pixel which is not white; all of a white one."""
    inked = np.asarray(picture).min(axis=2) < WHITE
    rows, columns = np.flatnonzero(inked.any(axis=1)), np.flatnonzero(inked.any(axis=0))
    if not len(rows):
        return picture
    return picture.crop((int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1))


def on_square_page(picture: Image) -> Image:
    """An RGB picture in the middle of a white square, as large as its longer side; nothing of it is lost.

    A longer side than :data:`MAX_SIDE` is scaled down to it first.
    """
    from PIL import Image as pillow

    if max(picture.size) > MAX_SIDE:
        scale = MAX_SIDE / max(picture.size)
        smaller = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
        picture = picture.resize(smaller, pillow.Resampling.BILINEAR, reducing_gap=2.0)
    side = max(picture.size)
    if picture.size == (side, side):
        return picture
    page = pillow.new("RGB", (side, side), (255, 255, 255))
    page.paste(picture, ((side - picture.width) // 2, (side - picture.height) // 2))
    return page
