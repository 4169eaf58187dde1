"""Images of a service: uploads that are decoded within limits, and thumbnails of items, kept on disk."""

import asyncio
import base64
import binascii
import io
from pathlib import Path

from PIL.Image import Image, Resampling

from diptych.core.errors import ImageError
from diptych.core.files import cache_root, write_bytes
from diptych.core.fingerprint import fingerprint
from diptych.data.images import decode_image
from diptych.report.searcher import Searcher
from diptych.service.problems import ProblemError

WIDTHS = (160, 320, 640, 1280)
"""Pixels of the longer side that thumbnails have: a request gets the next larger one."""


def image_bytes(given: str) -> bytes:
    """Return the bytes of an image in base64 or a data: URL; what is an address is refused, not fetched."""
    text = given.strip()
    if text[:5].lower() == "data:":
        head, comma, text = text.partition(",")
        if not comma or not head.lower().endswith(";base64"):
            raise ImageError("the data: URL is not in base64", "data:image/png;base64,…")
    elif ":" in text[:12]:
        raise ImageError("an address is no image, and none is fetched", "send the image itself, in base64")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ImageError(
            f"the image is not in base64: {error}", "encode the file's bytes in base64"
        ) from None


async def decoded(given: str, max_pixels: int) -> Image:
    """Return an image of a request, decoded in another thread."""
    return await asyncio.to_thread(lambda: decode_image(image_bytes(given), "the image", max_pixels))


class Thumbnails:
    """JPEG files of items, made when they are first asked for."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_root() / "thumbnails"
        self._together = asyncio.Semaphore(2)

    async def get(self, searcher: Searcher, name: str, width: int) -> tuple[str, bytes]:
        """Return the tag and the bytes of the thumbnail of an item."""
        side = next((side for side in WIDTHS if side >= width), WIDTHS[-1])
        path = searcher.path(name)
        stat = Path(path).stat() if path and Path(path).is_file() else None
        content = [str(stat.st_mtime_ns), str(stat.st_size), path] if stat else []
        key = fingerprint(str(searcher.index.about.get("data")), name, *content)
        file = self.folder / key[:2] / f"{key}-{side}.jpg"
        if not file.is_file():
            async with self._together:
                await asyncio.to_thread(self._make, searcher, name, side, file)
        return f"{key}-{side}", await asyncio.to_thread(file.read_bytes)

    def _make(self, searcher: Searcher, name: str, side: int, file: Path) -> None:
        check_inside(searcher, name)
        image = searcher.image(name)
        image.thumbnail((side, side), Resampling.LANCZOS)
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=85)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(file, buffer.getvalue())


def check_inside(searcher: Searcher, name: str) -> None:
    """Refuse a file that a link leads to: out of its folder, or out of its collection's where that is open."""
    if path := searcher.path(name):
        file, source = Path(path), getattr(searcher.collection, "source", None)
        root = Path(getattr(source, "root", file.parent))
        own = root if file.is_relative_to(root) else file.parent
        if not file.resolve().is_relative_to(own.resolve()):
            problem = f"the image of {name!r} lies outside of its folder"
            raise ProblemError(404, problem, "copy it into the folder")
