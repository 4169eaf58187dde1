"""Which cells of a grid can be evaluated at all, and why the others cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from diptych.commerce.purchase_intent.evaluation.cells import Unit
from diptych.commerce.purchase_intent.evaluation.protocol import Protocol
from diptych.commerce.purchase_intent.splits import SPLITS, Fold, SplitInput
from diptych.core.errors import DataError, UsageError

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable


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
    """What is done.

    Attributes:
        places: that can be evaluated, in the order asked for.
        folds: how many each has.
        left_out: the others.
    """

    places: tuple[Place, ...]
    folds: int
    left_out: tuple[LeftOut, ...]

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
