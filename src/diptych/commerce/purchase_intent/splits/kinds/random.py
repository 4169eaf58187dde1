"""Sessions at random: the k-fold cross-validation of thesis section 6.5."""

from __future__ import annotations

import numpy as np

from diptych.commerce.purchase_intent.splits.dealing import check_enough
from diptych.commerce.purchase_intent.splits.declaration import SPLITS, Fold, Split, SplitInput
from diptych.core.extras import require

__all__ = ["RANDOM"]


def _folds(given: SplitInput, folds: int, seed: int) -> list[Fold]:
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
        folds=_folds,
    )
)
