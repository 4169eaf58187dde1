"""Whether what came is a picture, and the file that it becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diptych.core.errors import ImageError
from diptych.core.files import write_bytes
from diptych.data.downloads.fetching import Fetched
from diptych.data.downloads.options import DownloadOptions
from diptych.data.downloads.trouble import Trouble
from diptych.data.images import decode_image
from diptych.data.products import picture_name

__all__ = ["keep_picture", "looked_at"]

_BEGINNINGS = (
    (b"\xff\xd8", "jpg"),
    (b"\x89PNG", "png"),
    (b"GIF8", "gif"),
    (b"RIFF", "webp"),
    (b"BM", "bmp"),
    (b"II", "tif"),
    (b"MM", "tif"),
    (b"P", "ppm"),
)
"""How files of the formats that are decoded begin, and their endings."""


def looked_at(fetched: Fetched, options: DownloadOptions) -> dict[str, Any]:
    """Decode what came: ``ending``, ``width``, ``height``.

    Raises:
        Trouble: it is no picture, is damaged, too large, or a placeholder.
    """
    try:
        picture = decode_image(fetched.content, "the picture", options.max_pixels)
    except ImageError as error:
        said = f" ({fetched.kind})" if fetched.kind else ""
        raise Trouble("no picture", f"{error.message}{said}") from None
    width, height = picture.size
    if min(width, height) < options.min_side:
        raise Trouble("placeholder", f"a picture of {width} × {height} pixels stands for one that is missing")
    ending = next(ending for beginning, ending in _BEGINNINGS if fetched.content.startswith(beginning))
    return {"ending": ending, "width": width, "height": height}


def keep_picture(folder: Path, identifier: str, fetched: Fetched, seen: dict[str, Any]) -> dict[str, Any]:
    """Write the bytes as they came under the item's name; gives ``file``, ``bytes``, ``width``, ``height``.

    A file of the same item with another ending is removed, so that there is one.

    Raises:
        StorageError: it cannot be written.
    """
    name = picture_name(identifier)
    file = f"{name}.{seen['ending']}"
    write_bytes(folder / file, fetched.content)
    for ending in {ending for _, ending in _BEGINNINGS} - {seen["ending"]}:
        (folder / f"{name}.{ending}").unlink(missing_ok=True)
    return {"file": file, "bytes": len(fetched.content), "width": seen["width"], "height": seen["height"]}
