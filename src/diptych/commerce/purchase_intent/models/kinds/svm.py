"""The support vector machine with a Gaussian kernel."""

from __future__ import annotations

from typing import Any

from diptych.commerce.purchase_intent.models.declaration import MODELS, IntentModel
from diptych.commerce.purchase_intent.models.preparation import imputed_and_scaled

__all__ = ["SVM"]

_CACHE_MEGABYTES = 500


def _build(balanced: bool, seed: int) -> Any:
    from sklearn.svm import SVC

    weight = "balanced" if balanced else None
    return imputed_and_scaled(
        SVC(kernel="rbf", class_weight=weight, cache_size=_CACHE_MEGABYTES, random_state=seed)
    )


SVM = MODELS.add(
    IntentModel(
        name="svm",
        label="SVM",
        description="support vectors, Gaussian kernel, C 1, of scaled columns; time grows with the square of sessions",
        presets=("paper",),
        build=_build,
        weighting="class_weight",
        output="decision",
    )
)
