"""Types that a saved model may hold besides scikit-learn's estimators; a file that asks for another is refused.

They are what :mod:`skops` does not trust by itself and the declared models need. A test saves every model and
holds what it needs against this list.
"""

from __future__ import annotations

__all__ = ["TRUSTED"]

TRUSTED = (
    "numpy.dtype",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.tree._tree.Tree",
)
