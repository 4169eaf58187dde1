from __future__ import annotations

import io
import os
import struct
import threading
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps
from refusals import refused

from diptych.core.errors import ImageError
from diptych.data import images, loading
from diptych.data.images import FolderSource, decode_image, read_image, to_rgb
from diptych.data.loading import read_ahead


def encoded(picture: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def corners() -> Image.Image:
    """2 × 3: red top left, blue bottom right, black elsewhere."""
    picture = Image.new("RGB", (2, 3))
    picture.putpixel((0, 0), (255, 0, 0))
    picture.putpixel((1, 2), (0, 0, 255))
    return picture


def test_exif_orientation_is_applied() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # rotate 90° clockwise to see it upright
    upright = decode_image(encoded(corners(), "PNG", exif=exif), "x")
    assert upright.size == (3, 2)
    assert upright.getpixel((2, 0)) == (255, 0, 0)
    assert upright.getpixel((0, 1)) == (0, 0, 255)


def test_palettes_sixteen_bits_and_animations() -> None:
    picture = Image.new("P", (2, 1))
    picture.putpalette([10, 20, 30, 200, 100, 50])
    picture.putpixel((1, 0), 1)
    decoded = decode_image(encoded(picture, transparency=0), "x")
    assert decoded.getpixel((0, 0)) == (255, 255, 255)
    assert decoded.getpixel((1, 0)) == (200, 100, 50)
    values = np.array([[0, 256, 32768, 65535]], dtype=np.uint16)
    decoded = decode_image(encoded(Image.fromarray(values)), "x")
    assert [decoded.getpixel((x, 0)) for x in range(4)] == [(0,) * 3, (1,) * 3, (128,) * 3, (255,) * 3]
    frames = [Image.new("RGB", (2, 2), colour) for colour in ("red", "blue")]
    content = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert decode_image(content, "x").getpixel((0, 0)) == (255, 0, 0)  # the first frame


def test_cmyk_alpha_grey_one_bit_and_float_become_rgb() -> None:
    cmyk = encoded(Image.new("CMYK", (4, 4), (0, 255, 255, 0)), "JPEG")
    assert decode_image(cmyk, "x").getpixel((1, 1))[0] > 240
    assert to_rgb(Image.new("RGBA", (1, 1), (0, 0, 0, 0))).getpixel((0, 0)) == (255, 255, 255)
    assert to_rgb(Image.new("LA", (1, 1), (7, 255))).getpixel((0, 0)) == (7, 7, 7)
    assert to_rgb(Image.new("1", (1, 1), 1)).getpixel((0, 0)) == (255, 255, 255)
    ramp = Image.fromarray(np.array([[-1.0, 0.0, 1.0, np.nan]], dtype=np.float32))
    assert [to_rgb(ramp).getpixel((x, 0))[0] for x in range(4)] == [0, 127, 255, 127]
    assert to_rgb(Image.fromarray(np.full((1, 1), 3.0, np.float32))).getpixel((0, 0)) == (0, 0, 0)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_truncated_picture_is_named(kind: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    content = encoded(Image.fromarray(noise), kind)
    assert refused(ImageError, r"cat\.jpg", decode_image, content[: len(content) // 2], "cat.jpg").fix


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"not a picture", b"<svg></svg>"])
def test_what_is_no_picture_is_named(content: bytes) -> None:
    refused(ImageError, r"^x\.png (is empty|is not an image)", decode_image, content, "x.png")


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "RGBA", "CMYK", "I", "I;16", "I;16B", "F"])
@pytest.mark.parametrize("orientation", [1, 6])
def test_strips_make_the_picture(mode: str, orientation: int, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (37, 23, 4), dtype=np.uint8)
    if mode in ("I", "F"):
        picture = Image.frombytes(
            mode, (23, 37), (noise[..., 0].astype({"I": "i4", "F": "f4"}[mode]) * 99).tobytes()
        )
    elif mode.startswith("I;16"):
        picture = Image.frombytes(mode, (23, 37), noise[..., :2].tobytes())
    else:
        picture = Image.fromarray(noise, "RGBA").convert(mode)
        if mode == "P":
            picture.info["transparency"] = 5
    exif = Image.Exif()
    exif[0x0112] = orientation
    # A TIFF keeps each of these modes; where a file cannot, the picture itself is converted.
    content = encoded(picture, "TIFF", exif=exif) if mode not in ("P", "I;16B") else b""
    whole = decode_image(content, "x") if content else to_rgb(picture)
    monkeypatch.setattr(images, "_STRIP_PIXELS", 100)
    strips = decode_image(content, "x") if content else to_rgb(picture)
    assert whole.mode == "RGB"
    assert strips.size == whole.size == ((37, 23) if orientation == 6 and content else (23, 37))
    assert strips.tobytes() == whole.tobytes()


@pytest.mark.parametrize("kind", ["device", "pipe", "folder", "loop"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.png"
    links = {"device": "/dev/zero", "loop": path}
    if kind in links:
        path.symlink_to(links[kind])
    else:
        os.mkfifo(path) if kind == "pipe" else path.mkdir()
    source = FolderSource(tmp_path, ["x.png"])
    for read in (source.read, source.content):
        refused(ImageError, r"x\.png (cannot be read|is a folder)", read, 0)


def test_all_threads_together_decode_no_more_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    most = now = 0
    lock = threading.Lock()

    def look(opened: Image.Image, in_place: bool) -> None:
        nonlocal most, now
        with lock:
            now += opened.width * opened.height * 8
            most = max(most, now)
        time.sleep(0.01)
        with lock:
            now -= opened.width * opened.height * 8

    monkeypatch.setattr(ImageOps, "exif_transpose", look)
    monkeypatch.setattr(loading, "MAX_DECODED_BYTES", 100_000)
    content = encoded(Image.new("RGB", (64, 64)))  # 32,768 bytes decoded
    list(read_ahead(lambda row: decode_image(content, "x"), range(24), workers=12))
    assert 32_768 <= most <= 3 * 32_768
    large = encoded(Image.new("RGB", (200, 200)))  # more than allowed: it comes alone
    most = 0
    list(read_ahead(lambda row: decode_image(large, "x"), range(4), workers=4))
    assert most == 320_000


def test_decompression_bomb_is_refused_before_a_pixel_is_decoded() -> None:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0)
    bomb = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0"))
        + chunk(b"IEND", b"")
    )
    refused(ImageError, "bomb.png", decode_image, bomb, "bomb.png")
    with pytest.raises(ImageError, match="4 × 4 pixels, more than the 15 allowed"):
        decode_image(encoded(Image.new("RGB", (4, 4))), "x", max_pixels=15)


def test_missing_file_and_huge_file_are_named(tmp_path: Path) -> None:
    refused(ImageError, "gone.png does not exist", read_image, tmp_path / "gone.png")
    with open(tmp_path / "huge.png", "wb") as handle:
        handle.truncate(600_000_000)  # sparse
    refused(ImageError, "huge.png has 600,000,000 bytes", read_image, tmp_path / "huge.png")


@pytest.mark.parametrize(
    "name", ["../x.png", "/etc/x.png", "a/../../x.png", "C:x.png", "..\\x.png", "x\0.png"]
)
def test_names_cannot_leave_the_folder(tmp_path: Path, name: str) -> None:
    refused(ImageError, "points outside", FolderSource, tmp_path, [name])


def test_content_is_of_bytes(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(encoded(corners()))
    source = FolderSource(tmp_path, ["a.png", "b.png", "c.png"])
    assert source.content(0) == source.content(1)
    assert source.read(0).size == (2, 3)
    refused(ImageError, r"c\.png does not exist", source.content, 2)
