"""Which cells of a grid can be evaluated at all, and why the others cannot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from diptych.commerce.purchase_intent.models import MODELS
from diptych.commerce.purchase_intent.splits import SPLITS, Fold, SplitInput
from diptych.core.artifact import Artifact, encode
from diptych.core.errors import DataError, UsageError
from diptych.core.fingerprint import fingerprint

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable


def step_text(step: int) -> str:
    """Return a step as names of files and tables print it."""
    return "whole" if step < 0 else str(step)


class Unit(NamedTuple):
    """One fold of one setting, feature set and step: its features are fitted once, for all models."""

    setting: str
    feature_set: str
    step: int
    fold: int

    @property
    def key(self) -> str:
        """Of the job."""
        return f"{self.setting}-{self.feature_set}-{step_text(self.step)}-{self.fold:02d}"


@dataclass(frozen=True, eq=False)
class FoldScores:
    """Scores of a fold's test part."""

    rows: np.ndarray  # (m,) int64 numbers of the sessions in the table, rising
    scores: np.ndarray  # (m,) float64 as the model gives them
    calibrated: (
        np.ndarray
    )  # (m,) float64 probabilities; NaN where they could not be calibrated or nobody asked
    threshold: float  # of calibrated probabilities, chosen inside the training part; NaN likewise
    weighting: str  # how classes were weighed
    output: str  # whether scores are probabilities or decisions
    constant: str = ""  # why the model is a constant; empty where it is not
    uncalibrated: str = ""  # why there are no probabilities; empty where there are, or nobody asked
    warnings: tuple[str, ...] = ()  # what the fit complained of


@dataclass(frozen=True, eq=False)
class FoldImportance:
    """What features are worth to the model that tells it, in one fold."""

    features: tuple[str, ...]  # f names
    dynamic: np.ndarray  # (f,) bool, whether a feature may change while a session runs
    impurity: (
        np.ndarray
    )  # (f,) shares of all decrease of impurity, adding up to 1; NaN where the model has none
    drops: (
        np.ndarray
    )  # (f, repeats) average precision lost when the feature's values of test sessions are permuted


@dataclass(frozen=True, eq=False)
class FoldResult(Artifact, kind="intent_fold"):
    """The unit that is kept: what every model predicted for the test part of one fold."""

    scores: dict[str, FoldScores]
    importance: FoldImportance | None = None


@dataclass(frozen=True)
class Protocol(
    Artifact, kind="intent_evaluation", recreate="diptych intent evaluate FEATURES --out EVALUATION"
):
    """What is evaluated, and how.

    Attributes:
        about: the table, the split, models and notes, for readers.
    """

    features: str  # fingerprint of the table
    models: tuple[str, ...]  # models, settings, sets, steps: what the grid is made of
    settings: tuple[str, ...]
    sets: tuple[str, ...]
    steps: tuple[int, ...]
    split: str  # name of the way of splitting
    folds: int  # how many
    balanced: bool  # whether classes weigh the same
    inner: bool  # whether thresholds and probabilities are fitted on an inner part of every training part
    importance: bool  # whether the importance of features is computed
    seed: int  # of splits, models and permutations
    scikit_learn: str  # its version
    scorer: str = ""  # of given scores, what gave them; nothing is fitted then
    about: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def key(self) -> str:
        """A short name of all of it."""
        return fingerprint({name: value for name, value in encode(self, {}).items() if name != "about"})

    @property
    def importance_model(self) -> str:
        """Whose importances are computed: the first that has impurities, else the first; empty for none."""
        if not self.importance:
            return ""
        return next((name for name in self.models if MODELS.get(name).has_impurity), self.models[0])

    def line(self) -> str:
        """One line, to be printed with every number."""
        if self.scorer:
            return f"scores of {self.scorer} as given, nothing fitted"
        folds = "one fold" if self.folds == 1 else f"{self.folds} folds"
        parts = [
            f"split {self.split}, {folds}",
            "classes weighed equally where a model can" if self.balanced else "classes not weighed",
            "threshold and calibration from inside the training part" if self.inner else "nothing calibrated",
            f"seed {self.seed}",
            f"scikit-learn {self.scikit_learn}",
        ]
        return "; ".join(parts)


class Place(NamedTuple):
    """One point of the grid, for all models."""

    setting: str
    feature_set: str
    step: int


class LeftOut(NamedTuple):
    """A setting and step that cannot be evaluated."""

    setting: str
    step: int
    reason: str


@dataclass(frozen=True)
class Plan:
    """What is done."""

    places: tuple[Place, ...]  # that can be evaluated, in the order asked for
    folds: int  # how many each has
    left_out: tuple[LeftOut, ...]  # the others

    def units(self) -> Iterator[Unit]:
        """Every fold of every place."""
        for place in self.places:
            for fold in range(self.folds):
                yield Unit(*place, fold)


def split_input(features: FeatureTable) -> SplitInput:
    """What a split looks at."""
    return SplitInput(features.labels, features.persons, features.start_us, features.end_us)


def make_folds(features: FeatureTable, split: str, folds: int, seed: int) -> list[Fold]:
    """The folds of all sessions of a table; every population's are made of them."""
    way = SPLITS.get(split)
    if way.name == "time" and not features.has_times:
        raise UsageError("the table does not say when sessions were", "--split random")
    if not features.labels.any() or features.labels.all():
        what = "every session ends" if len(features.labels) and features.labels.all() else "no session ends"
        raise DataError(f"{what} in a purchase: nothing can be trained", "import more of the log")
    return way.folds(split_input(features), folds, seed)


def inside(rows: np.ndarray, population: np.ndarray) -> np.ndarray:
    """Those of rising ``rows`` that are in a rising ``population``."""
    return np.intersect1d(rows, population, assume_unique=True)


def plan_of(features: FeatureTable, folds: Sequence[Fold], protocol: Protocol) -> Plan:
    """Every place of a protocol's grid, or why it is left out."""
    reasons: dict[tuple[str, int], str] = {}
    for setting in protocol.settings:
        for step in protocol.steps:
            reason = _reason(features, folds, setting, step)
            if reason:
                reasons[setting, step] = reason
    places = [
        Place(setting, feature_set, step)
        for setting in protocol.settings
        for feature_set in protocol.sets
        for step in protocol.steps
        if (setting, step) not in reasons
    ]
    if not places:
        (setting, step), reason = next(iter(reasons.items()))
        raise DataError(
            f"nothing can be evaluated: {setting}, step {step}: {reason}", "import more of the log"
        )
    left_out = [LeftOut(setting, step, reason) for (setting, step), reason in reasons.items()]
    return Plan(tuple(places), len(folds), tuple(left_out))


def _reason(features: FeatureTable, folds: Sequence[Fold], setting: str, step: int) -> str:
    population = features.population(setting, step)
    if not len(population):
        return "no session"
    tested = np.concatenate([inside(fold.test, population) for fold in folds])
    if not len(tested):
        return "no session to test on"
    bought = int(features.labels[tested].sum())
    if not bought or bought == len(tested):
        return f"{bought:,} purchases among {len(tested):,} test sessions"
    for number, fold in enumerate(folds, start=1):
        if len(inside(fold.test, population)) and not len(inside(fold.train, population)):
            return f"no session to train fold {number} on"
    return ""


_ORDER = (
    "random-forest",
    "logistic-regression",
    "k-nearest",
    "svm",
    "neural-network",
    "gradient-boosting",
    "hist-gradient-boosting",
)
"""Models in the order of thesis section 6.5; any other comes after them."""


@dataclass(frozen=True)
class Preset:
    """A grid by name; its models are those that declare it.

    Attributes:
        name: ``paper`` or ``fast``.
        description: one line.
        folds: where the split makes equal ones.
        steps: those of a table of steps; all when None.
    """

    name: str
    description: str
    folds: int
    steps: tuple[int, ...] | None

    @property
    def models(self) -> list[str]:
        """Names, in the order of tables."""
        return chosen_models(one.name for one in MODELS if self.name in one.presets)


PRESETS = {
    one.name: one
    for one in (
        Preset("paper", "six models, all steps, 10 folds: thesis section 6.5", 10, None),
        Preset("fast", "three models, steps 0, 1, 5 and 10, 5 folds", 5, (0, 1, 5, 10)),
    )
}


def chosen_models(names: Iterable[str]) -> list[str]:
    """Each once, in the order of tables."""
    known = {MODELS.get(name).name for name in names}
    return sorted(known, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))
