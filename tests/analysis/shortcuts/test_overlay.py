from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from diptych.analysis.shortcuts import DigitImages, DigitOverlay, digit_places, digits_of, load_digits
from diptych.analysis.shortcuts.overlay import check_fit
from diptych.core.errors import ImageError
from diptych.data.overlay import pasted

DRAWN = load_digits("drawn")


def overlay(*codes: int, size: int = 28, images: DigitImages = DRAWN) -> DigitOverlay:
    digits = digits_of(np.array(codes))
    pictures = (np.arange(digits.size).reshape(digits.shape) * 7) % 40
    return DigitOverlay(digits, pictures, images.at_size(size))


def as_published(pixels: np.ndarray, code: str, pictures: list[np.ndarray]) -> np.ndarray:
    """Pillow's own paste of greys into RGB, side by side, the code's digits evenly spaced."""
    image = Image.fromarray(pixels.copy())
    for place, picture in enumerate(pictures):
        image.paste(Image.fromarray(picture), (place * (image.size[0] // 6), 0))
    assert len(code) == len(pictures) == 6
    return np.asarray(image)


@pytest.mark.parametrize("width", [168, 200, 224, 299])
def test_pixel_for_pixel_as_pillow_pastes(width: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (180, width, 3)).astype(np.uint8)
    made = overlay(39_965)
    pictures = [DRAWN.classes[int(d)][n] for d, n in zip("039965", made.pictures[0], strict=True)]
    np.testing.assert_array_equal(pasted(pixels, made), as_published(pixels, "039965", pictures))


def test_places_in_a_picture_of_224_pixels() -> None:
    assert digit_places(224, 1, 28) == [(0, 0), (37, 0), (74, 0), (111, 0), (148, 0), (185, 0)]
    patches = overlay(123_456).patches(224, 224)
    assert [patch[:2] for patch in patches] == digit_places(224, 1, 28)
    assert {patch.pixels.shape for patch in patches} == {(28, 28, 3)}
    for digit, patch, number in zip(range(1, 7), patches, overlay(1).pictures[0], strict=True):
        for channel in range(3):
            np.testing.assert_array_equal(patch.pixels[:, :, channel], DRAWN.classes[digit][number])


def test_opaque_and_nowhere_else() -> None:
    pixels = np.full((224, 224, 3), 77, np.uint8)
    found = pasted(pixels, overlay(0))
    covered = np.zeros((224, 224), dtype=bool)
    for left in (0, 37, 74, 111, 148, 185):
        covered[:28, left : left + 28] = True
    assert (found[~covered] == 77).all()
    assert (found[:28, 37] == found[:28, 37, :1]).all()  # grey
    corner = found[0, 37]
    assert corner.tolist() == [0, 0, 0]  # black paper hides what was there


def test_codes_stand_below_each_other() -> None:
    two = overlay(111_111, 222_222, size=10)
    patches = two.patches(64, 64)
    assert [patch[:2] for patch in patches[:2]] == [(0, 0), (10, 0)]
    assert [patch[:2] for patch in patches[6:8]] == [(0, 10), (10, 10)]
    np.testing.assert_array_equal(patches[6].pixels[:, :, 0], DRAWN.at_size(10).grey(2, 42 % 40))


def test_the_key_is_what_is_shown() -> None:
    base = overlay(1234)
    assert base.key == overlay(1234).key
    other = DigitOverlay(base.digits, base.pictures[:, ::-1], base.drawn)
    keys = {base.key, other.key, overlay(1235).key, overlay(1234, size=20).key, overlay(1234, 1234).key}
    assert len(keys) == 5


@pytest.mark.parametrize(
    ("width", "height", "rows", "size", "message"),
    [
        (167, 224, 1, 28, r"1 row of 6 digits of 28 pixels take 168 × 28 pixels, the picture has 167 × 224"),
        (
            224,
            27,
            1,
            28,
            r"take 168 × 28 pixels, the picture has 224 × 27 \(set shortcuts.digit_size to at most 27",
        ),
        (224, 224, 9, 28, r"9 rows of 6 digits of 28 pixels take 168 × 252 .* at most 24, or prepare larger"),
        (20, 20, 1, 5, r"the picture has 20 × 20 \(prepare larger pictures"),
    ],
)
def test_a_picture_smaller_than_its_digits(
    width: int, height: int, rows: int, size: int, message: str
) -> None:
    with pytest.raises(ImageError, match=message):
        check_fit(width, height, rows, size)
    with pytest.raises(ImageError, match=message):
        overlay(*range(rows), size=size).patches(width, height)


def test_digits_that_just_fit() -> None:
    check_fit(168, 28, 1, 28)
    check_fit(168, 56, 2, 28)
    assert len(overlay(5, 6).patches(168, 56)) == 12
