"""Targets in the forms in which people have them."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.core.errors import UsageError
from diptych.evaluation.printed import Printed, Target, as_target, cell_name, read_digits, signs

X_VLM = {"i2t R@1": "64.60", "i2t R@5": "84.48", "i2t R@10": "84.50"}


@pytest.mark.parametrize(
    "given",
    [
        {"i2t R@1": 64.6, "i2t R@5": 84.48, "i2t R@10": 84.5},
        {"i2t": [64.6, 84.48, 84.5]},
        {"i2t": np.array([64.6, 84.48, 84.5])},
        {"i2t": {"R@1": 64.6, 5: 84.48, "r10": 84.5}},
        {("i2t", "R@1"): 64.6, ("i2t", 5): 84.47999999999999, ("i2t", 10): 84.5},
        {"txt_r1": 64.6, "txt_r5": 84.48, "txt_r10": 84.5},  # as ALBEF, BLIP and X-VLM log them
        {"TR@1": "64.60", "TR@5": "84.48 %", "TR@10": "84.50"},
        ["i2t_R@1=64.6", "i2t/recall@5=84.48", "I2T r10 = 84.5"],
    ],
)
def test_the_same_target(given: object) -> None:
    assert as_target(given).to_dict() == X_VLM


def test_a_target_stays_one() -> None:
    target = Target.of({"i2t R@1": 64.6}, 2, "a table")
    assert as_target(target) is target
    assert as_target(target, decimals=1, label="another").to_dict() == {"i2t R@1": "64.6"}
    assert as_target(target, label="another").label == "another"
    assert as_target("i2t R@1=64").to_dict() == {"i2t R@1": "64"}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("img_r10", "t2i R@10"),
        ("IR@1", "t2i R@1"),
        ("text-to-image recall@5", "t2i R@5"),
        ("i2t  R-precision", "i2t R-precision"),
        ("t2i mAP@10", "t2i mAP@10"),
        ("i2t medr", "i2t medr"),
        ("T2I rsum", "t2i rsum"),
        ("RSUM", "rsum"),
        ("R@1", "R@1"),
    ],
)
def test_names(text: str, name: str) -> None:
    assert cell_name(text) == name


def test_numbers_that_were_never_printed_have_four_digits() -> None:
    """As a program computes them; nine digits would be tried as shares of a billion queries."""
    target = as_target({"i2t R@1": 100 / 3, "i2t R@5": 50.0})
    assert target.to_dict() == {"i2t R@1": "33.3333", "i2t R@5": "50.0000"}
    assert 3_000 in [one.n for one in read_digits(target).sizes["i2t"]["round"].sizes]
    assert max(one.n for one in read_digits(target).sizes["i2t"]["round"].sizes) < 200_000
    with pytest.raises(UsageError, match="33.3 with 9 digits"):
        Printed(33.3, 9)


def test_fractions_are_pointed_out() -> None:
    said = signs(as_target({"i2t": [0.646, 0.845, 0.845]}))
    assert "no recall is above 1 %; if these are fractions of 1, give them in per cent" in [
        one.text for one in said
    ]
    assert not any("fractions" in one.text for one in signs(as_target({"i2t": [0.7, 2.28, 2.45]})))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "type NoneType names no cells"),
        (5, "type int names no cells"),
        ({}, "no cell"),
        ([], "names no cells"),
        ({"i2t R@1": None}, "is None, no number"),
        ({"i2t R@1": float("inf")}, "no number"),
        ({"i2t": [1, 2]}, "i2t has 2 values"),
        ({"R@1": 5}, "names neither i2t nor t2i"),
        ({"i2t R@1": 5, "txt_r1": 6}, "i2t R@1 is given twice: 5 and 6"),
    ],
)
def test_what_is_no_target(given: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        as_target(given)
