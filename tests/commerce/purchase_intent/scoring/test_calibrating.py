"""From scores to probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.commerce.purchase_intent.scoring.cell import fit_calibration
from diptych.core.errors import DataError, UnknownNameError


def sample(n: int, slope: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Scores, and outcomes whose log-odds are ``slope`` times them, less 1."""
    random = np.random.default_rng(1)
    x = random.normal(size=n)
    return x, random.random(n) < 1 / (1 + np.exp(1 - slope * x))


def test_platt_is_recovered_and_read_back() -> None:
    x, labels = sample(20_000, slope=2.0)
    found, said = fit_calibration("platt", x, labels)
    assert said == ""
    assert found.steps is None
    assert (found.platt.slope, found.platt.intercept) == pytest.approx((2.0, -1.0), abs=0.1)
    p = found.probabilities(x)
    np.testing.assert_allclose(found.log_odds(x), np.log(p / (1 - p)), atol=1e-9)


def test_steps_are_those_of_pooled_neighbours() -> None:
    from sklearn.isotonic import isotonic_regression

    x, labels = sample(6000)
    found, said = fit_calibration("isotonic", x, labels)
    assert (said, found.steps is None) == ("", False)
    order = np.argsort(x)
    np.testing.assert_allclose(
        found.probabilities(x)[order],
        np.clip(isotonic_regression(labels[order].astype(float)), 1 / 6002, 6001 / 6002),
        atol=1e-9,
    )
    far = found.probabilities(np.array([-1e9, 1e9]))
    assert (far > 0).all()
    assert (far < 1).all()


def test_too_few_for_steps_is_said() -> None:
    found, said = fit_calibration("isotonic", *sample(500))
    assert found.steps is None
    assert "steps need 1,000 sessions of either class" in said


def test_a_wrong_order_is_said() -> None:
    _, said = fit_calibration("platt", *sample(5000, slope=-1.0))
    assert "the wrong one" in said


def test_what_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="plat"):
        fit_calibration("plat", *sample(10))
    with pytest.raises(DataError, match="cannot be calibrated"):
        fit_calibration("platt", np.zeros(5), np.zeros(5, dtype=bool))
