"""The random forest of thesis section 6.5: its primary model."""

from __future__ import annotations

from typing import Any

from diptych.commerce.purchase_intent.models.declaration import MODELS, IntentModel

__all__ = ["RANDOM_FOREST"]


def _build(balanced: bool, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline

    weight = "balanced" if balanced else None
    return make_pipeline(RandomForestClassifier(100, class_weight=weight, random_state=seed, n_jobs=1))


RANDOM_FOREST = MODELS.add(
    IntentModel(
        name="random-forest",
        label="RF",
        description="random forest, 100 trees of full depth; missing values as they are (the thesis's primary model)",
        presets=("paper",),
        build=_build,
        weighting="class_weight",
        has_impurity=True,
    )
)
