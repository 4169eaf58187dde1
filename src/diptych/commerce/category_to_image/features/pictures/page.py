"""Pictures of products on a white page, as shops show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["WHITE", "on_square_page", "without_white_margins"]

WHITE = 240
"""A pixel whose channels are all at least this is of the page."""


def without_white_margins(picture: Image) -> Image:
    """The smallest part of an RGB picture that holds every pixel which is not white; all of a white one."""
    inked = np.asarray(picture).min(axis=2) < WHITE
    rows, columns = np.flatnonzero(inked.any(axis=1)), np.flatnonzero(inked.any(axis=0))
    if not len(rows):
        return picture
    return picture.crop((int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1))


def on_square_page(picture: Image) -> Image:
    """An RGB picture in the middle of a white square, as large as its longer side; nothing of it is lost."""
    from PIL import Image as pillow

    side = max(picture.size)
    if picture.size == (side, side):
        return picture
    page = pillow.new("RGB", (side, side), (255, 255, 255))
    page.paste(picture, ((side - picture.width) // 2, (side - picture.height) // 2))
    return page
