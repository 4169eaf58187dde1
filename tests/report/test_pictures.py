from __future__ import annotations

import base64
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from diptych.core.errors import ImageError
from diptych.report.pictures import MAX_THUMBNAIL_BYTES, Thumbnail, Thumbnails, fit, read_picture


def encoded(thumbnail: Thumbnail) -> bytes:
    return base64.b64decode(thumbnail.split(",")[1])


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "I;16", "1", "F"])
def test_every_mode_becomes_rgb(mode):
    assert read_picture(Image.new(mode, (4, 3)), "i").mode == "RGB"


def test_turned_pictures_are_put_upright():
    content = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (40, 20)).save(content, "JPEG", exif=exif)
    assert read_picture(lambda: Image.open(content), "i").size == (20, 40)


def test_truncated_file_is_an_image_error_with_its_name():
    content = io.BytesIO()
    Image.effect_noise((64, 64), 50).save(content, "JPEG")
    half = io.BytesIO(content.getvalue()[: len(content.getvalue()) // 2])
    with pytest.raises(ImageError, match="i42"):
        read_picture(lambda: Image.open(half), "i42")


def test_picture_without_pixels_is_an_image_error():
    with pytest.raises(ImageError, match="0 × 5"):
        read_picture(Image.new("RGB", (0, 5)), "i")


def test_mistakes_of_the_caller_are_not_hidden():
    with pytest.raises(ZeroDivisionError):
        Thumbnails(64).make(lambda: Image.new("RGB", (1 // 0, 1)), "i")


@given(st.integers(1, 400), st.integers(1, 400), st.integers(1, 100), st.booleans())
def test_fit_keeps_proportions_within_the_square(width, height, side, enlarge):
    fitted = fit(Image.new("RGB", (width, height)), side, enlarge=enlarge)
    assert max(fitted.size) <= side
    if max(width, height) <= side and not enlarge:
        assert fitted.size == (width, height)
    else:
        assert max(fitted.size) == side
        scale = side / max(width, height)
        assert abs(fitted.width - width * scale) <= 1
        assert abs(fitted.height - height * scale) <= 1


def test_thumbnail_is_bounded_in_bytes_even_for_noise():
    thumbnail = Thumbnail.of(Image.effect_noise((1200, 1200), 200).convert("RGB"), 1200)
    assert len(encoded(thumbnail)) <= MAX_THUMBNAIL_BYTES
    with Image.open(io.BytesIO(encoded(thumbnail))) as picture:
        assert picture.size == (thumbnail.width, thumbnail.height)


def test_unreadable_pictures_are_counted_once_each(picture, broken):
    thumbnails = Thumbnails(64)
    assert thumbnails.make(picture, "good") is not None
    assert thumbnails.note() == ""
    for name in ("a", "b", "a"):
        assert thumbnails.make(broken, name) is None
    assert thumbnails.note() == "2 pictures could not be read; a labelled placeholder stands in: a, b."
    for name in "cdefg":
        thumbnails.make(broken, name)
    assert thumbnails.note().endswith(": a, b, c, d, e and 2 more.")
