from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.core.errors import DataError, NumericalError
from diptych.training.adaptation import AdaptationOptions, fit_linear

from .planted import first_share, planted

BOTH = pytest.mark.parametrize("method", ["gaussian", "infonce"])


@BOTH
def test_no_pair_and_one_pair_change_nothing(method: str) -> None:
    options = AdaptationOptions(method=method)
    none = fit_linear(np.empty((0, 4)), np.empty((0, 4)), np.empty((0, 0), dtype=bool), options)
    assert none.maps.is_identity
    assert none.strength == math.inf
    images, texts = planted(1, width=4)
    assert fit_linear(images, texts, np.array([[True]]), options).maps.is_identity


@BOTH
def test_more_pairs_help_rows_that_need_it(method: str) -> None:
    held_out = planted(100, seed=1, turn=3.0)
    shares = [first_share(*held_out)]
    for pairs in (16, 200 if method == "gaussian" else 100):
        images, texts = planted(pairs, turn=3.0)
        fitted = fit_linear(images, texts, np.eye(pairs, dtype=bool), AdaptationOptions(method=method))
        adapted = [
            side(rows, "row", range(100))
            for side, rows in zip((fitted.maps.image, fitted.maps.text), held_out, strict=True)
        ]
        shares.append(first_share(*adapted))
    assert shares[1] >= shares[0] - 0.02
    assert shares[2] > shares[0] + 0.3


@settings(max_examples=15)
@given(st.integers(2, 40), st.integers(0, 30))
def test_rows_that_are_known_are_left_alone(pairs: int, seed: int) -> None:
    rows, _ = planted(pairs, seed=seed)
    assert fit_linear(rows, rows, np.eye(pairs, dtype=bool)).maps.is_identity


def test_the_length_of_rows_plays_no_part_nor_does_their_order_of_storage() -> None:
    images, texts = planted(20, turn=3.0)
    positives = np.eye(20, dtype=bool)
    plain = fit_linear(images, texts, positives)
    scaled = fit_linear(np.asfortranarray(images) * 4, texts * 0.5, positives)
    assert np.allclose(plain.maps.image.matrix, scaled.maps.image.matrix, atol=1e-6)


def test_a_given_strength_is_taken() -> None:
    images, texts = planted(20)
    weak, strong = (
        fit_linear(images, texts, np.eye(20, dtype=bool), AdaptationOptions(strength=strength))
        for strength in (1.0, 1e6)
    )
    assert (weak.strength, strong.strength) == (1.0, 1e6)
    distance = [float(np.abs(fitted.maps.image.matrix - np.eye(12)).max()) for fitted in (weak, strong)]
    assert distance[1] < 1e-3 < distance[0]


def test_wrong_rows_are_told() -> None:
    images, texts = planted(3, width=4)
    eye = np.eye(3, dtype=bool)
    with pytest.raises(DataError, match=r"shapes \(3, 4\) and \(3, 3\)"):
        fit_linear(images, texts[:, :3], eye)
    with pytest.raises(DataError, match=r"positives of shape \(2, 3\)"):
        fit_linear(images, texts, eye[:2])
    with pytest.raises(DataError, match="positives are float64"):
        fit_linear(images, texts, np.eye(3))
    with pytest.raises(DataError, match="picture 1 has no positive"):
        fit_linear(images, texts, np.array([[True, True, False], [False] * 3, [False, False, True]]))
    with pytest.raises(DataError, match="text 2 has no positive"):
        fit_linear(
            images, texts, np.array([[True, False, False], [False, True, False], [True, False, False]])
        )
    images[1, 0] = np.nan
    with pytest.raises(NumericalError, match="image 1"):
        fit_linear(images, texts, eye)


@BOTH
def test_rows_of_one_point_and_of_zeros_do_no_harm(method: str) -> None:
    same = np.ones((6, 4)) / 2
    fitted = fit_linear(same, same, np.eye(6, dtype=bool), AdaptationOptions(method=method))
    assert np.isfinite(fitted.maps.image.matrix).all()
    texts = planted(6, width=4)[1]
    texts[2] = 0.0
    fitted = fit_linear(
        planted(6, width=4)[0], texts, np.eye(6, dtype=bool), AdaptationOptions(method=method)
    )
    assert np.isfinite(fitted.maps.text.matrix).all()
