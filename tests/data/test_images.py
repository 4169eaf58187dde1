from __future__ import annotations

import io
import itertools
import os
import struct
import threading
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from miniatures import karpathy
from PIL import Image, ImageOps
from refusals import refused

from diptych.core.errors import DataError, ImageError, UsageError
from diptych.data import images, loading
from diptych.data.images import FolderSource, decode_image, read_image, to_rgb
from diptych.data.loading import picture_contents, read_ahead
from diptych.data.readers import read_collection
from diptych.data.regions import RegionSource, open_regions


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


def test_every_mode_becomes_upright_rgb() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # rotate 90° clockwise to see it upright
    upright = decode_image(encoded(corners(), "PNG", exif=exif), "x")
    assert upright.size == (3, 2)
    assert upright.getpixel((2, 0)) == (255, 0, 0)
    assert upright.getpixel((0, 1)) == (0, 0, 255)
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
    cmyk = encoded(Image.new("CMYK", (4, 4), (0, 255, 255, 0)), "JPEG")
    assert decode_image(cmyk, "x").getpixel((1, 1))[0] > 240
    assert to_rgb(Image.new("RGBA", (1, 1), (0, 0, 0, 0))).getpixel((0, 0)) == (255, 255, 255)
    assert to_rgb(Image.new("LA", (1, 1), (7, 255))).getpixel((0, 0)) == (7, 7, 7)
    assert to_rgb(Image.new("1", (1, 1), 1)).getpixel((0, 0)) == (255, 255, 255)
    ramp = Image.fromarray(np.array([[-1.0, 0.0, 1.0, np.nan]], dtype=np.float32))
    assert [to_rgb(ramp).getpixel((x, 0))[0] for x in range(4)] == [0, 127, 255, 127]
    assert to_rgb(Image.fromarray(np.full((1, 1), 3.0, np.float32))).getpixel((0, 0)) == (0, 0, 0)


def test_what_cannot_be_decoded_is_named(tmp_path: Path) -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8))
    for content in (encoded(noise, kind) for kind in ("JPEG", "PNG", "WEBP")):
        assert refused(ImageError, r"cat\.jpg", decode_image, content[: len(content) // 2], "cat.jpg").fix
    for content in (b"", b"\0" * 100, b"not a picture", b"<svg></svg>"):
        refused(ImageError, r"^x\.png (is empty|is not an image)", decode_image, content, "x.png")
    refused(ImageError, "gone.png does not exist", read_image, tmp_path / "gone.png")
    with open(tmp_path / "huge.png", "wb") as handle:
        handle.truncate(600_000_000)  # sparse
    refused(ImageError, "huge.png has 600,000,000 bytes", read_image, tmp_path / "huge.png")
    for name in ("../x.png", "/etc/x.png", "a/../../x.png", "C:x.png", "..\\x.png", "x\0.png"):
        refused(ImageError, "points outside", FolderSource, tmp_path, [name])


def test_strips_make_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    modes = ("1", "L", "P", "LA", "RGBA", "CMYK", "I", "I;16", "I;16B", "F")
    for mode, orientation in itertools.product(modes, (1, 6)):
        check_strips(mode, orientation, monkeypatch)


def check_strips(mode: str, orientation: int, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (37, 23, 4), dtype=np.uint8)
    if mode in ("I", "F"):
        wide = noise[..., 0].astype({"I": "i4", "F": "f4"}[mode]) * 99
        picture = Image.frombytes(mode, (23, 37), wide.tobytes())
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
    with monkeypatch.context() as patch:
        patch.setattr(images, "_STRIP_PIXELS", 100)
        strips = decode_image(content, "x") if content else to_rgb(picture)
    assert whole.mode == "RGB"
    assert strips.size == whole.size == ((37, 23) if orientation == 6 and content else (23, 37))
    assert strips.tobytes() == whole.tobytes()


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "device.png").symlink_to("/dev/zero")
    (tmp_path / "loop.png").symlink_to(tmp_path / "loop.png")
    (tmp_path / "folder.png").mkdir()
    os.mkfifo(tmp_path / "pipe.png")
    source = FolderSource(tmp_path, [f"{kind}.png" for kind in ("device", "pipe", "folder", "loop")])
    for read, row in itertools.product((source.read, source.content), range(4)):
        refused(ImageError, r"\.png (cannot be read|is a folder)", read, row)


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
    bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0"))
    bomb += chunk(b"IEND", b"")
    refused(ImageError, "bomb.png", decode_image, bomb, "bomb.png")
    with pytest.raises(ImageError, match="4 × 4 pixels, more than the 15 allowed"):
        decode_image(encoded(Image.new("RGB", (4, 4))), "x", max_pixels=15)


def test_results_and_errors_come_in_order() -> None:
    for workers in (0, 1, 4):
        assert list(read_ahead(lambda x: x * x, range(50), workers)) == [x * x for x in range(50)]
    results = read_ahead(lambda x: 1 // (3 - x), range(10), workers=3)
    assert [next(results) for _ in range(3)] == [0, 0, 1]
    refused(ZeroDivisionError, "division", next, results)


def test_results_that_nobody_takes_hold_the_next_ones_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "MAX_DECODED_BYTES", 1_000)
    begun: list[int] = []

    def large(row: int) -> np.ndarray:
        begun.append(row)
        return np.zeros(600, dtype=np.uint8)

    results = read_ahead(large, range(40), workers=4, depth=30)
    assert [next(results).nbytes for _ in range(3)] == [600] * 3
    time.sleep(0.05)
    assert len(begun) < 12  # two that wait to be taken, and one per thread
    assert len(list(results)) == 37
    assert sorted(begun) == list(range(40))
    left = read_ahead(large, range(40), workers=4, depth=30)
    next(left)
    left.close()  # type: ignore[attr-defined]


def features(n: int, *shape: int, kind: str = "float32") -> np.ndarray:
    return np.random.default_rng(n).normal(size=(n, *shape)).astype(kind)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three images in Karpathy's JSON, with pictures, and features in the JSON's order."""
    karpathy(tmp_path, {f"val2014/{name}.png": ("test", [f"one {name}"]) for name in "abc"}, "tiny")
    np.save(tmp_path / "regions.npy", features(3, 4, 5))
    return tmp_path


def test_regions_by_order_and_by_name(folder: Path) -> None:
    found = read_collection(folder, regions=folder / "regions.npy")
    assert found.holds == "regions"
    assert "3 images as region features" in found.describe()
    assert np.array_equal(found.item(2), features(3, 4, 5)[2])
    assert np.array_equal(found.subset([2, 0]).item(0), features(3, 4, 5)[2])
    # Reports still find the pictures.
    assert found.image(1).size == (4, 4)
    assert read_collection(folder).holds == "pictures"
    np.save(folder / "more.npy", features(4, 4, 5))
    (folder / "ids.txt").write_text("c\nelsewhere\nb.png\ntrain2014/a.jpg\n")
    found = read_collection(folder, regions=folder / "more.npy", region_ids=folder / "ids.txt")
    for image, row in enumerate((3, 2, 0)):
        assert np.array_equal(found.item(image), features(4, 4, 5)[row])
    before = picture_contents(read_collection(folder, regions=folder / "regions.npy"))
    values = features(3, 4, 5)
    values[1, 2, 3] += 1
    np.save(folder / "regions.npy", values)
    after = picture_contents(read_collection(folder, regions=folder / "regions.npy"))
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, False, True]


def test_what_are_no_features_or_ids(folder: Path) -> None:
    np.save(folder / "more.npy", features(4, 4, 5))
    given = {"regions": folder / "more.npy", "region_ids": folder / "ids.txt"}
    refused(
        DataError, "features of 4 images, the data has 3", read_collection, folder, regions=given["regions"]
    )
    refused(
        UsageError, "region_ids .*ids.txt without", read_collection, folder, region_ids=given["region_ids"]
    )
    refused(DataError, "ids.txt does not exist", read_collection, folder, **given)
    for ids, message in (
        ("a\nb\nc\n", "names 3 images, .* holds features of 4"),
        ("a\nb\nd\ne\n", "does not name 1 of 3 images, the first: val2014/c.png"),
        ("a\nb\nc\nx/a.png\n", "names 'a' twice, the second time in line 4"),
    ):
        given["region_ids"].write_text(ids)
        refused(DataError, message, read_collection, folder, **given)
    file = folder / "x.npy"
    refused(DataError, r"x\.npy does not exist", open_regions, file)
    for array, message in (
        (np.zeros((3, 2), np.int64), r"holds int64 of shape \(3, 2\), no region features"),
        (np.zeros(3), r"holds float64 of shape \(3,\)"),
        (np.zeros((3, 1, 1, 1)), r"of shape \(3, 1, 1, 1\)"),
        (np.array([{}], dtype=object), "is corrupt"),
    ):
        np.save(file, array, allow_pickle=True)
        refused(DataError, message, open_regions, file)


def test_several_arrays_are_one_and_one_vector_is_one_region() -> None:
    source = RegionSource([features(2, 4, 5), features(3, 4, 5, kind="float16")], "both")
    assert source.shape == (4, 5)
    assert np.array_equal(source.regions(1), features(2, 4, 5)[1])
    assert source.regions(2).dtype == np.float32
    assert np.array_equal(source.regions(4), features(3, 4, 5, kind="float16")[2].astype(np.float32))
    assert RegionSource([features(2, 5)], "flat").regions(1).shape == (1, 5)
    with pytest.raises(DataError, match=r"different shapes: \[\(1, 5\), \(4, 5\)\]"):
        RegionSource([features(2, 4, 5), features(2, 5)], "mixed")
    refused(ImageError, "both holds region features and no images", source.read, 0)


def write(folder: Path, split: str, rows: np.ndarray, captions: int) -> None:
    folder.mkdir(exist_ok=True)
    np.save(folder / f"{split}_ims.npy", rows)
    lines = [f"{split} caption {number}\n" for number in range(captions)]
    (folder / f"{split}_caps.txt").write_text("".join(lines))


def test_training_features_once_test_features_five_times(tmp_path: Path) -> None:
    write(tmp_path, "test", np.repeat(features(3, 2, 4), 5, axis=0), 15)
    write(tmp_path, "dev", np.repeat(features(2, 2, 4), 5, axis=0), 10)
    write(tmp_path, "train", features(4, 2, 4), 20)
    found = read_collection(tmp_path)
    assert found.split_sizes == {"train": 4, "val": 2, "test": 3}
    assert found.captions_per_image.tolist() == [5] * 9
    assert found.notes == (
        "dev_ims.npy holds every image 5 times; it is read once",
        "test_ims.npy holds every image 5 times; it is read once",
    )
    test = found.split("test")
    assert test.image_ids == ["test-0", "test-1", "test-2"]
    assert test.captions_of(1) == [f"test caption {number}" for number in range(5, 10)]
    for split, rows in {"train": 4, "val": 2, "test": 3}.items():
        part = found.split(split)
        assert all(np.array_equal(part.item(row), features(rows, 2, 4)[row]) for row in range(part.n_images))


def test_captions_of_features(tmp_path: Path) -> None:
    rows = np.repeat(features(3, 2, 4), 5, axis=0)
    rows[14, 1, 3] += 1e-3  # the very last number
    write(tmp_path, "train", rows, 15)
    found = read_collection(tmp_path)
    assert found.n_images == 15
    assert found.captions_per_image.tolist() == [1] * 15
    assert found.notes == ()


def test_captions_that_are_no_multiple_of_images_or_missing(tmp_path: Path) -> None:
    write(tmp_path, "test", features(3, 2, 4), 10)
    refused(DataError, "test: 10 captions for 3 images", read_collection, tmp_path)
    write(tmp_path, "test", features(3, 2, 4), 0)
    refused(DataError, ": 0 captions for 3 images", read_collection, tmp_path)
    write(tmp_path, "test", features(2, 2, 4), 4)
    (tmp_path / "dev_caps.txt").write_text("one\n")
    refused(DataError, r"dev_ims.npy does not exist", read_collection, tmp_path)
    refused(DataError, r"no \*_caps.txt", read_collection, tmp_path / "images", reader="precomp")
