"""Images from real folders: upright RGB out of whatever was in the file.

EXIF orientation is applied, CMYK, palette, alpha and 16-bit images are converted, decompression
bombs are refused before a pixel is decoded, and what cannot be read is an error that names the file.
"""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol, runtime_checkable

import numpy as np

from diptych.core.errors import ImageError
from diptych.core.fingerprint import fingerprint_stream
from diptych.core.reading import file_errors, open_regular
from diptych.data.loading import reserve

if TYPE_CHECKING:
    from PIL.Image import Image


# Images with more pixels than this (a 10,000 × 10,000 square) are refused as decompression bombs.
MAX_PIXELS = 100_000_000

# Files larger than this are refused before they are read.
MAX_BYTES = 500_000_000

# Endings of file names, in lower case, by which images are looked for.
PICTURE_ENDINGS = frozenset({"jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff", "ppm"})

_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")


def is_image_path(name: str) -> bool:
    return Path(name).suffix.lower().removeprefix(".") in PICTURE_ENDINGS


_EXIF_DATE = re.compile(r"([0-9]{4}):([0-9]{2}):([0-9]{2}) ([0-9:]{8})")

# Pixels that are converted at once, so that what is computed on the way stays small.
_STRIP_PIXELS = 1 << 22

# Bytes that Pillow takes for a pixel of a mode; of any other it takes 4.
_PIXEL_BYTES = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16L": 2, "I;16B": 2, "I;16N": 2}


def to_rgb(picture: Image) -> Image:
    """Turn any Pillow mode into 8-bit RGB; transparency is laid on white.

    16-bit and 32-bit integer greys are scaled by 1/256 when a value exceeds 255; floating-point
    greys are scaled from their own minimum and maximum.
    """
    if picture.mode == "RGB":
        return picture
    if picture.mode in ("I;16", "I;16L", "I;16B", "I;16N", "I"):
        shift = 8 if max(_ends(strip)[1] for _, strip in _strips(picture)) > 255 else 0
        return _by_strips(picture, lambda strip: _from_integers(strip, shift))
    if picture.mode == "F":
        ends = [_ends(strip) for _, strip in _strips(picture)]
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
        return _by_strips(picture, lambda strip: _from_floats(strip, low, high))
    if picture.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in picture.info:
        return _by_strips(picture, _on_white)
    return picture.convert("RGB")


def _strips(picture: Image) -> Iterator[tuple[int, Image]]:
    """Yield strips of an image with their top rows."""
    width, height = picture.size
    rows = max(1, _STRIP_PIXELS // max(1, width))
    for top in range(0, height, rows):
        yield top, picture.crop((0, top, width, min(height, top + rows)))


def _by_strips(picture: Image, convert: Callable[[Image], Image]) -> Image:
    from PIL import Image as pillow

    whole = pillow.new("RGB", picture.size)
    for top, strip in _strips(picture):
        whole.paste(convert(strip), (0, top))
    return whole


def _ends(picture: Image) -> tuple[float, float]:
    values = np.asarray(picture)
    if values.dtype.kind == "f":
        values = np.nan_to_num(values.astype(np.float64))
    return (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)


def _from_integers(picture: Image, shift: int) -> Image:
    from PIL import Image as pillow

    values = np.asarray(picture) >> shift
    return pillow.fromarray(np.clip(values, 0, 255).astype(np.uint8)).convert("RGB")


def _from_floats(picture: Image, low: float, high: float) -> Image:
    from PIL import Image as pillow

    grey = np.nan_to_num(np.asarray(picture, dtype=np.float64))
    scaled = (grey - low) * (255.0 / (high - low)) if high > low else np.zeros_like(grey)
    return pillow.fromarray(scaled.astype(np.uint8)).convert("RGB")


def _on_white(picture: Image) -> Image:
    from PIL import Image as pillow

    layered = picture.convert("RGBA")
    paper = pillow.new("RGBA", layered.size, (255, 255, 255, 255))
    paper.alpha_composite(layered)
    return paper.convert("RGB")


def decode_image(content: bytes, name: str, max_pixels: int = MAX_PIXELS) -> Image:
    """Decode the bytes of one image to upright RGB.

    Args:
        max_pixels: width × height above which it is refused before decoding.
    """
    return _decode(io.BytesIO(content), len(content), name, max_pixels)


def _decode(stream: IO[bytes], n_bytes: int, name: str, max_pixels: int) -> Image:
    from PIL import Image as pillow
    from PIL import ImageOps, UnidentifiedImageError

    if not n_bytes:
        raise ImageError(f"{name} is empty (0 bytes)", "fetch the file again")
    try:
        with (
            file_errors(name, ImageError, "fetch the file again, or leave it out with --skip-bad-images"),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # what Pillow finds odd and reads nevertheless
            try:
                opened = pillow.open(stream, formats=_FORMATS)
            except UnidentifiedImageError:
                raise ImageError(
                    f"{name} is not an image Pillow can read", "convert it to PNG or JPEG"
                ) from None
            width, height = opened.size
            if width * height > max_pixels:
                raise ImageError(
                    f"{name} has {width:,} × {height:,} pixels, more than the {max_pixels:,} allowed",
                    "resize it, or leave it out",
                )
            # Never more than two of what was decoded, an upright copy of it, and one of that in RGB.
            with reserve(width * height * (_PIXEL_BYTES.get(opened.mode, 4) + 4) + n_bytes):
                ImageOps.exif_transpose(opened, in_place=True)
                picture = to_rgb(opened)
                return picture.copy() if picture is opened else picture  # without the file's metadata
    except pillow.DecompressionBombError as error:
        raise ImageError(f"{name} is refused: {error}", "resize it, or leave it out") from None
    except MemoryError:
        raise ImageError(f"{name} does not fit into the memory", "resize it, or leave it out") from None


def _open_picture(path: Path) -> tuple[BinaryIO, int]:
    with file_errors(path, ImageError, "check the path, or the image folder given with --images"):
        handle = open_regular(path)
        size = os.fstat(handle.fileno()).st_size
        if size <= MAX_BYTES:
            return handle, size
        handle.close()
    raise ImageError(
        f"{path} has {size:,} bytes, more than the {MAX_BYTES:,} allowed", "resize it, or leave it out"
    )


def read_image(path: Path) -> Image:
    handle, size = _open_picture(path)
    with handle:
        return _decode(handle, size, str(path), MAX_PIXELS)


def read_image_bytes(path: Path) -> bytes:
    handle, size = _open_picture(path)
    with handle, file_errors(path, ImageError):
        return handle.read(size)


def image_content(path: Path) -> str:
    handle, _ = _open_picture(path)
    with handle, file_errors(path, ImageError):
        return fingerprint_stream(handle)


def capture_date(path: Path) -> str:
    """Return when an image was taken, as its EXIF says: ``2024-05-31 18:02:11``; empty where it does not."""

    from PIL import Image as pillow

    original, changed, details = 0x9003, 0x0132, 0x8769
    try:
        with file_errors(path, ImageError), open_regular(path) as handle, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exif = pillow.open(handle, formats=_FORMATS).getexif()
            given = str(exif.get_ifd(details).get(original) or exif.get(changed) or "")
    except (
        ImageError,
        SyntaxError,
        pillow.DecompressionBombError,
    ):  # that it cannot be decoded is found later
        return ""
    found = _EXIF_DATE.match(given)
    return f"{found[1]}-{found[2]}-{found[3]} {found[4]}" if found else ""


def check_inside(name: str, root: Path | str) -> None:
    """Raise an ImageError for a name that leaves a folder."""
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
    """Images that are files below one folder."""

    def __init__(self, root: Path | str, names: Sequence[str]) -> None:
        self.root: Path = Path(root)
        self.names = names
        for name in names:
            check_inside(name, self.root)

    def path(self, row: int) -> Path:
        return self.root / self.names[row]

    def read(self, row: int) -> Image:
        return read_image(self.path(row))

    def content(self, row: int) -> str:
        return image_content(self.path(row))


class Patch(NamedTuple):
    """Opaque pixels and where they go.

    Attributes:
        left, top: of the patch's first pixel, in pixels of the prepared image.
        pixels: (height, width, 3) uint8.
    """

    left: int
    top: int
    pixels: np.ndarray


class Overlay(Protocol):
    """Patches that are pasted over a preprocessed image."""

    @property
    def key(self) -> str:
        """Return a name by content: the same overlay has the same key."""

    def patches(self, width: int, height: int) -> Sequence[Patch]:
        """Return the patches for a prepared image of ``width`` × ``height`` pixels, the last on top."""


@dataclass(frozen=True)
class OverlaidPicture:
    """An image as an encoder takes it, and what goes over it once it is prepared."""

    picture: Image
    overlay: Overlay


@runtime_checkable
class OverlaySource(Protocol):
    """An image source whose images have overlays."""

    def overlay(self, row: int) -> Overlay | None:
        """Return what goes over the image of source row ``row``; None for nothing."""


def split_overlay(item: Any) -> tuple[Any, Overlay | None]:
    """Return an image and its overlay; anything else as it is, with None."""
    if isinstance(item, OverlaidPicture):
        return item.picture, item.overlay
    return item, None


def pasted(pixels: np.ndarray, overlay: Overlay) -> np.ndarray:
    """Return a copy of (height, width, 3) uint8 ``pixels`` with the overlay's patches on it."""
    copy = pixels.copy()
    for left, top, patch in overlay.patches(pixels.shape[1], pixels.shape[0]):
        copy[top : top + patch.shape[0], left : left + patch.shape[1]] = patch
    return copy
