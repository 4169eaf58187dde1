"""The past to train on, the future to test on: what a shop does."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from diptych.commerce.purchase_intent.splits.declaration import SPLITS, Fold, Split, SplitInput
from diptych.core.errors import DataError, UsageError
from diptych.data.logs.schema import SECOND

__all__ = ["FIRST_PARTS", "TIME"]

FIRST_PARTS = 3
"""Equal parts of the time range before the first test part: with one fold, training has three quarters."""


def _folds(given: SplitInput, folds: int, seed: int) -> list[Fold]:
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
        folds=_folds,
        default_folds=1,
    )
)
