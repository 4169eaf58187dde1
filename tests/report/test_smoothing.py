from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.report.html import running_mean, thin

VALUES = st.lists(st.floats(-100, 100), min_size=1, max_size=40).map(np.array)


def test_running_mean_by_hand():
    assert running_mean(np.array([1.0, 2.0, 6.0, 3.0]), 3).tolist() == pytest.approx([1.5, 3.0, 11 / 3, 4.5])
    assert running_mean(np.array([]), 3).tolist() == []


@given(VALUES, st.integers(0, 8).map(lambda half: 2 * half + 1))
def test_running_mean_against_slices(values, window):
    half = window // 2
    expected = [values[max(0, i - half) : i + half + 1].mean() for i in range(len(values))]
    assert running_mean(values, window) == pytest.approx(np.array(expected), abs=1e-9)


def test_short_curves_are_not_thinned():
    x, y = thin(np.arange(10), np.arange(10.0), 10)
    assert len(x) == len(y) == 10


def test_a_spike_one_step_wide_is_kept():
    y = np.zeros(10_000)
    y[1234], y[8765] = 9.0, -9.0
    x, kept = thin(np.arange(10_000), y, 100)
    assert len(x) <= 102
    assert (x[0], x[-1]) == (0, 9_999)
    assert kept[x == 1234] == 9.0
    assert kept[x == 8765] == -9.0


@given(VALUES, st.integers(4, 20))
def test_thinned_points_are_points_of_the_curve_in_order(y, limit):
    x, kept = thin(np.arange(len(y)), y, limit)
    assert (kept == y[x]).all()
    assert (np.diff(x) > 0).all()
    assert len(x) <= limit + 2
    assert (kept.min(), kept.max()) == (y.min(), y.max())
