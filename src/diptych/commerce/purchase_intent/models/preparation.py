"""What is done to a matrix before a classifier sees it, fitted on training rows alone.

A missing value is replaced by its column's median, and another column says that it was missing, so that a model
may learn from that too. A column without any value in training becomes 0; a constant one stays: a fold that
happens to lack a value must not change which columns there are.
"""

from __future__ import annotations

from typing import Any


def imputed(*steps: Any) -> Any:
    """A pipeline of ``steps`` behind the replacement of missing values."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    fill = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    return make_pipeline(fill, *steps)


def imputed_and_scaled(*steps: Any) -> Any:
    """The same, and every column of mean 0 and variance 1: for models that measure distances or penalise weights."""
    from sklearn.preprocessing import StandardScaler

    return imputed(StandardScaler(), *steps)
