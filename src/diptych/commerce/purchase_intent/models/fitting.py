"""Fit a model by name, with classes that weigh the same where it can."""

from __future__ import annotations

import warnings

import numpy as np

from diptych.commerce.purchase_intent.models.checking import checked_labels, checked_matrix
from diptych.commerce.purchase_intent.models.declaration import MODELS, IntentModel
from diptych.commerce.purchase_intent.models.fitted import FittedModel
from diptych.commerce.purchase_intent.models.threads import one_thread
from diptych.core.extras import require

FEWEST = 10
"""Sessions of either class that a model is fitted on at least; with fewer its score is a constant."""


def fit_model(
    model: IntentModel | str, X: np.ndarray, y: np.ndarray, *, balanced: bool = True, seed: int = 0
) -> FittedModel:
    """Fit a classifier: the same rows and seed give the same bits.

    Where there is nothing to learn from (no column at all, as in the baseline set before any page, or fewer than
    :data:`FEWEST` sessions of a class) the model is a constant, and says so: the share of purchases, or 0.5 where
    classes are to weigh the same, which predicts a purchase always.

    Args:
        X: (n, c) float; NaN where a value is missing.
        y: (n,) bool, whether a session ends in a purchase.
    """
    require("sklearn", "commerce", "fitting models")
    chosen = MODELS.get(model) if isinstance(model, str) else model
    X, y = checked_matrix(X), checked_labels(y, len(X))
    weighting = chosen.weighting if balanced else "none"
    reason = _nothing_to_learn(X, y)
    if reason:
        share = 0.5 if balanced and y.any() and not y.all() else float(y.mean())
        score = share - 0.5 + chosen.threshold  # in the model's own terms
        return FittedModel(chosen, None, X.shape[1], balanced, seed, "none", constant=score, reason=reason)
    pipeline = chosen.build(balanced, seed)
    extra = {}
    if weighting == "sample_weight":
        extra[f"{pipeline.steps[-1][0]}__sample_weight"] = _weights(y)
    with warnings.catch_warnings(record=True) as caught, one_thread():
        warnings.simplefilter("always")
        pipeline.fit(X, y.astype(np.int64), **extra)
    said = tuple(sorted({_first_line(one) for one in caught}))
    return FittedModel(chosen, pipeline, X.shape[1], balanced, seed, weighting, warnings=said)


def _nothing_to_learn(X: np.ndarray, y: np.ndarray) -> str:
    bought = int(y.sum())
    if not X.shape[1]:
        return "no feature is known at this step"
    if min(bought, len(y) - bought) < FEWEST:
        return f"{bought:,} purchases among {len(y):,} training sessions: at least {FEWEST} of either class are needed"
    return ""


def _weights(y: np.ndarray) -> np.ndarray:
    """n / (2 n_c), as scikit-learn's ``class_weight="balanced"``."""
    bought = y.mean()
    weights: np.ndarray = np.where(y, 0.5 / bought, 0.5 / (1 - bought))
    return weights


def _first_line(caught: warnings.WarningMessage) -> str:
    lines = str(caught.message).strip().splitlines()
    return f"{caught.category.__name__}: {lines[0] if lines else ''}"
