from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from diptych.metrics.paired import shares_of, sign_flip_tests, t_test


def test_shares_add_up_to_the_difference() -> None:
    differences = np.array([1.0, 0.0, -1.0, 2.0, 0.5])
    shares = shares_of(differences, np.array([0, 0, 2, 2, 3]), 5)
    assert shares.parts.tolist() == pytest.approx([0.2, 0, 0.2, 0.1, 0])
    assert shares.difference == pytest.approx(differences.mean())
    assert shares.residuals.sum() == pytest.approx(0)
    assert shares.used.tolist() == [True, False, True, True, False]


@pytest.mark.parametrize("per_image", [1, 5])
def test_clusters_of_one_size_give_the_plain_paired_t_test(per_image: int) -> None:
    random = np.random.default_rng(per_image)
    one, other = random.random((2, 40 * per_image))
    shares = shares_of(one - other, np.repeat(np.arange(40), per_image), 40)
    means = (one - other).reshape(40, per_image).mean(axis=1)
    assert t_test([shares]) == pytest.approx(stats.ttest_1samp(means, 0).pvalue, rel=1e-9)


def test_captions_of_one_image_are_not_five_observations() -> None:
    random = np.random.default_rng(3)
    per_image = random.normal(0.2, 1, 50)
    same = np.repeat(per_image, 5)  # all five captions move together
    clustered = t_test([shares_of(same, np.repeat(np.arange(50), 5), 50)])
    naive = t_test([shares_of(same, np.arange(250), 250)])
    assert clustered is not None
    assert naive is not None
    assert clustered == pytest.approx(stats.ttest_1samp(per_image, 0).pvalue)
    assert naive < clustered / 2


def test_uneven_clusters_hold_their_level() -> None:
    """Under the null, p-values of uneven clusters are uniform: 5 % of them lie below 0.05."""
    random = np.random.default_rng(4)
    sizes = random.integers(1, 8, 60)
    cluster = np.repeat(np.arange(60), sizes)
    below = 0
    for _ in range(1_000):
        values = random.normal(size=60)[cluster] + 0.5 * random.normal(size=len(cluster))
        p = t_test([shares_of(values, cluster, 60)])
        assert p is not None
        below += p < 0.05
    assert 30 <= below <= 75


def test_folds_are_averaged_like_independent_samples() -> None:
    random = np.random.default_rng(5)
    folds = [random.normal(0.3, 1, 30) for _ in range(3)]
    p = t_test([shares_of(values, np.arange(30), 30) for values in folds])
    error = np.sqrt(sum(values.var(ddof=1) / 30 for values in folds)) / 3
    t = np.mean([values.mean() for values in folds]) / error
    assert p == pytest.approx(2 * stats.t.sf(abs(t), 87))


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ([0.0, 0.0, 0.0], 1.0),  # identical runs
        ([0.5, 0.5, 0.5], None),  # the same difference everywhere: no spread to test against
        ([0.5], None),  # one image
        ([0.0], 1.0),
        ([1.0, -1.0], 1.0),
    ],
)
def test_degenerate_t_tests(differences: list[float], expected: float | None) -> None:
    size = len(differences)
    assert t_test([shares_of(np.array(differences), np.arange(size), size)]) == expected


def every_swap(parts: np.ndarray) -> float:
    observed = abs(parts.sum())
    swaps = list(itertools.product([1, -1], repeat=len(parts)))
    return float(np.mean([abs(np.dot(signs, parts)) >= observed - 1e-12 for signs in swaps]))


@settings(max_examples=60)
@given(values=st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=1, max_size=8))
def test_few_clusters_are_swapped_in_every_way(values: list[float]) -> None:
    parts = np.array(values)
    assert sign_flip_tests(parts[:, None], 1_000, 0).tolist() == pytest.approx([every_swap(parts)])


def test_random_swaps_are_near_the_exact_ones_and_never_zero() -> None:
    random = np.random.default_rng(6)
    parts = np.stack([random.normal(0.3, 1, 12), random.normal(0, 1, 12), np.full(12, 1.0)], axis=1)
    exact = sign_flip_tests(parts, 2**12, 0)
    drawn = sign_flip_tests(parts, 2**12 - 1, 0)
    assert exact.tolist() == pytest.approx([every_swap(column) for column in parts.T])
    assert np.abs(drawn - exact).max() < 0.03
    assert sign_flip_tests(np.full((60, 1), 1.0), 500, 0)[0] == 1 / 501
    assert drawn.tolist() == sign_flip_tests(parts, 2**12 - 1, 0).tolist()
    assert drawn.tolist() != sign_flip_tests(parts, 2**12 - 1, 1).tolist()


def test_identical_runs_and_one_cluster_have_p_one() -> None:
    assert sign_flip_tests(np.zeros((500, 2)), 200, 0).tolist() == [1, 1]
    assert sign_flip_tests(np.array([[0.7]]), 200, 0).tolist() == [1]
