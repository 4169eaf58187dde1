"""Classifiers by name, fitted at a step and saved without pickle; their calibration; training told from test."""

import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from diptych.commerce.purchase_intent.features.fitting import FittedFeatures, fit_features
from diptych.commerce.purchase_intent.features.table import FeatureTable
from diptych.core.artifact import Artifact
from diptych.core.context import check_stop
from diptych.core.errors import DataError, MismatchError, StorageError, UsageError
from diptych.core.extras import require
from diptych.core.reading import file_errors, read_toml
from diptych.core.registry import Registry

Weighting = Literal["class_weight", "sample_weight", "none"]


@dataclass(frozen=True)
class IntentModel:
    """One classifier, as ``models.toml`` declares it."""

    name: str
    label: str
    description: str
    estimator: str
    options: Mapping[str, Any] = field(default_factory=dict)
    presets: tuple[str, ...] = ()
    weighting: Weighting = "class_weight"
    output: Literal["probability", "decision"] = "probability"  # decisions have to be calibrated first
    has_impurity: bool = False  # as forests, which take missing values as they are

    @property
    def threshold(self) -> float:
        return 0.5 if self.output == "probability" else 0.0

    def pipeline(self, balanced: bool, seed: int) -> Any:
        """Return an unfitted scikit-learn pipeline; all but forests get medians for missing values, and marks."""
        from sklearn.impute import SimpleImputer
        from sklearn.kernel_approximation import Nystroem
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        module, name = self.estimator.split(".")
        estimator = getattr(importlib.import_module(f"sklearn.{module}"), name)(**self.options)
        given = {"random_state": seed, "class_weight": "balanced" if balanced else None}
        estimator.set_params(**{key: given[key] for key in given.keys() & estimator.get_params()})
        imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        steps = [] if self.has_impurity else [imputer]
        if not self.estimator.startswith("ensemble."):
            steps.append(StandardScaler())
        if self.name == "nystroem-svm":
            steps.append(Nystroem(n_components=300, random_state=seed, n_jobs=1))
        return make_pipeline(*steps, estimator)


MODELS: Registry[IntentModel] = Registry("model", __name__)
"""All classifiers."""

for _name, _one in read_toml(Path(__file__).with_name("models.toml")).items():
    MODELS.add(IntentModel(_name, **_one))


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
"""Types that a saved model may hold besides those that skops trusts; a file with another is refused."""


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
            wrong = f"{file} holds types that no model needs: {error}"
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
        share = 0.5 if balanced and 0 < bought < len(y) else bought / max(1, len(y))
        fitted.constant = share - 0.5 + chosen.threshold  # in the model's own terms
        return fitted
    fitted.weighting = chosen.weighting if balanced else "none"
    fitted.pipeline, weights = chosen.pipeline(balanced, seed), {}
    if fitted.weighting == "sample_weight":
        from sklearn.utils.class_weight import compute_sample_weight

        weights[f"{fitted.pipeline.steps[-1][0]}__sample_weight"] = compute_sample_weight("balanced", y)
    with warnings.catch_warnings(record=True) as caught, one_thread():
        warnings.simplefilter("always")
        fitted.pipeline.fit(np.ascontiguousarray(X), y.astype(np.int64), **weights)
    texts = {(one.category.__name__, (str(one.message).strip() or "-").splitlines()[0]) for one in caught}
    fitted.warnings = tuple(sorted(": ".join(one) for one in texts))
    return fitted


class SplitInput(NamedTuple):
    """The columns that a split looks at: everything (n,)."""

    labels: np.ndarray  # bool
    persons: np.ndarray  # int64, equal for sessions of one person
    start_us: np.ndarray  # start_us, end_us: times
    end_us: np.ndarray


class Fold(NamedTuple):
    """Rows to train on and rows to test on, int64, rising, disjoint."""

    train: np.ndarray
    test: np.ndarray


@dataclass(frozen=True)
class Split:
    """One way."""

    name: str  # random, grouped or time
    description: str  # one line, with what it lets leak
    parts: Callable[[SplitInput, int, int], list[Fold]]  # of an input, the number of folds and a seed
    default_folds: int = 10
    fewest: int = 2  # folds

    def folds(self, table: Any, folds: int, seed: int, rows: np.ndarray | None = None) -> list[Fold]:
        """Return the folds of some rows of what has the columns of :class:`SplitInput`."""
        rows = np.arange(len(table.labels)) if rows is None else rows
        given = SplitInput(*(getattr(table, name)[rows] for name in SplitInput._fields))
        if folds < self.fewest:
            fix = "for one division of the data: --split time"
            raise UsageError(f"{folds} folds: at least {self.fewest} are needed", fix)
        bought, n = int(given.labels.sum()), len(rows)
        if min(bought, n - bought) < max(2, folds):
            wrong = f"{bought:,} of {n:,} sessions have a purchase: too few with or without for {folds} folds"
            raise DataError(wrong, "fewer folds, or import more of the log")
        return [Fold(rows[one.train], rows[one.test]) for one in self.parts(given, folds, seed)]


def _random_parts(given: SplitInput, folds: int, seed: int) -> list[Fold]:
    selection = require("sklearn.model_selection", "commerce", "splitting sessions")
    parts = selection.StratifiedKFold(folds, shuffle=True, random_state=seed)
    return [Fold(*one) for one in parts.split(given.labels, given.labels)]


def _grouped_parts(given: SplitInput, folds: int, seed: int) -> list[Fold]:
    """Deal persons out, those with most purchases, then most sessions, first, so that folds differ little in both."""
    numbers, person = np.unique(given.persons, return_inverse=True)
    purchases, sessions = np.bincount(person, weights=given.labels), np.bincount(person)
    drawn = np.random.default_rng(seed).permutation(len(numbers))
    turn, seat = np.divmod(np.arange(len(numbers)), folds)
    fold = np.empty(len(numbers), dtype=np.int64)
    fold[np.lexsort((drawn, -sessions, -purchases))] = np.where(turn % 2, folds - 1 - seat, seat)
    return [Fold(*map(np.flatnonzero, (fold[person] != one, fold[person] == one))) for one in range(folds)]


_FIRST_PARTS = 3  # equal parts of the time range before the first test part


def _time_parts(given: SplitInput, folds: int, seed: int) -> list[Fold]:
    """Cut the range of starts into ``folds`` + 3 equal parts; each of the last ``folds`` tests what ended before it."""
    begin, last = int(given.start_us.min()), int(given.start_us.max())
    parts = folds + _FIRST_PARTS
    edges = [begin + (last - begin) * part // parts for part in range(_FIRST_PARTS, parts)] + [last + 1]
    ended, begun = np.maximum(given.start_us, given.end_us), given.start_us
    masks = [(ended < now, (begun >= now) & (begun < until)) for now, until in pairwise(edges)]
    return [Fold(*map(np.flatnonzero, both)) for both in masks]


_BOTH = "training may lie after test"
_RANDOM = "sessions at random, purchases dealt out evenly; one visitor may be in training and test, and"
_TIME = "sessions that had ended by a moment to train on, those that began after it to test on; with several folds,"
SPLITS: Registry[Split] = Registry("split", __name__)
SPLITS.add(Split("grouped", f"persons at random, all sessions of one in one fold; {_BOTH}", _grouped_parts))
SPLITS.add(Split("random", f"{_RANDOM} {_BOTH}", _random_parts))
SPLITS.add(Split("time", f"{_TIME} windows that grow", _time_parts, default_folds=1, fewest=1))


FEWEST_FOR_STEPS = 1000  # sessions of either class that the steps of an isotonic calibration are fitted on
_NEAREST = 1e-3  # probabilities count as no nearer to 0 or 1: a forest says 0 for fewer than 1 tree in 100


@dataclass(frozen=True, eq=False)
class Fitting:
    """Fit a model at a setting, feature set and step."""

    table: FeatureTable
    setting: str
    feature_set: str
    step: int
    model: str
    balanced: bool
    seed: int

    def fit(self, rows: np.ndarray) -> tuple[FittedFeatures, FittedModel]:
        view = self.table.at(rows, self.step)
        features = fit_features(self.table.features(self.setting, self.feature_set, self.step), view)
        X, y = features.matrix(view), self.table.labels[rows]
        return features, fit_model(self.model, X, y, balanced=self.balanced, seed=self.seed)

    def cross_fit(self, folds: Sequence[Fold]) -> tuple[np.ndarray, np.ndarray]:
        """Return the test rows of all folds, and their log-odds by models of the folds' training rows."""
        found = []
        for fold in folds:
            check_stop("stopped: what is finished is kept")
            features, model = self.fit(fold.train)
            scores = model.scores(features.matrix(self.table.at(fold.test, self.step)))
            found.append(log_odds(scores, model.model))
        return np.concatenate([fold.test for fold in folds]), np.concatenate(found)


def log_odds(scores: np.ndarray, model: IntentModel) -> np.ndarray:
    """Return decisions as they are, probabilities as ln p / (1 − p), where class weights change only the intercept."""
    if model.output == "decision":
        return scores
    near = np.clip(scores, _NEAREST, 1 - _NEAREST)
    odds: np.ndarray = np.log(near / (1 - near))
    return odds


@dataclass(frozen=True)
class Calibration:
    """Map log-odds or decisions to probabilities, 1 / (1 + exp(−(slope · x + intercept))), or by ``steps``.

    Fitted on sessions that the model has not seen, it undoes equal weights of classes. Source: Platt, Probabilistic
    outputs for support vector machines, 1999; steps are those of an isotonic regression.
    """

    slope: float  # also the scale on which features have effects, whatever gives the probability
    intercept: float
    steps: tuple[tuple[float, ...], tuple[float, ...]] | None = None  # (x, p) to interpolate instead

    def probabilities(self, x: np.ndarray) -> np.ndarray:
        """Return (n,) in (0, 1) of (n,) log-odds or decisions."""
        found: np.ndarray = 0.5 * (1 + np.tanh((self.slope * x + self.intercept) / 2))  # never overflows
        return found if self.steps is None else np.asarray(np.interp(x, *self.steps))


def fit_platt(x: np.ndarray, labels: np.ndarray) -> Calibration:
    """Fit slope and intercept by the likelihood of Platt's targets, (N₊+1)/(N₊+2) and 1/(N₋+2).

    The targets keep the slope finite where a score tells the classes apart without error.
    """
    bought = int(labels.sum())
    others = len(labels) - bought
    if not bought or not others:
        wrong = f"{bought:,} purchases among {len(labels):,} sessions: probabilities cannot be calibrated"
        raise DataError(wrong, "calibrate on more sessions")
    targets = np.where(labels, (bought + 1) / (bought + 2), 1 / (others + 2))
    middle, spread = float(x.mean()), float(x.std())
    if spread < 1e-12 * max(1.0, abs(middle)):  # one value, but for rounding: nothing to tell apart by
        return Calibration(0.0, float(np.log(targets.sum() / (1 - targets).sum())))
    linear = require("sklearn.linear_model", "commerce", "calibration")
    logistic = linear.LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10)
    twice = np.tile((x - middle) / spread, 2)[:, None]  # each buys with a weight, and not with the rest
    logistic.fit(twice, np.repeat([1, 0], len(x)), np.concatenate([targets, 1 - targets]))
    slope = float(logistic.coef_[0, 0]) / spread
    return Calibration(slope, float(logistic.intercept_[0]) - slope * middle)


def fit_calibration(method: str, x: np.ndarray, labels: np.ndarray) -> tuple[Calibration, list[str]]:
    """Fit a calibration to (n,) log-odds of sessions that their models were not fitted on; return it and notes."""
    found = fit_platt(x, labels)
    notes = ["the order of cross-fitted predictions is none, or the wrong one"] * (found.slope <= 0)
    if method == "isotonic" and min(labels.sum(), (~labels).sum()) < FEWEST_FOR_STEPS:
        notes.append(f"calibrated by the sigmoid: steps need {FEWEST_FOR_STEPS:,} sessions of either class")
    elif method == "isotonic":
        nearest = 1 / (len(labels) + 2)
        isotonic = require("sklearn.isotonic", "commerce", "isotonic calibration").IsotonicRegression
        fitted = isotonic(y_min=nearest, y_max=1 - nearest).fit(x, labels.astype(np.float64))
        steps = (tuple(map(float, fitted.X_thresholds_)), tuple(map(float, fitted.y_thresholds_)))
        found = replace(found, steps=steps)
    return found, notes
