"""Ways of telling training from test sessions, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from diptych.commerce.logs.schema import SECOND
from diptych.core.errors import DataError, UsageError
from diptych.core.extras import require
from diptych.core.registry import Registry


@dataclass(frozen=True)
class SplitInput:
    """What a split may look at: everything (n,)."""

    labels: np.ndarray  # bool
    persons: np.ndarray  # int64 numbers of who it was: equal for sessions of one person
    start_us: np.ndarray  # start_us, end_us: times
    end_us: np.ndarray

    def take(self, rows: np.ndarray) -> SplitInput:
        """Some of the sessions."""
        return SplitInput(self.labels[rows], self.persons[rows], self.start_us[rows], self.end_us[rows])


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
    default_folds: int = 10  # how many when nobody says
    shares_persons: bool = True  # whether sessions of one person may be on both sides of a fold


SPLITS: Registry[Split] = Registry("split", "diptych.commerce.purchase_intent.splits")
"""All ways; each is declared in a file of its own."""


def check_enough(folds: int, there: Mapping[str, int]) -> None:
    """See that every fold can have a purchase and a session without one."""
    if folds < 2:
        raise UsageError(
            f"{folds} folds: at least two are needed", "for one division of the data: --split time"
        )
    for name, count in there.items():
        if count < 2:
            raise DataError(f"{count} {name}: nothing can be trained", "import more of the log")
        if count < folds:
            raise DataError(f"{count} {name} cannot be in each of {folds} folds", f"--folds {count}")


def folds_of(fold: np.ndarray, folds: int) -> list[Fold]:
    """Fold after fold as the test part, all other sessions to train on.

    Args:
        fold: (n,) the number of every session's fold.
    """
    return [Fold(np.flatnonzero(fold != one), np.flatnonzero(fold == one)) for one in range(folds)]


def _folds(given: SplitInput, folds: int, seed: int) -> list[Fold]:
    """Deal persons out: those with most purchases first, then those with most sessions, there and back again.

    So folds differ little in purchases and sessions, in one sort; scikit-learn's StratifiedGroupKFold looks at
    every fold for every person, which takes minutes where a log has a million.
    """
    numbers, person = np.unique(given.persons, return_inverse=True)
    purchases = np.bincount(person, weights=given.labels, minlength=len(numbers))
    sessions = np.bincount(person, minlength=len(numbers))
    check_enough(
        folds,
        {
            "persons with a purchase session": int((purchases > 0).sum()),
            "persons with a session without a purchase": int((purchases < sessions).sum()),
        },
    )
    drawn = np.random.default_rng(seed).permutation(len(numbers))
    order = np.lexsort((drawn, -sessions, -purchases))
    turn, seat = np.divmod(np.arange(len(numbers)), folds)
    fold = np.empty(len(numbers), dtype=np.int64)
    fold[order] = np.where(turn % 2, folds - 1 - seat, seat)
    return folds_of(fold[person], folds)


SPLITS.add(
    Split(
        "grouped",
        "persons at random, all sessions of one in one fold; training may lie after test",
        _folds,
        shares_persons=False,
    )
)


def _random_folds(given: SplitInput, folds: int, seed: int) -> list[Fold]:
    require("sklearn", "commerce", "splitting sessions")
    from sklearn.model_selection import StratifiedKFold

    bought = int(given.labels.sum())
    check_enough(
        folds, {"purchase sessions": bought, "sessions without a purchase": len(given.labels) - bought}
    )
    parts = StratifiedKFold(folds, shuffle=True, random_state=seed).split(given.labels, given.labels)
    return [Fold(np.sort(train), np.sort(test)) for train, test in parts]


SPLITS.add(
    Split(
        "random",
        "sessions at random, purchases dealt out evenly; one visitor may be in training and test, "
        "and training may lie after test",
        _random_folds,
    )
)


FIRST_PARTS = 3
"""Equal parts of the time range before the first test part: with one fold, training has three quarters."""


def _time_folds(given: SplitInput, folds: int, seed: int) -> list[Fold]:
    """Cut the range of starts into ``folds`` + 3 equal parts; each of the last is tested by all before it.

    A session that began before a test part and has not ended by then is in neither: its end was not known yet.
    """
    if folds < 1:
        raise UsageError(f"{folds} folds: at least one is needed")
    if not len(given.start_us):
        raise DataError("no session to split", "import more of the log")
    begin, last = int(given.start_us.min()), int(given.start_us.max())
    parts = folds + FIRST_PARTS
    edges = [begin + (last - begin) * part // parts for part in range(parts)] + [last + 1]
    found = []
    for number in range(folds):
        now, until = edges[FIRST_PARTS + number : FIRST_PARTS + number + 2]
        train = np.flatnonzero((given.start_us < now) & (given.end_us < now))
        test = np.flatnonzero((given.start_us >= now) & (given.start_us < until))
        for name, rows in (("before", train), ("from", test)):
            if not given.labels[rows].any() or given.labels[rows].all():
                raise DataError(
                    f"{len(rows):,} sessions {name} {_text(now)}, {int(given.labels[rows].sum()):,} with a purchase: "
                    f"fold {number + 1} of {folds} needs some with and some without",
                    "fewer folds, or more of the log",
                )
        found.append(Fold(train, test))
    return found


def _text(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / SECOND, UTC).isoformat(timespec="seconds")


SPLITS.add(
    Split(
        "time",
        "sessions that had ended by a moment to train on, those that began after it to test on; "
        "with several folds, windows that grow",
        _time_folds,
        default_folds=1,
    )
)
