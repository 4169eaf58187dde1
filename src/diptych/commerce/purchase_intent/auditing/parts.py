"""Sessions of one setting and step that a check learns from, and those that it is held against."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from diptych.commerce.purchase_intent.auditing.declaration import AuditInput
from diptych.commerce.purchase_intent.evaluation.measures import roc_auc
from diptych.commerce.purchase_intent.models import FEWEST
from diptych.core.draws import Draws, draw_uniform

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.fitting import Feature


_STEPS = (0, 1, 5, 10)


@dataclass(frozen=True, eq=False)
class Parts:
    """One setting and step.

    Attributes:
        setting: anonymous, identified or all.
        step: pages that are open, -1 for whole sessions.
        features: that a model would look at.
        train: (n,) rows of the first part.
        test: (m,) rows of both later ones.
        too_few: why nothing can be said; empty where it can.
    """

    setting: str
    step: int
    features: list[Feature]
    train: np.ndarray
    test: np.ndarray
    too_few: str

    @property
    def where(self) -> str:
        """For people."""
        return f"{self.setting}, " + ("whole sessions" if self.step < 0 else f"step {self.step}")


def model_steps(given: AuditInput) -> tuple[int, ...]:
    """The steps at which models are fitted: those that were asked for, or a few."""
    asked = given.options.steps
    if asked is not None:
        return asked
    some = tuple(step for step in given.features.steps if step in _STEPS)
    return some or given.features.steps[-1:]


def parts_of(given: AuditInput, steps: Iterable[int]) -> Iterator[Parts]:
    """Every setting and step that has any sessions, with at most ``options.most`` drawn ones in a part."""
    features, options = given.features, given.options
    for setting in features.settings:
        for step in steps:
            population = features.population(setting, step)
            if not len(population):
                continue
            fit = given.slices.fit[population]
            later = (given.slices.calibration | given.slices.holdout)[population]
            train, test = (_some(given, population[part]) for part in (fit, later))
            name = features.sets[0] if features.is_whole else options.feature_set
            yield Parts(
                setting,
                step,
                features.features(setting, name, step),
                train,
                test,
                _too_few(features.labels[train], features.labels[test], options.fewest),
            )


def _some(given: AuditInput, rows: np.ndarray) -> np.ndarray:
    if len(rows) <= given.options.most:
        return rows
    keyed = Draws(given.options.seed, "sessions of an audit").below(1 << 31)
    draws = draw_uniform(keyed, given.features.session_ids[rows])
    return np.sort(rows[np.argsort(draws, kind="stable")[: given.options.most]])


def _too_few(train: np.ndarray, test: np.ndarray, fewest: int) -> str:
    for name, labels, least in (("earlier", train, FEWEST), ("later", test, fewest)):
        bought = int(labels.sum())
        if min(bought, len(labels) - bought) < least:
            return f"{bought:,} purchases among {len(labels):,} {name} sessions: too few to say anything"
    return ""


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


def permuted_by_person(labels: np.ndarray, persons: np.ndarray, seed: Sequence[int]) -> np.ndarray:
    """Lay the labels of people on other people's sessions.

    The labels of all sessions, person after person in one random order, become those of the sessions in another:
    as many purchases as before, mostly together where they were one person's, and independent of who it is.

    Args:
        labels: (n,) bool.
        persons: (n,) int64.

    Returns:
        (n,) bool.
    """
    people, place = np.unique(persons, return_inverse=True)
    random = np.random.default_rng(list(seed))
    taken, laid = (np.argsort(random.permutation(len(people))[place], kind="stable") for _ in range(2))
    permuted = np.empty_like(labels)
    permuted[laid] = labels[taken]
    return permuted


def mean_interval(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """Student's interval of the mean of a few independent values."""
    from scipy import stats

    given = np.asarray(values, dtype=np.float64)
    half = stats.t.ppf((1 + confidence) / 2, len(given) - 1) * given.std(ddof=1) / np.sqrt(len(given))
    return float(given.mean() - half), float(given.mean() + half)
