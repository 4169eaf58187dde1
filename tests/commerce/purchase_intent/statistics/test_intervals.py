from __future__ import annotations

import math
import statistics

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from diptych.commerce.purchase_intent.statistics.intervals import mean_interval, share, wilson


@given(st.integers(1, 10**9), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_is_the_usual_one(of: int, data: st.DataObject, confidence: float) -> None:
    part = data.draw(st.integers(0, of))
    low, high = wilson(part, of, confidence)
    usual = scipy.stats.binomtest(part, of).proportion_ci(confidence, method="wilson")
    assert low == pytest.approx(usual.low, rel=1e-9, abs=1e-15)
    assert high == pytest.approx(usual.high, rel=1e-9)
    assert 0 <= low <= part / of <= high <= 1


def test_of_nothing_nothing_is_said() -> None:
    assert wilson(0, 0, 0.95) == (None, None)
    assert mean_interval(0, 0, 0, 0.95) == mean_interval(7, 49, 1, 0.95) == (None, None)
    assert share(0, 0) is None
    assert share(1, 4) == 0.25


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=30))
def test_means(values: list[int]) -> None:
    low, high = mean_interval(sum(values), sum(value**2 for value in values), len(values), 0.95)
    half = 1.959963984540054 * statistics.stdev(values) / math.sqrt(len(values))
    assert low == pytest.approx(max(0.0, statistics.fmean(values) - half), rel=1e-9, abs=1e-9)
    assert low >= 0
    assert high == pytest.approx(statistics.fmean(values) + half, rel=1e-9, abs=1e-9)


def test_no_mean_of_counts_is_negative() -> None:
    assert mean_interval(1, 1, 16, 0.95) == (0.0, pytest.approx(0.0625 + 1.959964 * 0.0625))


def test_large_sums_lose_nothing() -> None:
    many, value = 10**4, 10**6
    low, high = mean_interval(many * value + 1, many * value**2 + 2 * value + 1, many, 0.95)
    assert high - low == pytest.approx(2 * 1.959963984540054 / many, rel=1e-3)
