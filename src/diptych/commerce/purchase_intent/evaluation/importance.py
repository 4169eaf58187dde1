"""What a feature is worth to a fitted model: by impurity, as published, and by permutation of held-out values.

Impurity (thesis Figure 6.6) is counted on training sessions and favours features with many values. Permutation
asks what the model loses on sessions that it has not seen, when a feature says of each what is true of another.
A feature's columns, e.g. those of its categories, are taken together in both.

Sources: Breiman, Random forests, Machine Learning 2001; Strobl et al., Bias in random forest variable importance
measures, BMC Bioinformatics 2007.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.commerce.purchase_intent.evaluation.cells import FoldImportance
from diptych.commerce.purchase_intent.evaluation.measures import average_precision
from diptych.commerce.purchase_intent.features.declaration import Feature
from diptych.commerce.purchase_intent.models import FittedModel

__all__ = ["REPEATS", "importance_of"]

REPEATS = 3
"""Permutations of every feature, in every fold."""


def importance_of(
    fitted: FittedModel,
    features: Sequence[Feature],
    owners: Sequence[str],
    X: np.ndarray,
    labels: np.ndarray,
    seed: Sequence[int],
) -> FoldImportance:
    """The importance of every feature.

    Args:
        fitted: the model.
        features: f that the columns were made of.
        owners: (c,) the feature that each column belongs to.
        X: (m, c) values of held-out sessions; they are as before at the end.
        labels: (m,) bool.
        seed: of the permutations.
    """
    names = [feature.name for feature in features]
    columns = [np.flatnonzero([owner == name for owner in owners]) for name in names]
    drops = np.full((len(names), REPEATS), np.nan)
    if labels.any():
        whole = average_precision(fitted.scores(X), labels)
        random = np.random.default_rng(list(seed))
        changed = X.copy()
        for number, mine in enumerate(columns):
            for repeat in range(REPEATS):
                changed[:, mine] = X[np.ix_(random.permutation(len(X)), mine)]
                drops[number, repeat] = whole - average_precision(fitted.scores(changed), labels)
            changed[:, mine] = X[:, mine]
    return FoldImportance(
        tuple(names),
        np.array([feature.dynamic for feature in features], dtype=bool),
        _impurity(fitted, columns),
        drops,
    )


def _impurity(fitted: FittedModel, columns: Sequence[np.ndarray]) -> np.ndarray:
    if fitted.pipeline is None or not fitted.model.has_impurity:
        return np.full(len(columns), np.nan)
    of_column = fitted.pipeline.steps[-1][1].feature_importances_
    return np.array([of_column[mine].sum() for mine in columns])
