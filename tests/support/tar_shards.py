"""Tar shards of tiny pictures, whole and damaged, written byte by byte where ``tarfile`` would not."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable
from pathlib import Path

from PIL import Image

BLOCK = 512
END = bytes(2 * BLOCK)


def png(colour: int) -> bytes:
    """A 4 × 4 picture of one colour."""
    content = io.BytesIO()
    Image.new("RGB", (4, 4), (colour, 0, 0)).save(content, "PNG")
    return content.getvalue()


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """A header that may claim any size."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


def member(name: str, content: bytes, kind: bytes = tarfile.REGTYPE) -> bytes:
    """A header and its content, filled up to whole blocks."""
    return header(name, len(content), kind) + content + bytes(-len(content) % BLOCK)


def shard(path: Path, members: Iterable[tuple[str, bytes]], end: bytes = END) -> Path:
    """Files in a tar file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(member(name, content) for name, content in members) + end)
    return path


def samples(*numbers: int, caption: str = "picture {}") -> list[tuple[str, bytes]]:
    """``00007.png`` and ``00007.txt``, for each number; the colour is the number."""
    return [
        file
        for number in numbers
        for file in (
            (f"{number:05d}.png", png(number)),
            (f"{number:05d}.txt", caption.format(number).encode()),
        )
    ]
