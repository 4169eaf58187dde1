"""Classifiers by name: built, fitted, saved without pickle and read back; or the constant in their place."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from diptych.core.artifact import Artifact
from diptych.core.errors import DataError, MismatchError, NumericalError, StorageError
from diptych.core.extras import require
from diptych.core.reading import file_errors
from diptych.core.registry import Registry

Weighting = Literal["class_weight", "sample_weight", "none"]


@dataclass(frozen=True)
class IntentModel:
    """One classifier.

    Attributes:
        name: e.g. ``random-forest``.
        label: as tables print it, e.g. ``RF``.
        description: one line, with the settings that matter.
        build: a scikit-learn pipeline from (class weight, seed): imputation and scaling are inside, so that they are
            fitted on training rows alone.
        presets: which of ``paper`` and ``fast`` it belongs to.
        weighting: how classes are balanced; ``none`` where the model has no way, which reports say.
        output: whether its scores are probabilities, or decisions that have to be calibrated first.
        has_impurity: whether its last step tells the importance of the columns that it is given, by impurity.
    """

    name: str
    label: str
    description: str
    build: Callable[[str | None, int], Any]
    presets: tuple[str, ...] = ()
    weighting: Weighting = "class_weight"
    output: Literal["probability", "decision"] = "probability"
    has_impurity: bool = False

    @property
    def threshold(self) -> float:
        """The score from which on a purchase is predicted when nothing is tuned: 0.5, or 0 of a decision."""
        return 0.5 if self.output == "probability" else 0.0


MODELS: Registry[IntentModel] = Registry("model", __name__)
"""All classifiers."""


def _sklearn(path: str, *args: Any, **options: Any) -> Any:
    """Make an estimator of scikit-learn, which is loaded when it is needed."""
    module, name = path.split(".")
    return getattr(importlib.import_module(f"sklearn.{module}"), name)(*args, **options)


def imputed(*steps: Any, scaled: bool = False) -> Any:
    """Return a pipeline of ``steps`` behind the replacement of missing values, fitted on training rows alone.

    A missing value is replaced by its column's median, and another column says that it was missing, so that a model
    may learn from that too. A column without any value in training becomes 0; a constant one stays: a fold that
    happens to lack a value must not change which columns there are.

    Args:
        scaled: give every column mean 0 and variance 1, for models that measure distances or penalise weights.
    """
    fill = _sklearn("impute.SimpleImputer", strategy="median", add_indicator=True, keep_empty_features=True)
    return _pipeline(fill, *([_sklearn("preprocessing.StandardScaler")] if scaled else []), *steps)


def _pipeline(*steps: Any) -> Any:
    from sklearn.pipeline import make_pipeline

    return make_pipeline(*steps)


def _linear_svm(weight: str | None, seed: int) -> Any:
    return _sklearn("svm.LinearSVC", class_weight=weight, max_iter=10_000, random_state=seed)


def _forest(weight: str | None, seed: int, trees: int = 100, leaf: int = 1) -> Any:
    options = {"min_samples_leaf": leaf, "class_weight": weight, "random_state": seed, "n_jobs": 1}
    return _pipeline(_sklearn("ensemble.RandomForestClassifier", trees, **options))


def _hist_gradient_boosting(weight: str | None, seed: int) -> Any:
    """Trees are small and learn slowly: with scikit-learn's settings a few thousand sessions are learned by heart.

    Of five settings these were best or near it on generated logs and on UCI's sessions. It takes missing values
    itself, but fails where the sample that it bins by holds none but them.
    """
    options = {"max_leaf_nodes": 8, "min_samples_leaf": 50, "learning_rate": 0.05, "early_stopping": False}
    name = "ensemble.HistGradientBoostingClassifier"
    return imputed(_sklearn(name, class_weight=weight, random_state=seed, **options))


for _model in (
    IntentModel(
        "gradient-boosting",
        "GBDT",
        "100 boosted trees of depth 3, learning rate 0.1",
        lambda _, seed: imputed(_sklearn("ensemble.GradientBoostingClassifier", random_state=seed)),
        ("paper",),
        weighting="sample_weight",
    ),
    IntentModel(
        "hist-gradient-boosting",
        "HistGB",
        "100 boosted trees of at most 8 leaves, each of at least 50 sessions, over 255 bins, learning "
        "rate 0.05; not the thesis's GBDT",
        _hist_gradient_boosting,
        ("fast",),
    ),
    IntentModel(
        "k-nearest",
        "KNN",
        "5 nearest neighbours among scaled columns; has no weights for classes",
        lambda *_: imputed(_sklearn("neighbors.KNeighborsClassifier", 5, n_jobs=1), scaled=True),
        ("paper",),
        weighting="none",
    ),
    IntentModel(
        "linear-svm",
        "linear SVM",
        "support vectors without a kernel, C 1, of scaled columns; not the thesis's SVM",
        lambda *given: imputed(_linear_svm(*given), scaled=True),
        output="decision",
    ),
    IntentModel(
        "logistic-regression",
        "LR",
        "logistic regression, L2 with C 1, of scaled columns",
        lambda weight, seed: imputed(
            _sklearn(
                "linear_model.LogisticRegression", class_weight=weight, max_iter=1000, random_state=seed
            ),
            scaled=True,
        ),
        ("paper", "fast"),
    ),
    IntentModel(
        "neural-network",
        "NN",
        "100 rectified units, Adam, of scaled columns; stops by a tenth of the training sessions",
        lambda _, seed: imputed(
            _sklearn("neural_network.MLPClassifier", (100,), early_stopping=True, random_state=seed),
            scaled=True,
        ),
        ("paper",),
        weighting="sample_weight",
    ),
    IntentModel(
        "nystroem-svm",
        "Nyström SVM",
        "support vectors on 300 columns of a Gaussian kernel, C 1, of scaled columns; "
        "close to the thesis's SVM, in linear time",
        lambda weight, seed: imputed(
            _sklearn("kernel_approximation.Nystroem", n_components=300, random_state=seed, n_jobs=1),
            _linear_svm(weight, seed),
            scaled=True,
        ),
        output="decision",
    ),
    IntentModel(
        "random-forest",
        "RF",
        "random forest, 100 trees of full depth; missing values as they are (the thesis's primary model)",
        _forest,
        ("paper",),
        has_impurity=True,
    ),
    IntentModel(
        "random-forest-small",
        "RF small",
        "random forest, 50 trees, at least 10 sessions in a leaf; missing values as they are",
        lambda weight, seed: _forest(weight, seed, 50, 10),
        ("fast",),
        has_impurity=True,
    ),
    IntentModel(
        "svm",
        "SVM",
        "support vectors, Gaussian kernel, C 1, of scaled columns; time grows with the square of sessions",
        lambda weight, seed: imputed(
            _sklearn("svm.SVC", kernel="rbf", class_weight=weight, cache_size=500, random_state=seed),
            scaled=True,
        ),
        ("paper",),
        output="decision",
    ),
):
    MODELS.add(_model)


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


_COMPUTING = ("scipy.linalg", "sklearn.ensemble")
"""Modules that load BLAS and OpenMP as the models use them."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS and OpenMP to one thread inside the block."""
    with _controller().limit(limits=1):
        yield


@cache
def _controller() -> Any:
    """Looks once at which libraries are loaded: that takes as long as a score."""
    library = require("threadpoolctl", "commerce", "fitting models")
    for name in _COMPUTING:
        importlib.import_module(name)
    return library.ThreadpoolController()


# Types that a saved model may hold besides scikit-learn's estimators; a file that asks for another is refused.
#
# They are what :mod:`skops` does not trust by itself and the declared models need. A test saves every model and
# holds what it needs against this list.

TRUSTED = (
    "numpy.dtype",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.tree._tree.Tree",
)


FILE = "model.skops"


@dataclass(eq=False)
class FittedModel(Artifact, kind="classifier", recreate="diptych intent train FEATURES --out SCORER"):
    """A fitted classifier."""

    name: str  # of its declaration
    columns: int  # how many it takes
    balanced: bool  # whether classes were to weigh the same
    seed: int  # of the fit
    weighting: Weighting  # how they were weighed; none where the model has no way, or it was not asked for
    constant: float | None = None  # the one score of a model that had nothing to learn from
    reason: str = ""  # why it had not
    warnings: tuple[str, ...] = ()  # what the fit complained of, e.g. that it did not converge
    scikit_learn: str = ""  # the version that fitted it
    pipeline: Any = field(init=False, default=None)  # scikit-learn's; None of a constant

    @property
    def model(self) -> IntentModel:
        """Its declaration."""
        return MODELS.get(self.name)

    def scores(self, X: np.ndarray) -> np.ndarray:
        """(n,) float64: probabilities of a purchase, or decisions, as the model's ``output`` says.

        Probabilities of a balanced model are those of a world where half of all sessions end in a purchase.
        """
        X = checked_matrix(X)
        if X.shape[1] != self.columns:
            raise MismatchError(
                f"{self.model.name} was fitted on {self.columns} columns and is given {X.shape[1]}",
                "compute the features as they were for training",
            )
        if self.constant is not None:
            return np.full(len(X), self.constant)
        if not len(X):
            return np.zeros(0)
        with one_thread():
            if self.model.output == "decision":
                found = np.asarray(self.pipeline.decision_function(X), dtype=np.float64)
            else:
                found = np.asarray(self.pipeline.predict_proba(X)[:, 1], dtype=np.float64)
        if not np.isfinite(found).all():
            raise NumericalError(f"{self.model.name} gives a score that is no number", "look at its features")
        return found

    def write_files(self, folder: Path) -> None:
        """Write ``model.skops``."""
        if self.pipeline is not None:
            require("skops", "commerce", "saving a model")
            from skops.io import dump

            dump(self.pipeline, folder / FILE)

    @classmethod
    def open(cls, path: Path | str, of: str = "") -> Self:
        """Read what :meth:`save` wrote; nothing but the types of :data:`TRUSTED` and scikit-learn's is made."""
        found = super().open(path, of)
        here = require("sklearn", "commerce", "reading a model").__version__
        if _release(found.scikit_learn) != _release(here):
            raise MismatchError(
                f"{path} was fitted by scikit-learn {found.scikit_learn}, this is {here}",
                "train it again, or install that version",
            )
        if found.constant is None:
            found.pipeline = _read(Path(path) / FILE)
        return found


def _release(version: str) -> list[str]:
    return version.split(".")[:2]


def _read(file: Path) -> Any:
    require("skops", "commerce", "reading a model")
    from skops.io import load
    from skops.io.exceptions import UntrustedTypesFoundException

    try:
        with file_errors(file, fix="train it again", noun="a saved model"):
            return load(file, trusted=list(TRUSTED))
    except UntrustedTypesFoundException as error:
        raise StorageError(
            f"{file} asks for types that no model of ours needs: {error}", "do not use it"
        ) from None


FEWEST = 10
"""Sessions of either class that a model is fitted on at least; with fewer its score is a constant."""


def fit_model(
    model: IntentModel | str, X: np.ndarray, y: np.ndarray, *, balanced: bool = True, seed: int = 0
) -> FittedModel:
    """Fit a classifier: the same rows and seed give the same bits.

    Where there is nothing to learn from (no column at all, as in the baseline set before any page, or fewer than
    :data:`FEWEST` sessions of a class) the model is a constant, and says so: the share of purchases, or 0.5 where
    classes are to weigh the same, which predicts a purchase always.

    Args:
        X: (n, c) float; NaN where a value is missing.
        y: (n,) bool, whether a session ends in a purchase.
    """
    version = require("sklearn", "commerce", "fitting models").__version__
    chosen = MODELS.get(model) if isinstance(model, str) else model
    X, y = checked_matrix(X), checked_labels(y, len(X))
    weighting = chosen.weighting if balanced else "none"
    reason = _nothing_to_learn(X, y)
    if reason:
        share = 0.5 if balanced and y.any() and not y.all() else float(y.mean())
        score = share - 0.5 + chosen.threshold  # in the model's own terms
        return FittedModel(
            chosen.name, X.shape[1], balanced, seed, "none", score, reason, scikit_learn=version
        )
    pipeline = chosen.build("balanced" if balanced else None, seed)
    extra = {}
    if weighting == "sample_weight":
        extra[f"{pipeline.steps[-1][0]}__sample_weight"] = _weights(y)
    with warnings.catch_warnings(record=True) as caught, one_thread():
        warnings.simplefilter("always")
        pipeline.fit(X, y.astype(np.int64), **extra)
    said = tuple(sorted({_first_line(one) for one in caught}))
    fitted = FittedModel(
        chosen.name, X.shape[1], balanced, seed, weighting, warnings=said, scikit_learn=version
    )
    fitted.pipeline = pipeline
    return fitted


def _nothing_to_learn(X: np.ndarray, y: np.ndarray) -> str:
    bought = int(y.sum())
    if not X.shape[1]:
        return "no feature is known at this step"
    if min(bought, len(y) - bought) < FEWEST:
        return f"{bought:,} purchases among {len(y):,} training sessions: at least {FEWEST} of either class are needed"
    return ""


def _weights(y: np.ndarray) -> np.ndarray:
    """n / (2 n_c), as scikit-learn's ``class_weight="balanced"``."""
    bought = y.mean()
    weights: np.ndarray = np.where(y, 0.5 / bought, 0.5 / (1 - bought))
    return weights


def _first_line(caught: warnings.WarningMessage) -> str:
    lines = str(caught.message).strip().splitlines()
    return f"{caught.category.__name__}: {lines[0] if lines else ''}"
