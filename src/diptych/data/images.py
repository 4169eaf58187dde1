"""Pictures from real folders: upright RGB out of whatever was in the file.

EXIF orientation is applied, CMYK, palette, alpha and 16-bit pictures are converted, decompression
bombs are refused before a pixel is decoded, and what cannot be read is an error that names the file.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from diptych.core.errors import ImageError
from diptych.core.fingerprint import fingerprint_file

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS = 100_000_000
"""Pictures with more pixels than this (a 10,000 × 10,000 square) are refused as decompression bombs."""

MAX_BYTES = 500_000_000
"""Files larger than this are refused before they are read."""

PICTURE_ENDINGS = frozenset({"jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff", "ppm"})
"""Endings of file names, in lower case, by which pictures are looked for."""

_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")


def to_rgb(picture: Image) -> Image:
    """Turn any Pillow mode into 8-bit RGB; transparency is laid on white.

    16-bit and 32-bit integer greys are scaled by 1/256 when a value exceeds 255; floating-point
    greys are scaled from their own minimum and maximum.
    """
    from PIL import Image as pillow

    if picture.mode == "RGB":
        return picture
    if picture.mode in ("I;16", "I;16L", "I;16B", "I;16N", "I"):
        values = np.asarray(picture).astype(np.int64)
        if values.size and values.max() > 255:
            values = values >> 8
        return pillow.fromarray(np.clip(values, 0, 255).astype(np.uint8)).convert("RGB")
    if picture.mode == "F":
        grey = np.nan_to_num(np.asarray(picture, dtype=np.float64))
        low, high = (float(grey.min()), float(grey.max())) if grey.size else (0.0, 0.0)
        scaled = (grey - low) * (255.0 / (high - low)) if high > low else np.zeros_like(grey)
        return pillow.fromarray(scaled.astype(np.uint8)).convert("RGB")
    if picture.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in picture.info:
        layered = picture.convert("RGBA")
        paper = pillow.new("RGBA", layered.size, (255, 255, 255, 255))
        paper.alpha_composite(layered)
        return paper.convert("RGB")
    return picture.convert("RGB")


def decode_image(content: bytes, name: str, max_pixels: int = MAX_PIXELS) -> Image:
    """Decode the bytes of one picture to upright RGB.

    Args:
        max_pixels: width × height above which it is refused before decoding.
    """
    import warnings

    from PIL import Image as pillow
    from PIL import ImageOps, UnidentifiedImageError

    if not content:
        raise ImageError(f"{name} is empty (0 bytes)", "fetch the file again")
    try:
        with warnings.catch_warnings():
            # Pillow's own bomb check warns between its limit and twice that; ours is stated above.
            warnings.simplefilter("ignore", pillow.DecompressionBombWarning)
            with pillow.open(io.BytesIO(content), formats=_FORMATS) as opened:
                width, height = opened.size
                if width * height > max_pixels:
                    raise ImageError(
                        f"{name} has {width:,} × {height:,} pixels, more than the {max_pixels:,} allowed",
                        "resize it, or leave it out",
                    )
                opened.load()
                return to_rgb(ImageOps.exif_transpose(opened))
    except UnidentifiedImageError:
        raise ImageError(f"{name} is not a picture Pillow can read", "convert it to PNG or JPEG") from None
    except pillow.DecompressionBombError as error:
        raise ImageError(f"{name} is refused: {error}", "resize it, or leave it out") from None
    except (OSError, SyntaxError, ValueError, EOFError, IndexError, OverflowError) as error:
        raise ImageError(
            f"{name} is damaged: {error}", "fetch the file again, or leave it out with --skip-bad-images"
        ) from None


def read_image(path: Path, max_pixels: int = MAX_PIXELS) -> Image:
    """Read one picture file to upright RGB."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ImageError(
                f"{path} has {size:,} bytes, more than the {MAX_BYTES:,} allowed",
                "resize it, or leave it out",
            )
        content = path.read_bytes()
    except FileNotFoundError:
        raise ImageError(f"{path} does not exist", "check the image folder given with --images") from None
    except OSError as error:
        raise ImageError(f"{path} cannot be read: {error.strerror}", "check its permissions") from None
    return decode_image(content, str(path), max_pixels)


def check_inside(name: str, root: Path | str) -> None:
    """See that a name from a file of somebody else stays below a folder."""
    up = ".." in name and (".." in Path(name).parts or ".." in name.split("\\"))
    if up or name.startswith(("/", "\\")) or name[1:2] == ":" or "\0" in name:
        raise ImageError(f"{name!r} points outside {root}", "give names below the folder")
    if not name.isascii():
        try:
            # Names that a file system has, and not as UTF-8, hold surrogates of another kind; those stay.
            name.encode(errors="surrogateescape")
        except UnicodeEncodeError:
            raise ImageError(f"{name!r} holds half a character", "correct it in the dataset") from None


class FolderSource:
    """Pictures that are files below one folder."""

    def __init__(self, root: Path | str, names: Sequence[str]) -> None:
        self.root = Path(root)
        self.names = names
        for name in names:
            check_inside(name, self.root)

    def path(self, row: int) -> Path:
        """The file of source row ``row``."""
        return self.root / self.names[row]

    def read(self, row: int) -> Image:
        """The picture of source row ``row``, upright, RGB."""
        return read_image(self.path(row))

    def content(self, row: int) -> str:
        """A fingerprint of the file's bytes."""
        path = self.path(row)
        try:
            return fingerprint_file(path)
        except OSError as error:
            raise ImageError(
                f"{path} cannot be read: {error.strerror}", "check the image folder given with --images"
            ) from None
