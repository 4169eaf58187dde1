"""What splits into equal folds have in common: what has to be there, and folds from a number per session."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from diptych.commerce.purchase_intent.splits.declaration import Fold
from diptych.core.errors import DataError, UsageError


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
