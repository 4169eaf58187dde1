"""FittedModel: a classifier with its parameters, or the constant in its place; saved without pickle."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np

from diptych.commerce.purchase_intent.models.declaration import MODELS, IntentModel, Weighting
from diptych.core.artifact import Artifact
from diptych.core.errors import DataError, MismatchError, NumericalError, StorageError
from diptych.core.extras import require
from diptych.core.reading import file_errors


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
    """A fitted classifier.

    Attributes:
        name: of its declaration.
        columns: how many it takes.
        balanced: whether classes were to weigh the same.
        seed: of the fit.
        weighting: how they were weighed; ``none`` where the model has no way, or it was not asked for.
        constant: the one score of a model that had nothing to learn from.
        reason: why it had not.
        warnings: what the fit complained of, e.g. that it did not converge.
        scikit_learn: the version that fitted it.
        pipeline: scikit-learn's; None of a constant.
    """

    name: str
    columns: int
    balanced: bool
    seed: int
    weighting: Weighting
    constant: float | None = None
    reason: str = ""
    warnings: tuple[str, ...] = ()
    scikit_learn: str = ""
    pipeline: Any = field(init=False, default=None)

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
    pipeline = chosen.build(balanced, seed)
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
