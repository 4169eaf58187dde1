"""A random forest for a first look: half the trees, and leaves that average over several sessions."""

from __future__ import annotations

from typing import Any

from diptych.commerce.purchase_intent.models.declaration import MODELS, IntentModel

__all__ = ["RANDOM_FOREST_SMALL"]


def _build(balanced: bool, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline

    weight = "balanced" if balanced else None
    forest = RandomForestClassifier(50, min_samples_leaf=10, class_weight=weight, random_state=seed, n_jobs=1)
    return make_pipeline(forest)


RANDOM_FOREST_SMALL = MODELS.add(
    IntentModel(
        name="random-forest-small",
        label="RF small",
        description="random forest, 50 trees, at least 10 sessions in a leaf; missing values as they are",
        presets=("fast",),
        build=_build,
        weighting="class_weight",
        has_impurity=True,
    )
)
