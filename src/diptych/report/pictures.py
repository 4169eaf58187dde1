"""Images for a page: read when needed, small, as JPEG; one that cannot be read is counted, not fatal."""

import base64
import io
from collections.abc import Callable
from typing import Self, TypeAlias

from PIL import Image as pillow
from PIL import ImageOps
from PIL.Image import Image

from diptych.core.errors import ImageError
from diptych.data.images import to_rgb

PictureSource: TypeAlias = Image | Callable[[], Image]
"""A Pillow image, or a function that reads one (``lambda: collection.image(row)``)."""

MAX_THUMBNAIL_BYTES = 40_000
"""No image adds more than this (before base64) to a page."""

_QUALITIES = (84, 70, 55, 40, 25)


def read_picture(source: PictureSource, name: str) -> Image:
    """Read the image behind ``source``, upright, RGB, decoded."""
    try:
        picture = source if isinstance(source, pillow.Image) else source()
        picture.load()
        upright = to_rgb(ImageOps.exif_transpose(picture))
    except (OSError, SyntaxError) as error:  # what Pillow raises for missing and for corrupt files
        raise ImageError(f"image {name} cannot be read: {error}") from error
    if not all(upright.size):
        raise ImageError(f"image {name} has no pixels: {upright.width} × {upright.height}")
    return upright


def fit(picture: Image, side: int, *, enlarge: bool = False) -> Image:
    """Return ``picture`` scaled to at most ``side`` × ``side`` pixels, its proportions kept."""
    scale = side / max(picture.size)
    if scale == 1 or (scale > 1 and not enlarge):
        return picture
    width, height = (max(1, round(length * scale)) for length in picture.size)
    return picture.resize((width, height), pillow.Resampling.LANCZOS)


class Thumbnail(str):
    """A ``data:image/jpeg;base64,…`` address with its ``width`` and ``height`` in pixels."""

    width: int
    height: int
    place: int | None = None

    @classmethod
    def of(cls, picture: Image, side: int) -> Self:
        """Encode ``picture`` at most ``side`` pixels wide and high, in at most ``MAX_THUMBNAIL_BYTES``."""
        small = fit(picture, side)
        while True:
            for quality in _QUALITIES:
                encoded = io.BytesIO()
                small.save(encoded, "JPEG", quality=quality, optimize=True)
                if encoded.tell() <= MAX_THUMBNAIL_BYTES:
                    made = cls(f"data:image/jpeg;base64,{base64.b64encode(encoded.getvalue()).decode()}")
                    made.width, made.height = small.size
                    return made
            small = fit(small, max(small.size) // 2)
