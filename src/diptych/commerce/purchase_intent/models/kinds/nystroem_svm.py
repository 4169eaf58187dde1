"""The Gaussian kernel approximated by 300 of its columns (Williams and Seeger, NIPS 2001)."""

from __future__ import annotations

from typing import Any

from diptych.commerce.purchase_intent.models.declaration import MODELS, IntentModel
from diptych.commerce.purchase_intent.models.preparation import imputed_and_scaled

__all__ = ["NYSTROEM_SVM"]


def _build(balanced: bool, seed: int) -> Any:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.svm import LinearSVC

    weight = "balanced" if balanced else None
    return imputed_and_scaled(
        Nystroem(n_components=300, random_state=seed, n_jobs=1),
        LinearSVC(class_weight=weight, max_iter=10_000, random_state=seed),
    )


NYSTROEM_SVM = MODELS.add(
    IntentModel(
        name="nystroem-svm",
        label="Nyström SVM",
        description="support vectors on 300 columns of a Gaussian kernel, C 1, of scaled columns; "
        "close to the thesis's SVM, in linear time",
        presets=(),
        build=_build,
        weighting="class_weight",
        output="decision",
    )
)
