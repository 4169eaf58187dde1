from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.core.errors import DataError, NumericalError
from diptych.training.adaptation import AdaptationOptions, fit_linear

from .planted import planted

BOTH = pytest.mark.parametrize("method", ["gaussian", "infonce"])


@BOTH
def test_no_pair_and_one_pair_change_nothing(method: str) -> None:
    options = AdaptationOptions(method=method)
    none = fit_linear(np.empty((0, 4)), np.empty((0, 4)), np.empty((0, 0), dtype=bool), options)
    assert none.maps.is_identity
    assert none.strength == math.inf
    images, texts = planted(1, width=4)
    assert fit_linear(images, texts, np.array([[True]]), options).maps.is_identity


@settings(max_examples=15)
@given(st.integers(2, 40), st.integers(0, 30))
def test_rows_that_are_known_are_left_alone(pairs: int, seed: int) -> None:
    rows, _ = planted(pairs, seed=seed)
    assert fit_linear(rows, rows, np.eye(pairs, dtype=bool)).maps.is_identity


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
