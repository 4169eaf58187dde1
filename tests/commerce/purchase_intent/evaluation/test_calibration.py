"""Platt's sigmoid: the likelihood's maximum, an order that stays, and what cannot be calibrated."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.commerce.purchase_intent.evaluation import fit_platt, log_odds
from diptych.commerce.purchase_intent.models import MODELS
from diptych.core.errors import DataError


def drawn(
    n: int = 300, slope: float = 2.0, intercept: float = -1.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    x = random.normal(0, 2, n)
    return x, random.random(n) < 1 / (1 + np.exp(-(slope * x + intercept)))


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e4])
def test_it_is_logistic_regression_on_softened_labels(scale: float) -> None:
    from sklearn.linear_model import LogisticRegression

    x, labels = drawn()
    bought = labels.sum()
    soft = np.where(labels, (bought + 1) / (bought + 2), 1 / (len(x) - bought + 2))
    # Every session is a purchase with that weight, and none with the rest.
    theirs = LogisticRegression(C=1e10, tol=1e-10, max_iter=1000)
    theirs.fit(
        np.concatenate([x, x])[:, None],
        np.repeat([1, 0], len(x)),
        sample_weight=np.concatenate([soft, 1 - soft]),
    )
    ours = fit_platt(scale * x + 5, labels)
    assert ours.slope * scale == pytest.approx(theirs.coef_[0, 0], rel=1e-4)
    assert ours.intercept + 5 * ours.slope == pytest.approx(theirs.intercept_[0], rel=1e-4)


def test_it_finds_what_was_planted_and_keeps_the_order() -> None:
    x, labels = drawn(20_000)
    found = fit_platt(x, labels)
    assert found.slope == pytest.approx(2.0, abs=0.1)
    assert found.intercept == pytest.approx(-1.0, abs=0.1)
    p = found.probabilities(np.sort(x))
    assert (np.diff(p) >= 0).all()
    assert p.mean() == pytest.approx(labels.mean(), abs=1e-3)


def test_balanced_weights_are_undone_by_the_intercept() -> None:
    # A model that is right in a balanced world: its odds are 4 times too high where one in five buys.
    random = np.random.default_rng(0)
    true = random.beta(1, 4, 20_000)
    labels = random.random(20_000) < true
    odds = 4 * true / (1 - true)
    forest = MODELS.get("random-forest")
    found = fit_platt(log_odds(odds / (1 + odds), forest), labels)
    assert found.slope == pytest.approx(1.0, abs=0.05)
    assert found.intercept == pytest.approx(-np.log(4), abs=0.1)


@pytest.mark.parametrize("x", [np.array([-1.0, -1, 1, 1]), np.array([1e6, 1e6, -1e6, -1e6]), np.zeros(4)])
def test_extremes_stay_finite(x: np.ndarray) -> None:
    labels = np.array([False, False, True, True])
    p = fit_platt(x, labels).probabilities(x)
    assert ((p > 0) & (p < 1)).all()
    if not x.any():
        assert p == pytest.approx(0.5)
    else:  # the targets are 1/4 and 3/4, and can be met
        assert p == pytest.approx([0.25, 0.25, 0.75, 0.75], abs=1e-6)


@pytest.mark.parametrize("labels", [np.zeros(3, dtype=bool), np.ones(3, dtype=bool)])
def test_one_class_cannot_be_calibrated(labels: np.ndarray) -> None:
    with pytest.raises(DataError, match="cannot be calibrated"):
        fit_platt(np.arange(3.0), labels)


def test_log_odds_of_what_a_model_gives() -> None:
    scores = np.array([0.0, 0.2, 0.5, 1.0])
    assert log_odds(scores, MODELS.get("svm")).tolist() == scores.tolist()
    odds = log_odds(scores, MODELS.get("random-forest"))
    assert odds[1:3] == pytest.approx([np.log(0.25), 0.0])
    assert odds[[0, 3]] == pytest.approx([np.log(0.001 / 0.999), np.log(0.999 / 0.001)])
