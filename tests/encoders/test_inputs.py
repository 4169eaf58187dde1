from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image
from refusals import refused

from diptych.core.errors import ImageError, NumericalError
from diptych.data.images import OverlaidPicture
from diptych.encoders.dual_encoder import unit_rows
from diptych.encoders.inputs import MAX_ASPECT, as_picture
from diptych.encoders.two_stage import ALBEF_CLEANING, BLIP_CLEANING, Cleaning


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
    refused(ImageError, message, as_picture, item, 7)


def test_an_overlay_is_never_dropped() -> None:
    item = OverlaidPicture(Image.new("RGB", (3, 3)), SimpleNamespace(key="k", patches=lambda *_: []))
    refused(ImageError, r"image 7 has something laid over it .* does not paste", as_picture, item, 7)


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
    refused(NumericalError, "embedding of text 41 is not finite", unit_rows, rows, "text", [40, 41, 42])


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
    uncut = replace(rule, words=1000)(text)
    assert rule.counts([text], [7], 50) == [7 if cleaned == uncut else 51]
