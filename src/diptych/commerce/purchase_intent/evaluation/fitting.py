"""A setting, feature set and step of a table, where a model is fitted: on some sessions, or on all but each fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diptych.commerce.purchase_intent.evaluation.measures import log_odds
from diptych.commerce.purchase_intent.features.fitting import FittedFeatures, fit_features
from diptych.commerce.purchase_intent.features.table import FeatureTable
from diptych.commerce.purchase_intent.models import FittedModel, fit_model
from diptych.commerce.purchase_intent.splits import Fold
from diptych.core.context import check_stop


@dataclass(frozen=True, eq=False)
class Fitting:
    """Fit a model at a setting, feature set and step."""

    table: FeatureTable
    setting: str
    feature_set: str
    step: int
    model: str
    balanced: bool
    seed: int

    def fit(self, rows: np.ndarray) -> tuple[FittedFeatures, FittedModel]:
        """Fit features and the model on some sessions."""
        view = self.table.at(rows, self.step)
        features = fit_features(self.table.features(self.setting, self.feature_set, self.step), view)
        X, y = features.matrix(view), self.table.labels[rows]
        return features, fit_model(self.model, X, y, balanced=self.balanced, seed=self.seed)

    def cross_fit(self, folds: Sequence[Fold]) -> tuple[np.ndarray, np.ndarray]:
        """Return the test rows of all folds, and their log-odds by models of the folds' training rows."""
        found = []
        for fold in folds:
            check_stop("stopped: what is finished is kept")
            features, model = self.fit(fold.train)
            scores = model.scores(features.matrix(self.table.at(fold.test, self.step)))
            found.append(log_odds(scores, model.model))
        return np.concatenate([fold.test for fold in folds]), np.concatenate(found)
