from __future__ import annotations

import pytest

from diptych.core.errors import DataError, NumericalError
from diptych.report import Curves, Headline, Query, ReportContent, Retrieval, Retrieved, Score, TableRow

NAN = float("nan")


@pytest.mark.parametrize("values", [{"value": NAN}, {"value": 1.0, "chance": float("inf")}])
def test_score_must_be_finite(values):
    with pytest.raises(NumericalError):
        Score(**values)


@pytest.mark.parametrize("ends", [{"low": 1.0}, {"high": 1.0}, {"low": 2.0, "high": 1.0}])
def test_interval_needs_both_ends_in_order(ends):
    with pytest.raises(DataError):
        Score(1.5, **ends)


def test_row_is_per_direction_or_of_both():
    with pytest.raises(DataError, match="neither"):
        TableRow("R@1")
    with pytest.raises(DataError, match="at once"):
        TableRow("R@1", Score(1.0), both=Score(1.0))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"steps": [1, 2], "loss": [1.0]}, "2 losses expected, got 1"),
        ({"steps": [1], "loss": [1.0], "learning_rate": [1.0, 2.0]}, "1 learning rates expected, got 2"),
        ({"epochs": [1], "validation_rsum": []}, "1 validation rsums expected, got 0"),
        ({"epochs": [1], "validation_rsum": [9.0], "best_epoch": 2}, "best epoch 2"),
        ({"steps": [1, 1], "loss": [1.0, 1.0]}, "steps must rise, got 1 after 1"),
    ],
)
def test_curves_that_do_not_fit_together(arguments, said):
    with pytest.raises(DataError, match=said):
        Curves(**arguments)


def test_curves_name_where_they_are_not_finite():
    with pytest.raises(NumericalError, match="loss 1 is nan"):
        Curves([1, 2], [1.0, NAN])


def test_figures_need_their_protocol():
    with pytest.raises(DataError, match="protocol"):
        ReportContent("t", table=[TableRow("R@1", Score(1.0))])
    with pytest.raises(DataError, match="protocol"):
        ReportContent("t", headlines=[Headline("rsum", "1")])


def test_query_is_one_of_two(picture):
    with pytest.raises(DataError, match="'q'"):
        Query("q")
    with pytest.raises(DataError, match="'q'"):
        Query("q", caption="c", picture=picture)


def test_retrieved_score_must_be_finite():
    with pytest.raises(NumericalError, match="'i7'"):
        Retrieved("i7", NAN)


def test_retrieved_are_pictures_or_captions(picture):
    items = [Retrieved("i", 1.0, picture=picture), Retrieved("c", 0.5, caption="c")]
    with pytest.raises(DataError, match="1 of 2"):
        Retrieval(Query("q", caption="c"), items)
    with pytest.raises(DataError, match="1 of 2"):
        Retrieval(Query("q", caption="c"), items[:1], expected=items[1])
