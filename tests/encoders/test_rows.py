from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from diptych.core.errors import NumericalError
from diptych.encoders.dual_encoder import unit_rows


def test_by_hand() -> None:
    rows = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -2.0]]), "image", [0, 1, 2])
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.0, 0.0], [0.0, -1.0]], atol=1e-7)


def test_agrees_with_torch() -> None:
    import torch

    given_rows = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    given_rows[2] = 1e-14  # shorter than the smallest length that is divided by
    expected = torch.nn.functional.normalize(torch.from_numpy(given_rows), dim=-1).numpy()
    np.testing.assert_allclose(unit_rows(given_rows, "text", range(5)), expected, atol=1e-7)


def test_large_and_small_entries_neither_overflow_nor_vanish() -> None:
    rows = unit_rows(np.array([[3e38, 3e38], [1e-11, 1e-11]], np.float32), "text", [0, 1])
    np.testing.assert_allclose(rows, np.full((2, 2), 0.5**0.5), atol=1e-6)


@given(arrays.arrays(np.float32, (4, 3), elements=st.floats(-1e6, 1e6, width=32)))
def test_length_is_one_or_nearly_zero(rows: np.ndarray) -> None:
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    unit = np.linalg.norm(unit_rows(rows, "image", range(4)).astype(np.float64), axis=1)
    np.testing.assert_allclose(unit[lengths > 1e-11], 1.0, atol=1e-6)
    assert np.all(unit <= 1.0 + 1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_row_that_is_not_finite_is_named(value: float) -> None:
    rows = np.ones((3, 2), np.float32)
    rows[1, 0] = value
    with pytest.raises(NumericalError, match="embedding of text 41 is not finite"):
        unit_rows(rows, "text", [40, 41, 42])


def test_no_rows() -> None:
    assert unit_rows(np.empty((0, 3)), "text", []).shape == (0, 3)
