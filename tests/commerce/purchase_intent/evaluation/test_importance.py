"""Importance: what tells is found, what does not is worth nothing, and a feature's columns go together."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.commerce.purchase_intent.evaluation.measures import average_precision
from diptych.commerce.purchase_intent.evaluation.unit import REPEATS, importance_of
from diptych.commerce.purchase_intent.features.fitting import FEATURES
from diptych.commerce.purchase_intent.models import fit_model

CHOSEN = [FEATURES.get("dwell-mean"), FEATURES.get("channel"), FEATURES.get("week-day")]
OWNERS = ["dwell-mean", "channel", "channel", "week-day"]


def table(seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    y = random.random(300) < 0.3
    channel = random.normal(size=300) + 2.5 * y
    # Both columns of the channel say the same: permuted alone, neither would be missed.
    return np.stack([random.normal(size=300), channel, channel, np.zeros(300)], axis=1), y


@pytest.mark.parametrize("name", ["random-forest-small", "logistic-regression"])
def test_columns_of_a_feature_go_together(name: str) -> None:
    fitted = fit_model(name, *table(0))
    X, y = table(1)
    before = X.copy()
    found = importance_of(fitted, CHOSEN, OWNERS, X, y, [0, 1])
    assert X.tolist() == before.tolist()
    assert found.features == ("dwell-mean", "channel", "week-day")
    assert found.dynamic.tolist() == [True, False, False]
    assert found.drops.shape == (3, REPEATS)
    whole, chance = average_precision(fitted.scores(X), y), y.mean()
    assert found.drops[1].mean() == pytest.approx(whole - chance, abs=0.12)
    assert np.abs(found.drops[0]).max() < 0.05
    assert found.drops[2].tolist() == [0.0] * REPEATS
    if name == "logistic-regression":
        assert np.isnan(found.impurity).all()
    else:
        parts = fitted.pipeline.steps[-1][1].feature_importances_
        assert found.impurity.tolist() == [parts[0], parts[1] + parts[2], parts[3]]
        assert found.impurity.sum() == pytest.approx(1)
    again = importance_of(fitted, CHOSEN, OWNERS, X, y, [0, 1])
    assert again.drops.tolist() == found.drops.tolist()


def test_nothing_to_measure() -> None:
    fitted = fit_model("random-forest-small", *table(0))
    X, y = table(1)
    assert np.isnan(importance_of(fitted, CHOSEN, OWNERS, X, np.zeros_like(y), [0]).drops).all()
    constant = fit_model("random-forest-small", X[:, :0], y)
    none = importance_of(constant, [], [], X[:, :0], y, [0])
    assert (none.features, none.drops.shape, none.impurity.shape) == ((), (0, REPEATS), (0,))
