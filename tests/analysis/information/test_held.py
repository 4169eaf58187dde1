"""Shares and their intervals, by hand and against a plain bootstrap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.analysis.information.audit_report import Held, held_of
from diptych.metrics.bootstrap import Bootstrap


def test_by_hand() -> None:
    there = np.array([[2.0, 1.0], [2.0, 0.0], [4.0, 0.0]])
    left = np.array([[1.0, 3.0], [0.0, 0.0], [3.0, 0.0]])
    whole, bad = held_of(there, left, np.array([3, 1]), np.arange(3), Bootstrap(0))
    assert whole is not None
    assert bad is not None
    assert whole.raw == pytest.approx(0.5)
    assert whole.there == pytest.approx(8 / 3)
    assert whole.bits == pytest.approx(4 / 3)
    assert whole.show() == "50.0 (50.0–50.0)"
    # worse than no probe is nothing held, and the raw figure is kept
    assert bad.raw == pytest.approx(-2)
    assert (bad.percent, bad.bits, bad.ends) == (0, 0, (0, 0))


def test_never_above_100() -> None:
    assert Held(1.2, 0.9, 1.3, 3.0, 5).percent == 100
    assert Held(1.2, 0.9, 1.3, 3.0, 5).ends == (90, 100)


def test_a_group_without_bits() -> None:
    assert held_of(np.zeros((2, 1)), np.zeros((2, 1)), np.zeros(1), np.arange(2), Bootstrap(5)) == [None]


def test_interval_resamples_whole_images() -> None:
    """Five rows of one image say no more than one row of it."""
    random = np.random.default_rng(0)
    there = np.full((60, 1), 2.0)
    left = random.uniform(0, 2, (60, 1))
    bootstrap = Bootstrap(400, seed=1)
    (single,) = held_of(there, left, np.ones(1), np.arange(60), bootstrap)
    (five,) = held_of(
        np.repeat(there, 5, axis=0),
        np.repeat(left, 5, axis=0),
        np.ones(1),
        np.repeat(np.arange(60), 5),
        bootstrap,
    )
    assert single is not None
    assert five is not None
    assert (five.raw, five.low, five.high) == pytest.approx((single.raw, single.low, single.high))
    assert single.low < single.raw < single.high


def test_interval_against_a_plain_bootstrap() -> None:
    random = np.random.default_rng(3)
    there = random.uniform(1, 3, (80, 1))
    left = there * random.uniform(0, 1, (80, 1))
    (found,) = held_of(there, left, np.ones(1), np.arange(80), Bootstrap(4000))
    samples = []
    for _ in range(4000):
        rows = random.integers(0, 80, 80)
        samples.append(1 - left[rows].sum() / there[rows].sum())
    assert found is not None
    np.testing.assert_allclose([found.low, found.high], np.quantile(samples, [0.025, 0.975]), atol=0.01)


@given(st.integers(1, 30), st.integers(0, 1000))
def test_a_share_lies_in_its_interval_and_in_0_to_100(n: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    there, left = random.uniform(0.1, 3, (2, n, 2))
    for held in held_of(there, left, np.ones(2), random.integers(0, 5, n), Bootstrap(50)):
        assert held is not None
        assert 0 <= held.percent <= 100
        assert held.low <= held.high
        assert held.raw <= 1
