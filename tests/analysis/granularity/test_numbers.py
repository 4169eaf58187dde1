"""Effect sizes, and sums per image: against hand-written values and slow ways of saying the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.analysis.granularity.compare import cliffs_delta, cohens_d, placements
from diptych.analysis.granularity.result import (
    divided,
    gathered,
    intervals,
    resampled_sums,
    variances,
)
from diptych.metrics.bootstrap import Bootstrap, drawn_clusters

NAN = float("nan")
VALUES = np.array([[1.0, NAN], [3.0, 2.0], [5.0, NAN], [2.0, 4.0]])
IMAGE = np.array([0, 0, 1, 2])
numbers = st.lists(st.integers(0, 5), min_size=1, max_size=12)


@given(first=numbers, second=numbers)
def test_cliffs_delta_is_of_all_pairs(first: list[int], second: list[int]) -> None:
    pairs = [np.sign(b - a) for a in first for b in second]
    assert cliffs_delta(np.array(first), np.array(second)) == pytest.approx(float(np.mean(pairs)))
    assert cliffs_delta(np.array(second), np.array(first)) == pytest.approx(-float(np.mean(pairs)))
    placed = placements(np.array(first), np.array(second))
    assert placed == pytest.approx([np.mean(np.sign(np.array(second) - a)) for a in first])


def test_cohens_d() -> None:
    assert cohens_d(2.0, 5.0, 4.0) == pytest.approx(1.5)
    assert cohens_d(2.0, 2.0, 0.0) == 0  # nothing is apart, though nothing varies
    assert np.isnan(cohens_d(2.0, 3.0, 0.0))
    assert cohens_d(np.array([1.0, 2.0]), np.array([2.0, 1.0]), np.array([1.0, 0.25])) == pytest.approx(
        [1, -2]
    )


def test_sums_per_image_leave_out_what_has_no_value() -> None:
    found = gathered(VALUES, IMAGE, 3)
    assert found.counts.tolist() == [[2, 1], [1, 0], [1, 1]]
    assert found.sums.tolist() == [[4, 2], [5, 0], [2, 4]]
    assert found.squares.tolist() == [[10, 4], [25, 0], [4, 16]]
    assert found.means == pytest.approx([2.75, 3.0])
    assert found.deviations == pytest.approx([np.std([1, 3, 5, 2], ddof=1), np.sqrt(2)])


@given(values=st.lists(st.floats(-100, 100), min_size=2, max_size=9))
def test_variance_from_sums(values: list[float]) -> None:
    given_values = np.array(values)
    found = variances(np.array(len(values)), given_values.sum(), (given_values**2).sum())
    assert found == pytest.approx(np.var(given_values, ddof=1), abs=1e-6)


def test_of_nothing_there_is_no_mean_and_of_one_no_variance() -> None:
    assert np.isnan(divided(np.zeros(1), np.zeros(1))).all()
    assert np.isnan(variances(np.ones(1), np.ones(1), np.ones(1))).all()


def test_whole_images_are_resampled_and_all_tables_alike() -> None:
    how = Bootstrap(samples=50, seed=3)
    of_images = gathered(VALUES, IMAGE, 3)
    sums, counts = resampled_sums([of_images.sums, of_images.counts], how)
    weights = np.concatenate(list(drawn_clusters(how, 0, 3, 3)))
    for sample, drawn in enumerate(weights):
        rows = [row for row, image in enumerate(IMAGE) for _ in range(int(drawn[image]))]
        assert sums[sample, 0] == pytest.approx(VALUES[rows, 0].sum())
        assert counts[sample, 0] == len(rows)
    other, _ = resampled_sums([of_images.sums, of_images.counts], how, draws=1)
    assert not np.array_equal(sums, other)


def test_intervals() -> None:
    samples = np.array([[float(n), NAN] for n in range(101)])
    low, high = intervals(samples, 0.9)[0] or (0, 0)
    assert (low, high) == pytest.approx((5, 95))
    assert intervals(samples, 0.9)[1] is None
    none = resampled_sums([np.ones((3, 2))], Bootstrap(samples=0))
    assert intervals(none[0], 0.9) == [None, None]
