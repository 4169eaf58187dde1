from __future__ import annotations

import statistics

import pytest

from diptych.commerce.purchase_intent.statistics.intervals import standardise


def test_the_worked_example_of_the_thesis() -> None:
    # Section 6.2 prints 1.34, −1.07 and −0.27, made from a mean of 0.33 and a deviation of 0.12.
    assert standardise([0.5, 0.2, 0.3]) == pytest.approx([1.34, -1.07, -0.27], abs=0.005)


def test_table_6_4_is_divided_by_n() -> None:
    # Rates up to a factor, from the shares of purchase and other sessions that the text compares.
    ratios = {
        "smartphone": 1 - 0.1910,
        "pc": 1.3070,
        "tablet": 1.0712,
        "console": 1 - 0.1547,
        "tv": 1 - 0.3401,
    }
    rates = [ratio * 0.03 / (1 + ratio * 0.03) for ratio in ratios.values()]
    printed = [-0.56, 1.61, 0.61, -0.40, -1.25]
    assert standardise(rates) == pytest.approx(printed, abs=0.03)
    assert standardise(rates, ddof=1) != pytest.approx(printed, abs=0.1)


def test_with_n_less_one() -> None:
    rates = [0.1, 0.4, 0.2, 0.7]
    expected = [(rate - statistics.mean(rates)) / statistics.stdev(rates) for rate in rates]
    assert standardise(rates, ddof=1) == pytest.approx(expected)


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("rates", [[], [0.3], [0.1, 0.1, 0.1], [None, None], [0.2, None]])
def test_where_nothing_differs_there_is_no_deviation(rates: list[float | None], ddof: int) -> None:
    assert standardise(rates, ddof) == [None] * len(rates)


def test_a_group_without_a_rate_plays_no_part() -> None:
    assert standardise([0.5, None, 0.2, 0.3]) == pytest.approx([1.3363, None, -1.0690, -0.2673], abs=1e-4)
