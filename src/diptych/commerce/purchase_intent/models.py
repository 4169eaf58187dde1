"""Classifiers by name: scikit-learn pipelines, fitted, saved without pickle and read back; or a constant instead."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self, cast

import numpy as np

from diptych.core.artifact import Artifact
from diptych.core.errors import MismatchError, StorageError
from diptych.core.extras import require
from diptych.core.reading import file_errors
from diptych.core.registry import Registry

Weighting = Literal["class_weight", "sample_weight", "none"]


@dataclass(frozen=True)
class IntentModel:
    """One classifier."""

    name: str  # e.g. random-forest
    label: str  # as tables print it, e.g. RF
    description: str  # one line, with the settings that matter
    estimator: str  # its last step in scikit-learn
    options: Mapping[str, Any] = field(default_factory=dict)  # that differ from scikit-learn's
    presets: tuple[str, ...] = ()  # which of paper and fast it belongs to
    weighting: Weighting = "class_weight"  # how classes are balanced; none where the model has no way

    @property
    def output(self) -> Literal["probability", "decision"]:
        """The kind of its scores; decisions have to be calibrated first."""
        return "decision" if self.estimator.startswith("svm.") else "probability"

    @property
    def has_impurity(self) -> bool:
        """True of forests, which take missing values as they are and have importances by impurity."""
        return self.estimator.endswith("RandomForestClassifier")

    @property
    def threshold(self) -> float:
        """The score from which on a purchase is predicted when nothing is tuned."""
        return 0.5 if self.output == "probability" else 0.0

    def pipeline(self, class_weight: str | None, seed: int) -> Any:
        """Return an unfitted scikit-learn pipeline.

        Missing values become their column's median, 0 where training has none, and another column says that they were
        missing: a fold that happens to lack a value must not change which columns there are.
        """
        from sklearn.impute import SimpleImputer
        from sklearn.kernel_approximation import Nystroem
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        module, name = self.estimator.split(".")
        estimator = getattr(importlib.import_module(f"sklearn.{module}"), name)(**self.options)
        weights = {"class_weight": class_weight} if self.weighting == "class_weight" else {}
        seeds = {"random_state": seed} if "random_state" in estimator.get_params() else {}
        imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        steps = [] if self.has_impurity else [imputer]
        if not self.estimator.startswith("ensemble."):
            steps.append(StandardScaler())
        if self.name == "nystroem-svm":
            steps.append(Nystroem(n_components=300, random_state=seed, n_jobs=1))
        return make_pipeline(*steps, estimator.set_params(**weights, **seeds))


MODELS: Registry[IntentModel] = Registry("model", __name__)
"""All classifiers."""

# With scikit-learn's settings HistGB learns a few thousand sessions by heart; of five these were best or near it on
# generated logs and on UCI's sessions. It takes missing values itself, but fails where a sample has none but them.
_OPTIONS: dict[str, dict[str, Any]] = {
    "hist-gradient-boosting": dict(
        max_leaf_nodes=8, min_samples_leaf=50, learning_rate=0.05, early_stopping=False
    ),
    "k-nearest": dict(n_jobs=1),
    "linear-svm": dict(max_iter=10_000),
    "logistic-regression": dict(max_iter=1000),
    "neural-network": dict(early_stopping=True),
    "nystroem-svm": dict(max_iter=10_000),
    "random-forest": dict(n_jobs=1),
    "random-forest-small": dict(n_estimators=50, min_samples_leaf=10, n_jobs=1),
    "svm": dict(cache_size=500),
}
_DECLARED = """
gradient-boosting; GBDT; ensemble.GradientBoostingClassifier; paper; sample_weight; 100 boosted trees of depth 3, \
learning rate 0.1
hist-gradient-boosting; HistGB; ensemble.HistGradientBoostingClassifier; fast; class_weight; 100 boosted trees of at \
most 8 leaves, each of at least 50 sessions, over 255 bins, learning rate 0.05; not the thesis's GBDT
k-nearest; KNN; neighbors.KNeighborsClassifier; paper; none; 5 nearest neighbours among scaled columns; has no weights \
for classes
linear-svm; linear SVM; svm.LinearSVC; ; class_weight; support vectors without a kernel, C 1, of scaled columns; not \
the thesis's SVM
logistic-regression; LR; linear_model.LogisticRegression; paper fast; class_weight; logistic regression, L2 with C 1, \
of scaled columns
neural-network; NN; neural_network.MLPClassifier; paper; sample_weight; 100 rectified units, Adam, of scaled columns; \
stops by a tenth of the training sessions
nystroem-svm; Nyström SVM; svm.LinearSVC; ; class_weight; support vectors on 300 columns of a Gaussian kernel, C 1, of \
scaled columns; close to the thesis's SVM, in linear time
random-forest; RF; ensemble.RandomForestClassifier; paper; class_weight; random forest, 100 trees of full depth; \
missing values as they are (the thesis's primary model)
random-forest-small; RF small; ensemble.RandomForestClassifier; fast; class_weight; random forest, 50 trees, at least \
10 sessions in a leaf; missing values as they are
svm; SVM; svm.SVC; paper; class_weight; support vectors, Gaussian kernel, C 1, of scaled columns; time grows with the \
square of sessions
"""
for _line in _DECLARED.strip().splitlines():
    _name, _label, _class, _presets, _weighting, _text = _line.split("; ", 5)
    _options, _in = _OPTIONS.get(_name, {}), tuple(_presets.split())
    MODELS.add(IntentModel(_name, _label, _text, _class, _options, _in, cast("Weighting", _weighting)))


@cache
def _threads() -> Any:
    for name in ("scipy.linalg", "sklearn.ensemble"):
        importlib.import_module(name)
    return require("threadpoolctl", "commerce", "fitting models").ThreadpoolController()


def one_thread() -> Any:
    """Keep BLAS and OpenMP to one thread inside the block."""
    return _threads().limit(limits=1)


FILE = "model.skops"
TRUSTED = (
    "numpy.dtype",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.tree._tree.Tree",
)
"""Types that a saved model may hold besides those that skops trusts; a file that asks for another is refused."""


@dataclass(eq=False)
class FittedModel(Artifact, kind="classifier", recreate="diptych intent train FEATURES --out SCORER"):
    """A fitted classifier."""

    name: str  # of its declaration
    columns: int  # how many it takes
    balanced: bool  # whether classes were to weigh the same
    seed: int
    weighting: Weighting  # how they were weighed
    constant: float | None = None  # the one score of a model that had nothing to learn from
    reason: str = ""  # why it had not
    warnings: tuple[str, ...] = ()  # of the fit, e.g. that it did not converge
    scikit_learn: str = ""  # the version that fitted it
    pipeline: Any = field(init=False, default=None)  # scikit-learn's; None of a constant

    @property
    def model(self) -> IntentModel:
        """Its declaration."""
        return MODELS.get(self.name)

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Return (n,) float64 probabilities or decisions; of a balanced model those of a world where half buys."""
        if X.shape[1] != self.columns:
            wrong = f"{self.name} was fitted on {self.columns} columns and is given {X.shape[1]}"
            raise MismatchError(wrong, "compute the features as they were for training")
        if self.constant is not None or not len(X):
            return np.full(len(X), self.constant or 0.0)
        decides = self.model.output == "decision"
        with one_thread():
            found = self.pipeline.decision_function(X) if decides else self.pipeline.predict_proba(X)[:, 1]
            return np.asarray(found, dtype=np.float64)

    def write_files(self, folder: Path) -> None:
        """Write ``model.skops``."""
        if self.pipeline is not None:
            require("skops.io", "commerce", "saving a model").dump(self.pipeline, folder / FILE)

    @classmethod
    def open(cls, path: Path | str, of: str = "") -> Self:
        """Read what :meth:`save` wrote; nothing but the types of :data:`TRUSTED` and scikit-learn's is made."""
        found = super().open(path, of)
        here = require("sklearn", "commerce", "reading a model").__version__
        if found.scikit_learn.split(".")[:2] != here.split(".")[:2]:
            wrong = f"{path} was fitted by scikit-learn {found.scikit_learn}, this is {here}"
            raise MismatchError(wrong, "train it again, or install that version")
        if found.constant is not None:
            return found
        skops, file = require("skops.io", "commerce", "reading a model"), Path(path) / FILE
        try:
            with file_errors(file, fix="train it again", noun="a saved model"):
                found.pipeline = skops.load(file, trusted=list(TRUSTED))
        except skops.exceptions.UntrustedTypesFoundException as error:
            wrong = f"{file} asks for types that no model of ours needs: {error}"
            raise StorageError(wrong, "do not use it") from None
        return found


FEWEST = 10
"""Sessions of either class that a model is fitted on at least; with fewer its score is a constant."""


def fit_model(
    model: IntentModel | str, X: np.ndarray, y: np.ndarray, *, balanced: bool = True, seed: int = 0
) -> FittedModel:
    """Fit a classifier to (n, c) float64, NaN where a value is missing, and (n,) bool; equal rows give equal bits.

    Without a column, or with fewer than :data:`FEWEST` sessions of a class, the model is a constant: the share of
    purchases, or 0.5 where classes weigh the same, which predicts a purchase always.
    """
    version = require("sklearn", "commerce", "fitting models").__version__
    chosen = MODELS.get(model) if isinstance(model, str) else model
    fitted = FittedModel(chosen.name, X.shape[1], balanced, seed, "none", scikit_learn=version)
    bought = int(y.sum())
    if not X.shape[1]:
        fitted.reason = "no feature is known at this step"
    elif min(bought, len(y) - bought) < FEWEST:
        found = f"{bought:,} purchases among {len(y):,} training sessions"
        fitted.reason = f"{found}: at least {FEWEST} of either class are needed"
    if fitted.reason:
        share = 0.5 if balanced and 0 < bought < len(y) else bought / len(y)
        fitted.constant = share - 0.5 + chosen.threshold  # in the model's own terms
        return fitted
    fitted.weighting = chosen.weighting if balanced else "none"
    fitted.pipeline, weights = chosen.pipeline("balanced" if balanced else None, seed), {}
    if fitted.weighting == "sample_weight":
        from sklearn.utils.class_weight import compute_sample_weight

        weights[f"{fitted.pipeline.steps[-1][0]}__sample_weight"] = compute_sample_weight("balanced", y)
    with warnings.catch_warnings(record=True) as caught, one_thread():
        warnings.simplefilter("always")
        fitted.pipeline.fit(np.ascontiguousarray(X), y.astype(np.int64), **weights)
    lines = {
        f"{one.category.__name__}: {(str(one.message).strip() or '-').splitlines()[0]}" for one in caught
    }
    fitted.warnings = tuple(sorted(lines))
    return fitted
