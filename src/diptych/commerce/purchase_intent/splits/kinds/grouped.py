"""Persons at random: all sessions of one are in one fold."""

from __future__ import annotations

import numpy as np

from diptych.commerce.purchase_intent.splits.dealing import check_enough, folds_of
from diptych.commerce.purchase_intent.splits.declaration import SPLITS, Fold, Split, SplitInput

__all__ = ["GROUPED"]


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
