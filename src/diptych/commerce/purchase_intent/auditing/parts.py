"""Sessions of one setting and step that a check learns from, and those that it is held against."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from diptych.commerce.purchase_intent.auditing.declaration import AuditInput
from diptych.commerce.purchase_intent.models import FEWEST
from diptych.core.draws import Draws, draw_uniform

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.declaration import Feature

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
