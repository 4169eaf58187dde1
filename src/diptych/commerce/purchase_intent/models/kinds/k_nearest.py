"""K nearest neighbours: the one model of the thesis that no weight can reach."""

from __future__ import annotations

from typing import Any

from diptych.commerce.purchase_intent.models.declaration import MODELS, IntentModel
from diptych.commerce.purchase_intent.models.preparation import imputed_and_scaled

__all__ = ["K_NEAREST"]


def _build(balanced: bool, seed: int) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return imputed_and_scaled(KNeighborsClassifier(5, n_jobs=1))


K_NEAREST = MODELS.add(
    IntentModel(
        name="k-nearest",
        label="KNN",
        description="5 nearest neighbours among scaled columns; has no weights for classes",
        presets=("paper",),
        build=_build,
        weighting="none",
    )
)
