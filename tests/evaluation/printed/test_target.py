"""Printed cells, how they are named, and the forms in which people have them."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused

from diptych.core.errors import UsageError
from diptych.evaluation.printed import Printed, as_target, cell_name, read_digits

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


def test_printed_alike() -> None:
    cell = Printed(12.3, 1)
    rounded = [value for value in (12.24, 12.25, 12.349, 12.36) if cell.is_print_of(value, "round")]
    cut_off = [value for value in (12.29, 12.3, 12.39, 12.4) if cell.is_print_of(value, "truncate")]
    assert (rounded, cut_off) == ([12.25, 12.349], [12.3, 12.39])
    assert str(Printed(84.5, 2)) == "84.50"
    assert Printed(50, 0).error(55) == pytest.approx(0.1)
    assert Printed(0, 1).error(0.2) == pytest.approx(2)  # of a zero, in units of the last digit
    assert Printed(42.4, 1).within(42.4 + 2.12, 0.05)  # 5 % to the digit
    assert not Printed(42.4, 1).within(42.4 + 2.13, 0.05)
    assert Printed(0.1, 1).within(0.149, 0.05)  # printed alike


def test_numbers_that_were_never_printed_have_four_digits() -> None:
    """As a program computes them; nine digits would be tried as shares of a billion queries."""
    target = as_target({"i2t R@1": 100 / 3, "i2t R@5": 50.0})
    assert target.to_dict() == {"i2t R@1": "33.3333", "i2t R@5": "50.0000"}
    found = [one.n for one in read_digits(target).sizes["i2t"]["round"].sizes]
    assert 3_000 in found
    assert max(found) < 200_000
    refused(UsageError, "33.3 with 9 digits", Printed, 33.3, 9)


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
        (["i2t R@1"], "is not NAME=NUMBER"),
        (["i2t R@1=high"], "is not NAME=NUMBER"),
        (["i2t R@1=nan"], "is not NAME=NUMBER"),
        (["=5"], "is not NAME=NUMBER"),
        (["i2t R@1=5", "i2t R@1=6"], "given twice: 5 and 6"),
        (["i2t R@1=-3"], "-3.0 is no share"),
        (["i2t R@1=101"], "101.0 is no share"),
    ],
)
def test_what_is_no_target(given: object, message: str) -> None:
    refused(UsageError, message, as_target, given)
