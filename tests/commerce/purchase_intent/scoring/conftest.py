from __future__ import annotations

import pytest
from feature_tables import small_features

from diptych.commerce.purchase_intent.features import FeatureTable
from diptych.commerce.purchase_intent.scoring import Scorer, TrainOptions, train


@pytest.fixture(scope="session")
def features(tmp_path_factory: pytest.TempPathFactory) -> FeatureTable:
    return small_features(tmp_path_factory.mktemp("features") / "shop", n=1500)


OPTIONS = TrainOptions(model="logistic-regression", samples=20, background=30)


@pytest.fixture(scope="session")
def options() -> TrainOptions:
    """Fast ones."""
    return OPTIONS


@pytest.fixture(scope="session")
def scorer(features: FeatureTable, tmp_path_factory: pytest.TempPathFactory) -> Scorer:
    return train(features, tmp_path_factory.mktemp("scorer") / "shop", options=OPTIONS)
