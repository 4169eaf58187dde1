from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy import stats

from diptych.core.errors import DataError, NumericalError
from diptych.metrics import Bootstrap
from diptych.metrics.correlation import (
    COEFFICIENTS,
    LEAST_HITS,
    correlate,
    weighted_correlations,
)


def values(x: np.ndarray, y: np.ndarray) -> list[float | None]:
    found = correlate(x, y, np.arange(len(x)))
    return [found[name].value for name in COEFFICIENTS]


def by_scipy(x: np.ndarray, y: np.ndarray) -> list[float]:
    return [
        stats.kendalltau(x, y).statistic,
        stats.kendalltau(x, y, variant="c").statistic,
        stats.spearmanr(x, y).statistic,
        stats.pearsonr(x, y).statistic,
    ]


def test_four_entries_by_hand() -> None:
    x, y = np.array([1.0, 2, 2, 4]), np.array([10.0, 30, 20, 20])
    # Of six pairs: three in the same order, one against it, one tied in x, one in y.
    found = values(x, y)
    assert found[0] == pytest.approx(2 / 5)
    assert found[1] == pytest.approx(2 * 2 / (16 * 2 / 3))
    assert found[2:] == pytest.approx(by_scipy(x, y)[2:])


@settings(max_examples=80)
@given(data=st.data())
def test_agrees_with_scipy(data: st.DataObject) -> None:
    n = data.draw(st.integers(3, 40))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    x = random.integers(0, data.draw(st.integers(2, 30)), n) * 0.25
    y = random.integers(0, data.draw(st.integers(2, 30)), n) + 1e6
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert values(x, y) == [None] * 4
        return
    assert values(x, y) == pytest.approx(by_scipy(x, y), abs=1e-9)


def test_a_resample_is_the_list_with_its_repetitions() -> None:
    random = np.random.default_rng(3)
    x, y, cluster = random.integers(0, 5, 20) / 1.0, random.normal(size=20), random.integers(0, 6, 20)
    weights = random.integers(0, 4, (8, 6))
    found = weighted_correlations(x, y, cluster, weights)
    for sample, drawn in zip(found, weights, strict=True):
        times = drawn[cluster]
        assert sample.tolist() == pytest.approx(by_scipy(np.repeat(x, times), np.repeat(y, times)), abs=1e-9)


def test_intervals_are_over_clusters_and_repeatable() -> None:
    random = np.random.default_rng(5)
    cluster = np.repeat(np.arange(40), 5)
    x = np.repeat(random.normal(size=40), 5)  # five equal entries of each cluster
    y = x + np.repeat(random.normal(size=40), 5)
    how = Bootstrap(300, seed=7)
    together = correlate(x, y, cluster, how)
    single = correlate(x, y, np.arange(200), how)
    for name in COEFFICIENTS:
        assert together[name].value == single[name].value
        wide, narrow = together[name], single[name]
        assert wide.low < narrow.low < narrow.high < wide.high  # type: ignore[operator]
    assert correlate(x, y, cluster, how) == together
    assert correlate(x, y, cluster, Bootstrap(300, seed=8)) != together


def test_what_cannot_be_correlated() -> None:
    nothing = correlate(np.array([]), np.array([]), np.array([]), Bootstrap(5))
    assert [one.value for one in nothing.values()] == [None] * 4
    two = np.zeros(2)
    refused(DataError, "2 and 3 numbers", correlate, two, np.zeros(3), two)
    refused(NumericalError, "entry 1 to be correlated is nan", correlate, np.array([0, np.nan]), two, two)


def test_of_few_hits_there_is_no_interval() -> None:
    """Resamples of three hits in a random list lie on one side of 0 every fourth time."""
    random = np.random.default_rng(0)
    y, image = random.random(200), np.arange(200)
    for hits in (3, LEAST_HITS - 1, LEAST_HITS):
        x = np.zeros(200)
        x[:hits] = 1.0
        for one in correlate(x, y, image, Bootstrap(50)).values():
            assert one.value is not None
            assert one.few is (hits < LEAST_HITS)
            assert (one.low is None) is one.few
        nearly_all = correlate(1 - x, y, image, Bootstrap(50))["tau_b"]
        assert nearly_all.few is (hits < LEAST_HITS)
    x[:] = 0
    x[:30] = 1.0  # thirty hits of six images
    assert correlate(x, y, image // 5, Bootstrap(50))["pearson"].few
    assert not correlate(x, y, image // 5)["pearson"].few  # none was asked for
