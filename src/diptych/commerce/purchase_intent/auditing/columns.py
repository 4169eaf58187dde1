"""How well single columns alone tell two kinds of sessions apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.commerce.purchase_intent.evaluation.measures import roc_auc


def column_aucs(matrix: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(c,) ROC AUC of every column, in the direction in which it is better, or of whether it has a value.

    Args:
        matrix: (n, c) with NaN where there is no value.
        labels: (n,) bool with both kinds.
    """
    return np.array([_auc(matrix[:, column], labels) for column in range(matrix.shape[1])])


def best_column(names: Sequence[str], aucs: np.ndarray) -> tuple[str, float]:
    """The name and ROC AUC of the best; an empty name and 0.5 where there is no column."""
    if not len(aucs):
        return "", 0.5
    best = int(np.argmax(aucs))
    return names[best], float(aucs[best])


def _auc(values: np.ndarray, labels: np.ndarray) -> float:
    missing = np.isnan(values)
    if not missing.any():
        return _either_way(values, labels)
    there = values[~missing]
    # A missing value is below all others here, and its being missing a column of its own.
    filled = np.where(missing, there.min() - 1 if len(there) else 0.0, values)
    return max(_either_way(filled, labels), _either_way(missing.astype(np.float64), labels))


def _either_way(values: np.ndarray, labels: np.ndarray) -> float:
    auc = float(roc_auc(values, labels))
    return max(auc, 1 - auc)
