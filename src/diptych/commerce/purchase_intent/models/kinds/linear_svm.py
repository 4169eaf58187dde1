"""The support vector machine without a kernel: for logs on which :mod:`svm` would take days."""

from __future__ import annotations

from typing import Any

from diptych.commerce.purchase_intent.models.declaration import MODELS, IntentModel
from diptych.commerce.purchase_intent.models.preparation import imputed_and_scaled

__all__ = ["LINEAR_SVM"]


def _build(balanced: bool, seed: int) -> Any:
    from sklearn.svm import LinearSVC

    weight = "balanced" if balanced else None
    return imputed_and_scaled(LinearSVC(class_weight=weight, max_iter=10_000, random_state=seed))


LINEAR_SVM = MODELS.add(
    IntentModel(
        name="linear-svm",
        label="linear SVM",
        description="support vectors without a kernel, C 1, of scaled columns; not the thesis's SVM",
        presets=(),
        build=_build,
        weighting="class_weight",
        output="decision",
    )
)
