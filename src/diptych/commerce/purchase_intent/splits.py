"""Ways of telling training from test sessions, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from diptych.commerce.logs.schema import SECOND
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
    folds: Callable[[SplitInput, int, int], list[Fold]]  # from (input, number of folds, seed)
    default_folds: int = 10


def _check_enough(folds: int, noun: str, with_purchase: int, without: int) -> None:
    if folds < 2:
        raise UsageError(
            f"{folds} folds: at least two are needed", "for one division of the data: --split time"
        )
    for name, count in (("with", with_purchase), ("without", without)):
        found = f"{count} {noun} {name} a purchase"
        if count < 2:
            raise DataError(f"{found}: nothing can be trained", "import more of the log")
        if count < folds:
            raise DataError(f"{found} cannot be in each of {folds} folds", f"--folds {count}")


def _random_folds(given: SplitInput, folds: int, seed: int) -> list[Fold]:
    _check_enough(folds, "sessions", given.labels.sum(), (~given.labels).sum())
    selection = require("sklearn.model_selection", "commerce", "splitting sessions")
    parts = selection.StratifiedKFold(folds, shuffle=True, random_state=seed)
    return [Fold(*one) for one in parts.split(given.labels, given.labels)]


def _grouped_folds(given: SplitInput, folds: int, seed: int) -> list[Fold]:
    """Deal persons out: those with most purchases first, then those with most sessions, there and back again.

    So folds differ little in purchases and sessions. scikit-learn's GroupKFold knows no purchases, and its
    StratifiedGroupKFold looks at every fold for every person, which takes minutes where a log has a million.
    """
    numbers, person = np.unique(given.persons, return_inverse=True)
    purchases = np.bincount(person, weights=given.labels, minlength=len(numbers))
    sessions = np.bincount(person, minlength=len(numbers))
    _check_enough(folds, "persons with a session", (purchases > 0).sum(), (purchases < sessions).sum())
    drawn = np.random.default_rng(seed).permutation(len(numbers))
    turn, seat = np.divmod(np.arange(len(numbers)), folds)
    fold = np.empty(len(numbers), dtype=np.int64)
    fold[np.lexsort((drawn, -sessions, -purchases))] = np.where(turn % 2, folds - 1 - seat, seat)
    return [Fold(*map(np.flatnonzero, (fold[person] != one, fold[person] == one))) for one in range(folds)]


_FIRST_PARTS = 3  # equal parts of the time range before the first test part


def _time_folds(given: SplitInput, folds: int, seed: int) -> list[Fold]:
    """Cut the range of starts into ``folds`` + 3 equal parts; each of the last is tested by all before it.

    A session that began before a test part and has not ended by then is in neither: its end was not known yet.
    scikit-learn's TimeSeriesSplit cuts by counts, knows no ends and has no single fold.
    """
    if folds < 1:
        raise UsageError(f"{folds} folds: at least one is needed")
    if not len(given.start_us):
        raise DataError("no session to split", "import more of the log")
    begin, last = int(given.start_us.min()), int(given.start_us.max())
    parts = folds + _FIRST_PARTS
    edges = [begin + (last - begin) * part // parts for part in range(_FIRST_PARTS, parts)] + [last + 1]
    found = []
    for number, (now, until) in enumerate(pairwise(edges), 1):
        train = (given.start_us < now) & (given.end_us < now)
        test = (given.start_us >= now) & (given.start_us < until)
        for name, rows in (("before", train), ("from", test)):
            if not 0 < given.labels[rows].sum() < rows.sum():
                moment = datetime.fromtimestamp(now / SECOND, UTC).isoformat(timespec="seconds")
                part = (
                    f"{rows.sum():,} sessions {name} {moment}, {given.labels[rows].sum():,} with a purchase"
                )
                wrong = f"{part}: fold {number} of {folds} needs some with and some without"
                raise DataError(wrong, "fewer folds, or more of the log")
        found.append(Fold(*map(np.flatnonzero, (train, test))))
    return found


_BOTH = "training may lie after test"
_RANDOM = "sessions at random, purchases dealt out evenly; one visitor may be in training and test, and"
_TIME = "sessions that had ended by a moment to train on, those that began after it to test on; with several folds,"
SPLITS: Registry[Split] = Registry("split", __name__)
SPLITS.add(Split("grouped", f"persons at random, all sessions of one in one fold; {_BOTH}", _grouped_folds))
SPLITS.add(Split("random", f"{_RANDOM} {_BOTH}", _random_folds))
SPLITS.add(Split("time", f"{_TIME} windows that grow", _time_folds, default_folds=1))
