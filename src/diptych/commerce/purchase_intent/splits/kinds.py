"""One file per way of splitting."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from diptych.commerce.purchase_intent.splits.dealing import check_enough, folds_of
from diptych.commerce.purchase_intent.splits.declaration import SPLITS, Fold, Split, SplitInput
from diptych.core.errors import DataError, UsageError
from diptych.core.extras import require
from diptych.data.logs.schema import SECOND


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


GROUPED = SPLITS.add(
    Split(
        name="grouped",
        description="persons at random, all sessions of one in one fold; training may lie after test",
        folds=_folds,
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


RANDOM = SPLITS.add(
    Split(
        name="random",
        description="sessions at random, purchases dealt out evenly; one visitor may be in training and test, "
        "and training may lie after test",
        folds=_random_folds,
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


TIME = SPLITS.add(
    Split(
        name="time",
        description="sessions that had ended by a moment to train on, those that began after it to test on; "
        "with several folds, windows that grow",
        folds=_time_folds,
        default_folds=1,
    )
)
