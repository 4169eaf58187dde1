"""Printed cells and how they are named."""

from __future__ import annotations

import pytest

from diptych.core.errors import UnknownNameError, UsageError
from diptych.evaluation.printed import Printed, Target, cell_parts, parse_target


def test_cells_have_the_decimals_of_the_one_with_the_most() -> None:
    target = parse_target(["i2t R@1=64.6", "i2t R@5 = 84.48", "i2t  R@10=84.5 %"])
    assert target.to_dict() == {"i2t R@1": "64.60", "i2t R@5": "84.48", "i2t R@10": "84.50"}
    assert parse_target(["i2t R@1=64"], decimals=1).to_dict() == {"i2t R@1": "64.0"}


def test_names_of_cells() -> None:
    assert cell_parts("i2t R@5") == ("i2t", "R@5")
    assert cell_parts("t2i rsum") == ("t2i", "rsum")
    assert cell_parts("rsum") == (None, "rsum")
    for wrong in ("R@5", "FLOPs", "both R@1"):
        with pytest.raises(UsageError, match="names neither i2t nor t2i"):
            cell_parts(wrong)
    with pytest.raises(UnknownNameError, match="nonsense"):
        cell_parts("i2t nonsense")


def test_printed_alike() -> None:
    cell = Printed(12.3, 1)
    assert [cell.is_print_of(value, "round") for value in (12.24, 12.25, 12.349, 12.36)] == [
        False,
        True,
        True,
        False,
    ]
    assert [cell.is_print_of(value, "truncate") for value in (12.29, 12.3, 12.39, 12.4)] == [
        False,
        True,
        True,
        False,
    ]
    assert str(Printed(84.5, 2)) == "84.50"


def test_distance_and_tolerance() -> None:
    assert Printed(50, 0).error(55) == pytest.approx(0.1)
    assert Printed(0, 1).error(0.2) == pytest.approx(2)  # of a zero, in units of the last digit
    assert Printed(42.4, 1).within(42.4 + 2.12, 0.05)  # 5 % to the digit
    assert not Printed(42.4, 1).within(42.4 + 2.13, 0.05)
    assert Printed(0.1, 1).within(0.149, 0.05)  # printed alike


def test_recalls_and_directions() -> None:
    target = Target.of({"t2i R@10": 30, "t2i R@1": 10, "t2i MRR": 17, "t2i rsum": 70}, 1)
    assert {cutoff: cell.value for cutoff, cell in target.recalls("t2i").items()} == {1: 10, 10: 30}
    assert target.recalls("i2t") == {}


def test_sums_of_printed_recalls_are_no_cells_of_their_own() -> None:
    recalls = {f"t2i R@{k}": 10.0 * k for k in (1, 5, 10)}
    target = Target.of({**recalls, "t2i rsum": 160, "rsum": 300, "i2t rsum": 140}, 1)
    assert list(target.independent.cells) == [*recalls, "rsum", "i2t rsum"]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["i2t R@1"], "is not NAME=NUMBER"),
        (["i2t R@1=high"], "is not NAME=NUMBER"),
        (["i2t R@1=nan"], "is not NAME=NUMBER"),
        (["=5"], "is not NAME=NUMBER"),
        (["i2t R@1=5", "i2t R@1=6"], "given twice: 5 and 6"),
        ([], "no cell"),
        (["i2t R@1=-3"], "-3.0 is no share"),
        (["i2t R@1=101"], "101.0 is no share"),
    ],
)
def test_what_cannot_be(texts: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_target(texts)


def test_ranks_and_sums_may_be_above_a_hundred() -> None:
    assert parse_target(["i2t medr=120", "rsum=448.16"]).cells["i2t medr"].value == 120
