"""Ways of telling training from test sessions, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from diptych.commerce.logs.schema import SECOND
from diptych.core.errors import DataError, UsageError
from diptych.core.extras import require
from diptych.core.registry import Registry

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable


@dataclass(frozen=True)
class SplitInput:
    """What a split may look at: everything (n,)."""

    labels: np.ndarray  # bool
    persons: np.ndarray  # int64, equal for sessions of one person
    start_us: np.ndarray  # start_us, end_us: times
    end_us: np.ndarray

    def take(self, rows: np.ndarray) -> SplitInput:
        """Return some of the sessions."""
        return SplitInput(self.labels[rows], self.persons[rows], self.start_us[rows], self.end_us[rows])


def split_input(features: FeatureTable) -> SplitInput:
    """Return what a split looks at."""
    return SplitInput(features.labels, features.persons, features.start_us, features.end_us)


@dataclass(frozen=True)
class Fold:
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


SPLITS: Registry[Split] = Registry("split", __name__)
"""All ways."""


def _check_enough(folds: int, noun: str, with_purchase: int, without: int) -> None:
    """See that every fold can have a purchase and a session without one."""
    if folds < 2:
        fix = "for one division of the data: --split time"
        raise UsageError(f"{folds} folds: at least two are needed", fix)
    for name, count in ((f"{noun}with a purchase", with_purchase), (f"{noun}without a purchase", without)):
        if count < 2:
            raise DataError(f"{count} {name}: nothing can be trained", "import more of the log")
        if count < folds:
            raise DataError(f"{count} {name} cannot be in each of {folds} folds", f"--folds {count}")


def _grouped_folds(given: SplitInput, folds: int, seed: int) -> list[Fold]:
    """Deal persons out: those with most purchases first, then those with most sessions, there and back again.

    So folds differ little in purchases and sessions, in one sort; scikit-learn's StratifiedGroupKFold looks at
    every fold for every person, which takes minutes where a log has a million.
    """
    numbers, person = np.unique(given.persons, return_inverse=True)
    purchases = np.bincount(person, weights=given.labels, minlength=len(numbers))
    sessions = np.bincount(person, minlength=len(numbers))
    buyers, others = int((purchases > 0).sum()), int((purchases < sessions).sum())
    _check_enough(folds, "persons with a session ", buyers, others)
    drawn = np.random.default_rng(seed).permutation(len(numbers))
    turn, seat = np.divmod(np.arange(len(numbers)), folds)
    fold = np.empty(len(numbers), dtype=np.int64)
    fold[np.lexsort((drawn, -sessions, -purchases))] = np.where(turn % 2, folds - 1 - seat, seat)
    of_session = fold[person]
    return [
        Fold(np.flatnonzero(of_session != one), np.flatnonzero(of_session == one)) for one in range(folds)
    ]


def _random_folds(given: SplitInput, folds: int, seed: int) -> list[Fold]:
    bought = int(given.labels.sum())
    _check_enough(folds, "sessions ", bought, len(given.labels) - bought)
    selection = require("sklearn.model_selection", "commerce", "splitting sessions")
    parts = selection.StratifiedKFold(folds, shuffle=True, random_state=seed)
    return [Fold(train, test) for train, test in parts.split(given.labels, given.labels)]


_FIRST_PARTS = 3
"""Equal parts of the time range before the first test part: with one fold, training has three quarters."""


def _time_folds(given: SplitInput, folds: int, seed: int) -> list[Fold]:
    """Cut the range of starts into ``folds`` + 3 equal parts; each of the last is tested by all before it.

    A session that began before a test part and has not ended by then is in neither: its end was not known yet.
    scikit-learn's TimeSeriesSplit cuts by counts, and knows no ends.
    """
    if folds < 1:
        raise UsageError(f"{folds} folds: at least one is needed")
    if not len(given.start_us):
        raise DataError("no session to split", "import more of the log")
    begin, last = int(given.start_us.min()), int(given.start_us.max())
    parts = folds + _FIRST_PARTS
    edges = [begin + (last - begin) * part // parts for part in range(parts)] + [last + 1]
    found = []
    for number in range(folds):
        now, until = edges[_FIRST_PARTS + number : _FIRST_PARTS + number + 2]
        train = np.flatnonzero((given.start_us < now) & (given.end_us < now))
        test = np.flatnonzero((given.start_us >= now) & (given.start_us < until))
        for name, rows in (("before", train), ("from", test)):
            bought, moment = int(given.labels[rows].sum()), datetime.fromtimestamp(now / SECOND, UTC)
            if not 0 < bought < len(rows):
                raise DataError(
                    f"{len(rows):,} sessions {name} {moment.isoformat(timespec='seconds')}, {bought:,} with a "
                    f"purchase: fold {number + 1} of {folds} needs some with and some without",
                    "fewer folds, or more of the log",
                )
        found.append(Fold(train, test))
    return found


for _split in (
    Split(
        "grouped",
        "persons at random, all sessions of one in one fold; training may lie after test",
        _grouped_folds,
    ),
    Split(
        "random",
        "sessions at random, purchases dealt out evenly; one visitor may be in training and test, "
        "and training may lie after test",
        _random_folds,
    ),
    Split(
        "time",
        "sessions that had ended by a moment to train on, those that began after it to test on; "
        "with several folds, windows that grow",
        _time_folds,
        default_folds=1,
    ),
):
    SPLITS.add(_split)
