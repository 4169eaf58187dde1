"""Unit rows: the one normalisation every encoder ends with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.core.errors import NumericalError
from diptych.metrics import products


def unit_rows(
    rows: np.ndarray, kind: str, positions: Sequence[int] | Sequence[str] | np.ndarray
) -> np.ndarray:
    """Divide each of (n, d) rows by its length, see :func:`diptych.metrics.products.unit_rows`.

    A row that is not finite is refused by its name in ``positions``.
    """
    exact = np.asarray(rows, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(exact).all(axis=1))
    if len(bad):
        raise NumericalError(
            f"the embedding of {kind} {positions[int(bad[0])]} is not finite",
            "the weights are damaged or diverged: load or train them again",
        )
    return products.unit_rows(exact)
