"""Gradient boosted decision trees."""

from __future__ import annotations

from typing import Any

from diptych.commerce.purchase_intent.models.declaration import MODELS, IntentModel
from diptych.commerce.purchase_intent.models.preparation import imputed

__all__ = ["GRADIENT_BOOSTING"]


def _build(balanced: bool, seed: int) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return imputed(GradientBoostingClassifier(random_state=seed))


GRADIENT_BOOSTING = MODELS.add(
    IntentModel(
        name="gradient-boosting",
        label="GBDT",
        description="100 boosted trees of depth 3, learning rate 0.1",
        presets=("paper",),
        build=_build,
        weighting="sample_weight",
    )
)
