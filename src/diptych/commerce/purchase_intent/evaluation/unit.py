"""The work of one fold: features fitted on its training part alone, then model after model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from diptych.commerce.purchase_intent.evaluation.measures import (
    average_precision,
    best_threshold,
    fit_platt,
    log_odds,
)
from diptych.commerce.purchase_intent.evaluation.plan import (
    FoldImportance,
    FoldResult,
    FoldScores,
    Protocol,
    Unit,
    inside,
    split_input,
)
from diptych.commerce.purchase_intent.features.fitting import Feature, FittedFeatures, fit_features
from diptych.commerce.purchase_intent.models import FittedModel, fit_model
from diptych.commerce.purchase_intent.splits import SPLITS, Fold
from diptych.core.context import check_stop
from diptych.core.errors import DataError

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable


# What a feature is worth to a fitted model: by impurity, as published, and by permutation of held-out values.
#
# Impurity (thesis Figure 6.6) is counted on training sessions and favours features with many values. Permutation
# asks what the model loses on sessions that it has not seen, when a feature says of each what is true of another.
# A feature's columns, e.g. those of its categories, are taken together in both.
#
# Sources: Breiman, Random forests, Machine Learning 2001; Strobl et al., Bias in random forest variable importance
# measures, BMC Bioinformatics 2007.

REPEATS = 3
"""Permutations of every feature, in every fold."""


def importance_of(
    fitted: FittedModel,
    features: Sequence[Feature],
    owners: Sequence[str],
    X: np.ndarray,
    labels: np.ndarray,
    seed: Sequence[int],
) -> FoldImportance:
    """The importance of every feature.

    Args:
        owners: (c,) the feature that each column belongs to.
        X: (m, c) values of held-out sessions; they are as before at the end.
        labels: (m,) bool.
    """
    names = [feature.name for feature in features]
    columns = [np.flatnonzero([owner == name for owner in owners]) for name in names]
    drops = np.full((len(names), REPEATS), np.nan)
    if labels.any():
        whole = average_precision(fitted.scores(X), labels)
        random = np.random.default_rng(list(seed))
        changed = X.copy()
        for number, mine in enumerate(columns):
            for repeat in range(REPEATS):
                changed[:, mine] = X[np.ix_(random.permutation(len(X)), mine)]
                drops[number, repeat] = whole - average_precision(fitted.scores(changed), labels)
            changed[:, mine] = X[:, mine]
    return FoldImportance(
        tuple(names),
        np.array([feature.dynamic for feature in features], dtype=bool),
        _impurity(fitted, columns),
        drops,
    )


def _impurity(fitted: FittedModel, columns: Sequence[np.ndarray]) -> np.ndarray:
    if fitted.pipeline is None or not fitted.model.has_impurity:
        return np.full(len(columns), np.nan)
    of_column = fitted.pipeline.steps[-1][1].feature_importances_
    return np.array([of_column[mine].sum() for mine in columns])


_INNER_FOLDS = 5
"""Of a training part, one in so many is held back for the threshold and the calibration."""


@dataclass(frozen=True, eq=False)
class _Part:
    """Features fitted on some sessions, as matrices of those and of others."""

    fitted: FittedFeatures
    train: np.ndarray
    train_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray


@dataclass(frozen=True, eq=False)
class Work:
    """What every unit of a grid needs: the table, the folds of all its sessions, and what is done."""

    features: FeatureTable
    folds: Sequence[Fold]
    protocol: Protocol

    def run(self, unit: Unit) -> FoldResult:
        """Fit every model of a unit."""
        fold, scores, importance = _Fold(self, unit), {}, None
        for name in self.protocol.models:
            check_stop("stopped: finished folds are kept")
            fitted = fold.fit(name)
            scores[name] = fold.scores(fitted)
            if name == self.protocol.importance_model:
                importance = fold.importance(fitted)
        return FoldResult(scores, importance)


@dataclass(frozen=True, eq=False)
class _Fold:
    work: Work
    unit: Unit

    @cached_property
    def _rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Training and test sessions that are in the population."""
        population = self.work.features.population(self.unit.setting, self.unit.step)
        fold = self.work.folds[self.unit.fold]
        return inside(fold.train, population), inside(fold.test, population)

    @cached_property
    def _outer(self) -> _Part:
        return self._part(*self._rows)

    @cached_property
    def _inner(self) -> _Part | str:
        """The training part divided in the same way, with features fitted anew; or why it cannot be."""
        train, _ = self._rows
        split = SPLITS.get(self.work.protocol.split)
        folds = min(_INNER_FOLDS, split.default_folds)
        try:
            given = split_input(self.work.features).take(train)
            fold = split.folds(given, folds, self.work.protocol.seed)[0]
        except DataError as error:
            return f"the training part cannot be divided: {error.message}"
        return self._part(train[fold.train], train[fold.test])

    def _part(self, train: np.ndarray, test: np.ndarray) -> _Part:
        features, step = self.work.features, self.unit.step
        chosen = features.features(self.unit.setting, self.unit.feature_set, step)
        view = features.at(train, step)
        fitted = fit_features(chosen, view)
        return _Part(
            fitted,
            fitted.matrix(view),
            features.labels[train],
            fitted.matrix(features.at(test, step)),
            features.labels[test],
        )

    def _fitted(self, name: str, part: _Part) -> FittedModel:
        how = self.work.protocol
        return fit_model(name, part.train, part.train_labels, balanced=how.balanced, seed=how.seed)

    def fit(self, name: str) -> FittedModel:
        """The model, fitted on the whole training part."""
        return self._fitted(name, self._outer)

    def scores(self, fitted: FittedModel) -> FoldScores:
        """Scores of the test part, as they are and calibrated."""
        raw = fitted.scores(self._outer.test)
        calibrated, threshold, reason = self._calibrated(fitted, raw)
        return FoldScores(
            rows=self._rows[1],
            scores=raw,
            calibrated=calibrated,
            threshold=threshold,
            weighting=fitted.weighting,
            output=fitted.model.output,
            constant=fitted.reason,
            uncalibrated=reason,
            warnings=fitted.warnings,
        )

    def _calibrated(self, fitted: FittedModel, raw: np.ndarray) -> tuple[np.ndarray, float, str]:
        """Probabilities, the threshold on them, and why there are none.

        A model of the same kind is fitted without the part that is held back; the sigmoid and the threshold
        that suit its scores there are taken over.
        """
        none = np.full(len(raw), np.nan)
        if not self.work.protocol.inner:
            return none, np.nan, ""
        if (
            fitted.constant is not None
        ):  # the share of purchases; of all constants, F1 likes best to buy always
            share = float(self._outer.train_labels.mean())
            return np.full(len(raw), share), share, ""
        if isinstance(self._inner, str):
            return none, np.nan, self._inner
        part = self._inner
        inner = self._fitted(fitted.model.name, part)
        if inner.constant is not None:
            return none, np.nan, f"inside the training part: {inner.reason}"
        x = log_odds(inner.scores(part.test), inner.model)
        try:
            platt = fit_platt(x, part.test_labels)
        except DataError as error:
            return none, np.nan, error.message
        threshold = best_threshold(platt.probabilities(x), part.test_labels)
        return platt.probabilities(log_odds(raw, fitted.model)), threshold, ""

    def importance(self, fitted: FittedModel) -> FoldImportance:
        """What the features are worth to a fitted model."""
        part, unit = self._outer, self.unit
        chosen = self.work.features.features(unit.setting, unit.feature_set, unit.step)
        seed = [self.work.protocol.seed, unit.fold]
        return importance_of(fitted, chosen, part.fitted.owners, part.test, part.test_labels, seed)
