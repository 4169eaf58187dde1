"""A model at a setting, feature set and step: fitted on some sessions or on all but each fold, and calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from diptych.commerce.purchase_intent.features.fitting import FittedFeatures, fit_features
from diptych.commerce.purchase_intent.features.table import FeatureTable
from diptych.commerce.purchase_intent.models import FittedModel, Fold, IntentModel, fit_model
from diptych.core.context import check_stop
from diptych.core.errors import DataError
from diptych.core.extras import require

FEWEST_FOR_STEPS = 1000  # sessions of either class that the steps of an isotonic calibration are fitted on
_NEAREST = 1e-3  # probabilities count as no nearer to 0 or 1: a forest says 0 for fewer than 1 tree in 100


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


def log_odds(scores: np.ndarray, model: IntentModel) -> np.ndarray:
    """Return decisions as they are, probabilities as ln p / (1 − p), where class weights change only the intercept."""
    if model.output == "decision":
        return scores
    near = np.clip(scores, _NEAREST, 1 - _NEAREST)
    odds: np.ndarray = np.log(near / (1 - near))
    return odds


@dataclass(frozen=True)
class Calibration:
    """Map log-odds or decisions to probabilities, 1 / (1 + exp(−(slope · x + intercept))), or by ``steps``.

    Fitted on sessions that the model has not seen, it undoes equal weights of classes. Source: Platt, Probabilistic
    outputs for support vector machines, 1999; steps are those of an isotonic regression.
    """

    slope: float  # also the scale on which features have effects, whatever gives the probability
    intercept: float
    steps: tuple[tuple[float, ...], tuple[float, ...]] | None = None  # (x, p) to interpolate instead

    def probabilities(self, x: np.ndarray) -> np.ndarray:
        """Return (n,) in (0, 1) of (n,) log-odds or decisions."""
        found: np.ndarray = 0.5 * (1 + np.tanh((self.slope * x + self.intercept) / 2))  # never overflows
        return found if self.steps is None else np.asarray(np.interp(x, *self.steps))


def fit_platt(x: np.ndarray, labels: np.ndarray) -> Calibration:
    """Fit slope and intercept by the likelihood of Platt's targets, (N₊+1)/(N₊+2) and 1/(N₋+2).

    The targets keep the slope finite where a score tells the classes apart without error.
    """
    bought = int(labels.sum())
    others = len(labels) - bought
    if not bought or not others:
        wrong = f"{bought:,} purchases among {len(labels):,} sessions: probabilities cannot be calibrated"
        raise DataError(wrong, "calibrate on more sessions")
    targets = np.where(labels, (bought + 1) / (bought + 2), 1 / (others + 2))
    middle, spread = float(x.mean()), float(x.std())
    if spread < 1e-12 * max(1.0, abs(middle)):  # one value, but for rounding: nothing to tell apart by
        return Calibration(0.0, float(np.log(targets.sum() / (1 - targets).sum())))
    linear = require("sklearn.linear_model", "commerce", "calibration")
    logistic = linear.LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10)
    twice = np.tile((x - middle) / spread, 2)[:, None]  # each buys with a weight, and not with the rest
    logistic.fit(twice, np.repeat([1, 0], len(x)), np.concatenate([targets, 1 - targets]))
    slope = float(logistic.coef_[0, 0]) / spread
    return Calibration(slope, float(logistic.intercept_[0]) - slope * middle)


def fit_calibration(method: str, x: np.ndarray, labels: np.ndarray) -> tuple[Calibration, list[str]]:
    """Fit a calibration to (n,) log-odds of sessions that their models were not fitted on; return it and notes."""
    found = fit_platt(x, labels)
    notes = ["the order of cross-fitted predictions is none, or the wrong one"] * (found.slope <= 0)
    if method == "isotonic" and min(labels.sum(), (~labels).sum()) < FEWEST_FOR_STEPS:
        notes.append(f"calibrated by the sigmoid: steps need {FEWEST_FOR_STEPS:,} sessions of either class")
    elif method == "isotonic":
        nearest = 1 / (len(labels) + 2)
        isotonic = require("sklearn.isotonic", "commerce", "isotonic calibration").IsotonicRegression
        fitted = isotonic(y_min=nearest, y_max=1 - nearest).fit(x, labels.astype(np.float64))
        steps = (tuple(map(float, fitted.X_thresholds_)), tuple(map(float, fitted.y_thresholds_)))
        found = replace(found, steps=steps)
    return found, notes
