"""Logistic regression."""

from __future__ import annotations

from typing import Any

from diptych.commerce.purchase_intent.models.declaration import MODELS, IntentModel
from diptych.commerce.purchase_intent.models.preparation import imputed_and_scaled

__all__ = ["LOGISTIC_REGRESSION"]


def _build(balanced: bool, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    weight = "balanced" if balanced else None
    return imputed_and_scaled(LogisticRegression(class_weight=weight, max_iter=1000, random_state=seed))


LOGISTIC_REGRESSION = MODELS.add(
    IntentModel(
        name="logistic-regression",
        label="LR",
        description="logistic regression, L2 with C 1, of scaled columns",
        presets=("paper", "fast"),
        build=_build,
        weighting="class_weight",
    )
)
