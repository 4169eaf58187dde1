"""What a matrix and its labels have to be."""

from __future__ import annotations

import numpy as np

from diptych.core.errors import DataError, NumericalError


def checked_matrix(X: np.ndarray) -> np.ndarray:
    """(n, c) float64, NaN where a value is missing."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise DataError(f"features are of shape {X.shape}, a matrix of sessions by columns is needed")
    infinite = np.flatnonzero(np.isinf(X).any(axis=0))
    if len(infinite):
        raise NumericalError(
            f"column {int(infinite[0])} of the features holds an infinite value",
            "NaN says that a value is missing",
        )
    return X


def checked_labels(y: np.ndarray, rows: int) -> np.ndarray:
    """(n,) bool."""
    y = np.asarray(y).astype(bool)
    if y.shape != (rows,):
        raise DataError(f"{rows:,} sessions have labels of shape {y.shape}")
    if not rows:
        raise DataError("no session to train on")
    return y
