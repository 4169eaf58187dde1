from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import DataError
from diptych.training.adaptation.gaussian import GaussianMoments
from diptych.training.adaptation.span import Span

from .planted import planted, unit


def slow_maps(
    images: np.ndarray, texts: np.ndarray, positives: np.ndarray, strength: float
) -> tuple[np.ndarray, ...]:
    """From the module's equations, in the whole space, with SciPy's matrix functions."""
    n, d = images.shape
    means, covariances = [], []
    rows = []
    for image in range(n):
        for text in np.flatnonzero(positives[image]):
            rows.append((images[image], texts[text], 1 / positives[image].sum() / n))
    for side in (0, 1):
        means.append(n / (n + strength / 100) * sum(row[side] * row[2] for row in rows))
    centred = [(x - means[0], y - means[1], weight) for x, y, weight in rows]
    for left, right in ((0, 0), (1, 1), (0, 1)):
        covariances.append(sum(row[2] * np.outer(row[left], row[right]) for row in centred))
    s = (np.trace(covariances[0]) + np.trace(covariances[1])) / (2 * d)
    share = n / (n + strength)
    cxx, cyy = (share * c + (1 - share) * s * np.eye(d) for c in covariances[:2])
    cxy = share * covariances[2] + (1 - share) * s * 0.5 * np.eye(d)
    hx, hy = (np.real(scipy.linalg.fractional_matrix_power(c, -0.5)) for c in (cxx, cyy))
    return means[0], means[1], hx, hy, hx @ cxy @ hy, s


def assert_equal_to_slow(
    images: np.ndarray, texts: np.ndarray, positives: np.ndarray, strength: float
) -> None:
    maps = GaussianMoments.of(images, texts, positives).maps(strength)
    mean_x, mean_y, hx, hy, k, s = slow_maps(images, texts, positives, strength)
    assert np.allclose(maps.image.mean, mean_x, atol=1e-6)
    assert np.allclose(maps.text.mean, mean_y, atol=1e-6)
    # Scores: C_xx^-1/2 K C_yy^-1/2, and lengths: C_xx^-1/2 (K K^T)^1/2 C_xx^-1/2, times s / rho.
    a, b = maps.image.matrix.astype(float), maps.text.matrix.astype(float)
    scale = s / 0.5
    assert np.allclose(a @ b.T, scale * hx @ k @ hy, atol=1e-4)
    assert np.allclose(a @ a.T, scale * hx @ scipy.linalg.sqrtm(k @ k.T).real @ hx, atol=1e-4)
    assert np.allclose(b @ b.T, scale * hy @ scipy.linalg.sqrtm(k.T @ k).real @ hy, atol=1e-4)


@pytest.mark.parametrize("pairs", [1, 3, 6, 40])
@pytest.mark.parametrize("strength", [0.5, 20.0, 1000.0])
def test_maps_are_those_of_the_equations(pairs: int, strength: float) -> None:
    images, texts = planted(pairs, width=6)
    assert_equal_to_slow(images, texts, np.eye(pairs, dtype=bool), strength)


def test_each_picture_counts_once_whatever_its_captions() -> None:
    images, texts = planted(9, width=5)
    owner = np.array([0, 0, 0, 1, 2, 2, 3, 3, 3])
    positives = np.arange(4)[:, None] == owner[None]
    assert_equal_to_slow(images[:4], texts, positives, 7.0)


@given(st.integers(1, 20), st.integers(0, 100))
def test_a_strong_prior_leaves_scores_as_they_are_but_for_the_means(pairs: int, seed: int) -> None:
    images, texts = planted(pairs, width=8, seed=seed)
    maps = GaussianMoments.of(images, texts, np.eye(pairs, dtype=bool)).maps(1e9)
    assert np.allclose(maps.image.matrix, np.eye(8), atol=1e-5)
    assert np.allclose(maps.text.matrix, np.eye(8), atol=1e-5)


def test_one_dimension_by_hand() -> None:
    # Two pairs of rows 1 and -1 on the first axis: means 0, S = 1 there and 0 elsewhere, s = 1/2.
    rows = np.array([[1.0, 0.0], [-1.0, 0.0]])
    maps = GaussianMoments.of(rows, rows, np.eye(2, dtype=bool)).maps(2.0)
    # C_xx = C_yy = (1 + 1/2)/2 = 3/4 and C_xy = (1 + 1/4)/2 = 5/8 on the first axis, 1/4 and 1/8 beyond.
    first = np.sqrt(5 / 6 * 0.5 / 0.5 / (3 / 4))
    assert np.allclose(maps.image.matrix, [[first, 0], [0, np.sqrt(0.5 / 0.25)]], atol=1e-6)
    assert np.allclose(maps.text.matrix, maps.image.matrix)


def test_rows_of_zeros_alone_are_refused() -> None:
    with pytest.raises(DataError, match="every row is zero"):
        GaussianMoments.of(np.zeros((3, 4)), np.zeros((3, 4)), np.eye(3, dtype=bool))


def test_the_span_is_the_rows_and_no_more() -> None:
    rows = np.array([[3.0, 0, 0, 4.0], [6.0, 0, 0, 8.0]])
    span = Span.of(rows[:1], rows[1:])
    assert span.basis.shape == (4, 1)
    assert np.allclose(np.abs(span.coordinates(rows)), [[5.0], [10.0]])
    direction = unit(rows[:1])
    expected = 2 * direction.T @ direction + 3 * (np.eye(4) - direction.T @ direction)
    assert np.allclose(span.whole(np.array([[2.0]]), 3.0), expected)
    assert Span.of(np.eye(2), np.eye(2)).is_everything
