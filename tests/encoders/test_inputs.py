from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from diptych.core.errors import CaptionError, ImageError, NumericalError, UsageError
from diptych.data.images import OverlaidPicture
from diptych.encoders.dual_encoder import unit_rows
from diptych.encoders.inputs import MAX_ASPECT, as_picture, check_texts
from diptych.encoders.text_cleaning import ALBEF_CLEANING, BLIP_CLEANING, Cleaning


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


def test_texts() -> None:
    texts = ["", "ein Hündchen", "🐶", np.str_("a dog")]
    assert check_texts(texts) is texts
    with pytest.raises(UsageError, match="got the text 'a dog'"):
        check_texts("a dog")
    with pytest.raises(CaptionError, match=r"text 1 is a bytes \(b'dog'\)"):
        check_texts(["a", b"dog"])  # type: ignore[list-item]
    with pytest.raises(CaptionError, match=r"text 0 .* holds half a surrogate pair"):
        check_texts(["\udc00"])


def test_by_hand() -> None:
    rows = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -2.0]]), "image", [0, 1, 2])
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.0, 0.0], [0.0, -1.0]], atol=1e-7)


@given(arrays.arrays(np.float32, (4, 3), elements=st.floats(-1e6, 1e6, width=32)))
def test_length_is_one_or_nearly_zero(rows: np.ndarray) -> None:
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    unit = np.linalg.norm(unit_rows(rows, "image", range(4)).astype(np.float64), axis=1)
    np.testing.assert_allclose(unit[lengths > 1e-11], 1.0, atol=1e-6)
    assert np.all(unit <= 1.0 + 1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_row_that_is_not_finite_is_named(value: float) -> None:
    rows = np.ones((3, 2), np.float32)
    rows[1, 0] = value
    with pytest.raises(NumericalError, match="embedding of text 41 is not finite"):
        unit_rows(rows, "text", [40, 41, 42])


GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "pre_caption.json").read_text(encoding="utf-8"))
RULES = {"albef": ALBEF_CLEANING, "xvlm": ALBEF_CLEANING, "blip": BLIP_CLEANING}


@pytest.mark.parametrize("model", RULES)
def test_golden(model: str) -> None:
    """Outputs of the published code."""
    assert [RULES[model](caption) for caption in GOLDEN["captions"]] == GOLDEN["out"][model]


@pytest.mark.parametrize("rule", [ALBEF_CLEANING, BLIP_CLEANING])
@given(text=st.text(st.sampled_from("aB .,'-/\n\t!(~"), max_size=80))
def test_properties(rule: Cleaning, text: str) -> None:
    cleaned = rule(text)
    assert not set(cleaned) & set(rule.marks)
    assert cleaned == cleaned.lower()
    assert "  " not in cleaned
    assert len(cleaned.split(" ")) <= 30
    assert rule.cuts(text) == (cleaned != rule.whole(text))
