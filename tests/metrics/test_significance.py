"""Resampling, corrections, paired tests and correlations, against their definitions and SciPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy import stats

from diptych.core.errors import DataError, NumericalError, UnknownNameError, UsageError
from diptych.metrics import Bootstrap, GroundTruth
from diptych.metrics.bootstrap import FLOOR_MEDIAN, MEAN, MEDIAN, clusters, interval, resample
from diptych.metrics.correlation import (
    COEFFICIENTS,
    LEAST_HITS,
    Coefficient,
    correlate,
    weighted_correlations,
)
from diptych.metrics.paired import (
    CORRECTIONS,
    corrected,
    correction_named,
    correction_text,
    shares_of,
    sign_flip_tests,
    t_test,
)


def test_weights_are_the_same_as_repeating_the_clusters() -> None:
    random = np.random.default_rng(0)
    cluster = random.integers(0, 6, 25)
    values = random.integers(1, 12, 25).astype(np.float64)
    weights = random.integers(0, 4, (40, 6)).astype(np.float64)
    for aggregate in (MEAN, MEDIAN, FLOOR_MEDIAN):
        found = aggregate.resampled(values, cluster, weights)
        for row, got in zip(weights, found, strict=True):
            assert got == pytest.approx(aggregate.of(np.repeat(values, row[cluster].astype(int))))
        # a resample without a query has no value
        found = aggregate.resampled(np.array([3.0]), np.array([1]), np.array([[2.0, 0.0], [1.0, 1.0]]))
        assert np.isnan(found[0])
        assert found[1] == 3.0
        assert interval(found, 0.9) == (3.0, 3.0)
        assert interval(found[:1], 0.9) is None


def test_a_text_without_an_image_is_its_own_cluster() -> None:
    of, size = clusters(GroundTruth.from_pairs([0, 1], [2, 0], 2, 4))
    assert size == 4
    assert of["i2t"].tolist() == [0, 1]
    assert of["t2i"].tolist() == [1, 2, 0, 3]


def intervals(truth: GroundTruth, values: np.ndarray, **options: float) -> tuple[float, float]:
    how = Bootstrap(**{"samples": 2000, **options})  # type: ignore[arg-type]
    key = ("t2i", "R@1")
    found = resample(how, 0, truth, {key: values}, {key: MEAN})  # type: ignore[dict-item]
    ends = interval(found[key], how.confidence)  # type: ignore[index]
    assert ends is not None
    return ends


def test_the_seed_decides_and_chunks_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = GroundTruth.from_caption_image(np.arange(50), 50)
    values = np.random.default_rng(0).random(50)
    whole = intervals(truth, values)
    assert intervals(truth, values) == whole
    assert intervals(truth, values, seed=2) != whole
    monkeypatch.setattr("diptych.metrics.bootstrap._CHUNK_NUMBERS", 350)
    assert intervals(truth, values) == pytest.approx(whole, rel=1e-12)


def test_numbers_that_cannot_be() -> None:
    refused(UsageError, "samples are -1", Bootstrap, samples=-1)
    refused(UsageError, "confidence is 95", Bootstrap, confidence=95)


def test_corrections_by_hand_and_by_name() -> None:
    p = [0.03, None, 0.01, 0.02, 0.5]
    assert corrected(p, "none") == p
    assert corrected(p, "bonferroni") == pytest.approx([0.12, None, 0.04, 0.08, 1.0])
    # 4 × 0.01, 3 × 0.02, 2 × 0.03 (no less than the one before it), 1 × 0.5
    assert corrected(p, "holm") == pytest.approx([0.06, None, 0.04, 0.06, 0.5])
    assert corrected([], "holm") == []
    assert corrected([None], "bonferroni") == [None]
    texts = [correction_text(correction_named(name), 1200) for name in CORRECTIONS]
    assert texts == ["Bonferroni over 1,200 comparisons", "Holm over 1,200 comparisons", ""]
    refused(UnknownNameError, "unknown correction 'Holm'.*did you mean 'holm'", correction_named, "Holm")


def rejected_in_turn(p: list[float], level: float) -> set[int]:
    """Holm's procedure as he wrote it: step down until one is not rejected."""
    order = sorted(range(len(p)), key=lambda place: p[place])
    out: set[int] = set()
    for rank, place in enumerate(order):
        if p[place] * (len(p) - rank) > level:
            break
        out.add(place)
    return out


@given(
    st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.01, 0.05])), max_size=12),
    st.sampled_from([0.01, 0.05, 0.2]),
)
def test_holm_rejects_what_stepping_down_rejects(p: list[float], level: float) -> None:
    holm, bonferroni = corrected(p, "holm"), corrected(p, "bonferroni")
    assert {place for place, value in enumerate(holm) if value is not None and value <= level} == (
        rejected_in_turn(p, level)
    )
    for raw, one, other in zip(p, holm, bonferroni, strict=True):
        assert one is not None
        assert other is not None
        assert min(1.0, raw) <= one <= other <= 1


def test_a_clustered_t_test_by_its_special_cases() -> None:
    differences = np.array([1.0, 0.0, -1.0, 2.0, 0.5])
    shares = shares_of(differences, np.array([0, 0, 2, 2, 3]), 5)
    assert shares.parts.tolist() == pytest.approx([0.2, 0, 0.2, 0.1, 0])
    assert shares.difference == pytest.approx(differences.mean())
    assert shares.residuals.sum() == pytest.approx(0)
    assert shares.used.tolist() == [True, False, True, True, False]
    for per_image in (1, 5):
        one, other = np.random.default_rng(per_image).random((2, 40 * per_image))
        shares = shares_of(one - other, np.repeat(np.arange(40), per_image), 40)
        means = (one - other).reshape(40, per_image).mean(axis=1)
        assert t_test([shares]) == pytest.approx(stats.ttest_1samp(means, 0).pvalue, rel=1e-9)
    per_image = np.random.default_rng(3).normal(0.2, 1, 50)
    same = np.repeat(per_image, 5)  # all five captions move together
    clustered = t_test([shares_of(same, np.repeat(np.arange(50), 5), 50)])
    naive = t_test([shares_of(same, np.arange(250), 250)])
    assert clustered == pytest.approx(stats.ttest_1samp(per_image, 0).pvalue)
    assert naive is not None
    assert clustered is not None
    assert naive < clustered / 2
    random = np.random.default_rng(5)
    folds = [random.normal(0.3, 1, 30) for _ in range(3)]
    p = t_test([shares_of(values, np.arange(30), 30) for values in folds])
    error = np.sqrt(sum(values.var(ddof=1) / 30 for values in folds)) / 3
    t = np.mean([values.mean() for values in folds]) / error
    assert p == pytest.approx(2 * stats.t.sf(abs(t), 87))
    for differences, expected in (
        ([0.0, 0.0, 0.0], 1.0),  # identical runs
        ([0.5, 0.5, 0.5], None),  # the same difference everywhere: no spread to test against
        ([0.5], None),  # one image
        ([0.0], 1.0),
        ([1.0, -1.0], 1.0),
    ):
        size = len(differences)
        assert t_test([shares_of(np.array(differences), np.arange(size), size)]) == expected


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


def every_swap(parts: np.ndarray) -> float:
    observed = abs(parts.sum())
    swaps = list(itertools.product([1, -1], repeat=len(parts)))
    return float(np.mean([abs(np.dot(signs, parts)) >= observed - 1e-12 for signs in swaps]))


@settings(max_examples=60)
@given(values=st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=1, max_size=8))
def test_few_clusters_are_swapped_in_every_way(values: list[float]) -> None:
    parts = np.array(values)
    assert sign_flip_tests(parts[:, None], 1_000, 0).tolist() == pytest.approx([every_swap(parts)])


def test_random_swaps_are_near_the_exact_ones() -> None:
    random = np.random.default_rng(6)
    parts = np.stack([random.normal(0.3, 1, 12), random.normal(0, 1, 12), np.full(12, 1.0)], axis=1)
    exact = sign_flip_tests(parts, 2**12, 0)
    drawn = sign_flip_tests(parts, 2**12 - 1, 0)
    assert exact.tolist() == pytest.approx([every_swap(column) for column in parts.T])
    assert np.abs(drawn - exact).max() < 0.03
    assert sign_flip_tests(np.full((60, 1), 1.0), 500, 0)[0] == 1 / 501
    assert drawn.tolist() == sign_flip_tests(parts, 2**12 - 1, 0).tolist()
    assert drawn.tolist() != sign_flip_tests(parts, 2**12 - 1, 1).tolist()
    assert sign_flip_tests(np.zeros((500, 2)), 200, 0).tolist() == [1, 1]
    assert sign_flip_tests(np.array([[0.7]]), 200, 0).tolist() == [1]


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
    assert Coefficient(-0.5, -0.6, 0.1).cell.line == "-0.500 (-0.600 to +0.100)"
    assert [Coefficient(value, few=True).cell.line for value in (0.25, None)] == ["+0.250 (–)", "–"]
    x[:] = 0
    x[:30] = 1.0  # thirty hits of six images
    assert correlate(x, y, image // 5, Bootstrap(50))["pearson"].few
    assert not correlate(x, y, image // 5)["pearson"].few  # none was asked for
