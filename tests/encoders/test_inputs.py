from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from diptych.core.errors import CaptionError, ImageError, UsageError
from diptych.data.overlay import OverlaidPicture
from diptych.encoders.inputs import MAX_ASPECT, as_picture, check_texts


def test_pictures_of_every_kind() -> None:
    colours = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    picture = as_picture(colours, 0)
    assert (picture.mode, picture.size) == ("RGB", (4, 2))
    np.testing.assert_array_equal(np.asarray(picture), colours)
    assert as_picture(picture, 0) is picture
    grey = as_picture(colours[:, :, 0], 0)
    np.testing.assert_array_equal(np.asarray(grey)[:, :, 2], colours[:, :, 0])
    assert as_picture(Image.new("CMYK", (3, 3)), 0).mode == "RGB"


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (np.zeros((2, 2, 3), np.float32), r"image 7 is a float32 array of shape \(2, 2, 3\)"),
        (np.zeros((2, 2, 4), np.uint8), r"image 7 is a uint8 array of shape \(2, 2, 4\)"),
        (np.zeros((0, 2, 3), np.uint8), "image 7 has no pixels"),
        ("a.png", "image 7 is a str"),
        (None, "image 7 is a NoneType"),
        (Image.new("RGB", (0, 3)), "image 7 is 0 × 3 pixels"),
        (Image.new("RGB", (MAX_ASPECT + 1, 1)), "image 7 is 501 × 1 pixels"),
    ],
)
def test_other_things_are_named(item: object, message: str) -> None:
    with pytest.raises(ImageError, match=message):
        as_picture(item, 7)


def test_an_overlay_is_never_dropped() -> None:
    item = OverlaidPicture(Image.new("RGB", (3, 3)), SimpleNamespace(key="k", patches=lambda *_: []))
    with pytest.raises(ImageError, match=r"image 7 has something laid over it .* does not paste"):
        as_picture(item, 7)


def test_the_longest_shape_allowed() -> None:
    assert as_picture(Image.new("RGB", (MAX_ASPECT, 1)), 0).size == (MAX_ASPECT, 1)


def test_texts() -> None:
    texts = ["", "ein Hündchen", "🐶", np.str_("a dog")]
    assert check_texts(texts) is texts
    with pytest.raises(UsageError, match="got the text 'a dog'"):
        check_texts("a dog")
    with pytest.raises(CaptionError, match=r"text 1 is a bytes \(b'dog'\)"):
        check_texts(["a", b"dog"])  # type: ignore[list-item]
    with pytest.raises(CaptionError, match=r"text 0 .* holds half a surrogate pair"):
        check_texts(["\udc00"])
