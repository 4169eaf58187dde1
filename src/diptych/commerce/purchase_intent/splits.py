"""Ways of telling training from test sessions, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from diptych.core.errors import DataError, UsageError
from diptych.core.extras import require
from diptych.core.registry import Registry

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable


class SplitInput(NamedTuple):
    """The columns that a split looks at: everything (n,)."""

    labels: np.ndarray  # bool
    persons: np.ndarray  # int64, equal for sessions of one person
    start_us: np.ndarray  # start_us, end_us: times
    end_us: np.ndarray

    @classmethod
    def of(cls, features: FeatureTable, rows: np.ndarray | slice = slice(None)) -> SplitInput:
        """Return some of a table's sessions."""
        return cls(*(getattr(features, name)[rows] for name in cls._fields))


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

    def folds(self, given: SplitInput, folds: int, seed: int) -> list[Fold]:
        """Return the folds; all parts have sessions with a purchase and without."""
        if folds < self.fewest:
            fix = "for one division of the data: --split time"
            raise UsageError(f"{folds} folds: at least {self.fewest} are needed", fix)
        bought, n = int(given.labels.sum()), len(given.labels)
        if min(bought, n - bought) < max(2, folds):
            wrong = f"{bought:,} of {n:,} sessions have a purchase: too few with or without for {folds} folds"
            raise DataError(wrong, "fewer folds, or import more of the log")
        found = self.parts(given, folds, seed)
        for number, fold in enumerate(found, 1):
            for name, rows in fold._asdict().items():
                bought, n = int(given.labels[rows].sum()), len(rows)
                if not 0 < bought < n:
                    wrong = f"fold {number} of {folds} has {n:,} sessions to {name} on, {bought:,} with a purchase"
                    raise DataError(wrong, "both kinds are needed: take fewer folds, or more of the log")
        return found


def _random_parts(given: SplitInput, folds: int, seed: int) -> list[Fold]:
    selection = require("sklearn.model_selection", "commerce", "splitting sessions")
    parts = selection.StratifiedKFold(folds, shuffle=True, random_state=seed)
    return [Fold(*one) for one in parts.split(given.labels, given.labels)]


def _grouped_parts(given: SplitInput, folds: int, seed: int) -> list[Fold]:
    """Deal persons out: those with most purchases first, then those with most sessions, there and back again.

    So folds differ little in purchases and sessions. scikit-learn's GroupKFold knows no purchases, and its
    StratifiedGroupKFold looks at every fold for every person, which takes minutes where a log has a million.
    """
    numbers, person = np.unique(given.persons, return_inverse=True)
    purchases, sessions = np.bincount(person, weights=given.labels), np.bincount(person)
    drawn = np.random.default_rng(seed).permutation(len(numbers))
    turn, seat = np.divmod(np.arange(len(numbers)), folds)
    fold = np.empty(len(numbers), dtype=np.int64)
    fold[np.lexsort((drawn, -sessions, -purchases))] = np.where(turn % 2, folds - 1 - seat, seat)
    return [Fold(*map(np.flatnonzero, (fold[person] != one, fold[person] == one))) for one in range(folds)]


_FIRST_PARTS = 3  # equal parts of the time range before the first test part


def _time_parts(given: SplitInput, folds: int, seed: int) -> list[Fold]:
    """Cut the range of starts into ``folds`` + 3 equal parts; each of the last is tested by all before it.

    A session that began before a test part and has not ended by then is in neither: its end was not known yet.
    scikit-learn's TimeSeriesSplit cuts by counts, knows no ends and has no single fold.
    """
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
