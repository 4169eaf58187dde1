from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from refusals import refused

from diptych.core.errors import DataError, NumericalError
from diptych.metrics.products import check_rows, pair_scores, rounding_band


def test_a_score_does_not_depend_on_its_neighbours_or_on_its_sides() -> None:
    for width in (1, 3, 7, 64, 129, 300, 1025):
        random = np.random.default_rng(width)
        left = random.normal(size=(9, width)).astype(np.float32)
        right = random.normal(size=(40, width)).astype(np.float32)
        i, j = random.integers(0, 9, 500), random.integers(0, 40, 500)
        together = pair_scores(left, right, i, j).tolist()
        assert together == [pair_scores(left, right, i[p : p + 1], j[p : p + 1])[0] for p in range(500)]
        assert together == pair_scores(right, left, j, i).tolist()
        copies = np.repeat(right[:1], 40, axis=0)
        assert len(set(pair_scores(left[:1], copies, np.zeros(40, int), np.arange(40)))) == 1


def test_scores_agree_with_fractions() -> None:
    random = np.random.default_rng(0)
    left, right = (random.normal(size=(1, 50)).astype(np.float32) for _ in range(2))
    exact = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(left[0], right[0], strict=True))
    zero = np.zeros(1, dtype=int)
    assert math.isclose(pair_scores(left, right, zero, zero)[0], float(exact), rel_tol=0, abs_tol=1e-14)


def test_no_product_leaves_the_band() -> None:
    for scale in (1.0, 1e-22, 1e12):
        for kind in (np.float32, np.float64):
            random = np.random.default_rng(1)
            left = (scale * random.normal(size=(60, 200))).astype(np.float32)
            right = (scale * random.normal(size=(80, 200))).astype(np.float32)
            product = left.astype(kind) @ right.astype(kind).T
            i, j = np.indices(product.shape).reshape(2, -1)
            error = np.abs(product - pair_scores(left, right, i, j).reshape(product.shape)).max(axis=1)
            band = rounding_band(
                200, np.dtype(kind), check_rows(left, "left"), check_rows(right, "right").max()
            )
            assert np.all(error <= band)
            if scale == 1.0:
                assert np.all(band < 2000 * np.finfo(kind).eps * 200)  # a bound, not a blanket


def test_bounds_of_norms_and_rows_that_are_none() -> None:
    assert rounding_band(4, np.dtype(np.float32), np.array([1e20]), 1e20).tolist() == [math.inf]
    assert rounding_band(4, np.dtype(np.float64), np.array([1e20]), 1e20)[0] < 1e26
    rows = np.array([[3, 4], [0, 0], [3e38, 3e38]], np.float32)
    norms = check_rows(rows, "image")
    assert np.all(norms >= [5, 0, 3e38 * 2**0.5 * (1 - 1e-7)])
    assert np.all(norms <= [5.0001, 1e-15, 4.3e38])
    for rows, ids, error, message in (
        (NAN, list("abcde"), NumericalError, r"image 'd' \(row 3\) is not finite"),
        (INFINITE, None, NumericalError, r"image \(row 3\) is not finite"),
        (np.ones((2, 2)), None, DataError, "float64 with shape"),
        (np.ones(2, np.float32), None, DataError, r"float32 with shape \(2,\)"),
        (np.ones((2, 2), np.float32), ["a"], DataError, "1 image ids for 2 image rows"),
    ):
        refused(error, message, check_rows, rows, "image", ids)


NAN, INFINITE = np.ones((5, 3), np.float32), np.ones((5, 3), np.float32)
NAN[3, 1], INFINITE[3, 1] = np.nan, -np.inf
