"""The rules of a cell's verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import NumericalError, UsageError
from diptych.studies.published import Cell, EvaluatedOn
from diptych.studies.verdict import Measured, cell_verdict, describe_difference, deviation, same_evaluation

ON = EvaluatedOn("flickr30k", "flickr30k", "test", 1_000, (5_000,))
CELL = Cell("paper", "table-1", 6, "1.1", "i2t R@1", ON, 40.0, None, "none", 1, 0.05)
OURS = Measured("flickr30k", "test", 1_000, 5_000)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([40.0], "reproduced"),
        ([42.0], "reproduced"),  # exactly 5 %
        ([38.0], "reproduced"),
        ([42.1], "close"),
        ([44.0], "close"),  # exactly 10 %
        ([44.1], "not reproduced"),
        ([35.9], "not reproduced"),
        ([41.0, 43.0], "reproduced"),  # mean 42
        ([43.0, 43.0], "close"),  # no spread
        ([41.0, 49.0], "reproduced"),  # mean 45, sd 5.7: within two of them
    ],
)
def test_distance_and_spread(values: list[float], verdict: str) -> None:
    assert cell_verdict(values, CELL) == verdict


def test_the_printed_spread_counts_when_it_is_over_seeds() -> None:
    assert cell_verdict([45.9], replace(CELL, sd=3.0, spread="seeds")) == "reproduced"
    assert cell_verdict([46.1], replace(CELL, sd=3.0, spread="seeds")) == "not reproduced"
    assert cell_verdict([45.9], replace(CELL, sd=3.0, spread="batches")) == "not reproduced"


def test_a_printed_zero_has_no_relative_distance() -> None:
    zero = replace(CELL, value=0.0)
    assert cell_verdict([0.0], zero) == "reproduced"
    assert cell_verdict([0.01], zero) == "not reproduced"


@given(st.floats(1, 500), st.floats(0, 100), st.floats(0, 100))
def test_nearer_is_never_worse(value: float, near: float, far: float) -> None:
    order = {"reproduced": 0, "close": 1, "not reproduced": 2}
    near, far = sorted((near, far))
    cell = replace(CELL, value=value)
    assert order[cell_verdict([value + near], cell)] <= order[cell_verdict([value + far], cell)]


def test_no_verdict_on_nothing_or_on_nan() -> None:
    with pytest.raises(UsageError, match="no value"):
        cell_verdict([], CELL)
    with pytest.raises(NumericalError, match=r"1\.1 i2t R@1"):
        cell_verdict([40.0, float("nan")], CELL)


def test_the_same_evaluation_agrees_in_everything() -> None:
    assert same_evaluation(OURS, ON) == []
    assert same_evaluation(replace(OURS, dataset="Flickr30k"), ON) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dataset": "flickr8k"}, "dataset flickr8k, not flickr30k"),
        ({"split": "val"}, "split val, not test"),
        ({"images": 1_014}, "1,014 images, not 1,000"),
        ({"captions": 5_070}, "5,070 captions, not 5,000"),
        ({"protocol": "coco-1k"}, "protocol coco-1k, not full"),
        ({"positives": "cxc"}, "positives cxc, not own"),
    ],
)
def test_what_differs_is_said(change: dict[str, object], said: str) -> None:
    assert same_evaluation(replace(OURS, **change), ON) == [said]  # type: ignore[arg-type]


def test_coco_counts_with_five_or_all_captions() -> None:
    coco = EvaluatedOn("coco", "coco", "test", 5_000, (25_000, 25_010))
    for captions in (25_000, 25_010):
        assert same_evaluation(Measured("coco", "test", 5_000, captions), coco) == []
    assert same_evaluation(Measured("coco", "test", 5_000, 24_995), coco) == [
        "24,995 captions, not 25,000 or 25,010"
    ]


def test_deviation_is_the_samples() -> None:
    assert deviation([1.0, 3.0]) == pytest.approx(2**0.5)
    assert deviation([1.0]) is None


def test_difference_in_words() -> None:
    assert describe_difference(44.0, 40.0) == "+4.0 (+10 %)"
    assert describe_difference(0.38, 0.40) == "-0.02 (-5 %)"
    assert describe_difference(1.0, 0.0) == "+1.0"
