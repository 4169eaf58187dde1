"""What each feature does to the log-odds: for a linear model, its coefficient times what it is off the mean."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.commerce.purchase_intent.scoring.cell import replaced


def test_rows_of_a_small_case() -> None:
    nan = np.nan
    row = np.array([1.0, 2.0, 3.0, nan])
    background = np.array([[9.0, 2.0, 7.0, nan], [8.0, 2.0, 6.0, nan]])
    found = replaced(row, background, ("a", "b", "a", "c"))
    assert found.features == ("a",)
    assert found.constant == ("b", "c")
    np.testing.assert_array_equal(found.rows, [[1, 2, 3, nan], [9, 2, 7, nan], [8, 2, 6, nan]])
    assert found.effects(np.array([5.0, 1.0, 2.0])) == {"a": 3.5, "b": 0.0, "c": 0.0}


def test_no_feature_at_all() -> None:
    found = replaced(np.zeros(0), np.zeros((3, 0)), ())
    assert found.effects(np.array([0.7])) == {}


def test_a_linear_model_is_taken_apart() -> None:
    random = np.random.default_rng(0)
    background, row = random.normal(size=(50, 4)), random.normal(size=4)
    weights = np.array([0.5, -2.0, 1.0, 0.0])
    owners = ("one", "two", "three", "three")
    found = replaced(row, background, owners)
    effects = found.effects(found.rows @ weights + 3)
    shares = weights * (row - background.mean(axis=0))
    assert effects == pytest.approx({"one": shares[0], "two": shares[1], "three": shares[2:].sum()})
    assert sum(effects.values()) == pytest.approx((row - background.mean(axis=0)) @ weights)


def test_what_two_features_do_only_together_counts_for_both() -> None:
    found = replaced(np.array([1.0, 1.0]), np.zeros((2, 2)), ("a", "b"))
    assert found.effects(found.rows.prod(axis=1)) == {"a": 1.0, "b": 1.0}
