"""The neural classifier: one hidden layer."""

from __future__ import annotations

from typing import Any

from diptych.commerce.purchase_intent.models.declaration import MODELS, IntentModel
from diptych.commerce.purchase_intent.models.preparation import imputed_and_scaled

__all__ = ["NEURAL_NETWORK"]


def _build(balanced: bool, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    return imputed_and_scaled(MLPClassifier((100,), early_stopping=True, random_state=seed))


NEURAL_NETWORK = MODELS.add(
    IntentModel(
        name="neural-network",
        label="NN",
        description="100 rectified units, Adam, of scaled columns; stops by a tenth of the training sessions",
        presets=("paper",),
        build=_build,
        weighting="sample_weight",
    )
)
