"""Unit rows: the one normalisation every encoder ends with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.core.errors import NumericalError

EPSILON = 1e-12
"""Rows are divided by max(length, EPSILON), as torch.nn.functional.normalize does."""


def unit_rows(
    rows: np.ndarray, kind: str, positions: Sequence[int] | Sequence[str] | np.ndarray
) -> np.ndarray:
    """Divide each row by its Euclidean length; a zero row stays zero.

    The length is taken in double precision, so that very large and very small float32 entries
    neither overflow nor vanish.

    Args:
        rows: (n, d), any floating type.
        positions: (n,), what to call each row in the message.

    Returns:
        (n, d) float32.
    """
    exact = np.asarray(rows, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(exact).all(axis=1))
    if len(bad):
        raise NumericalError(
            f"the embedding of {kind} {positions[int(bad[0])]} is not finite",
            "the weights are damaged or diverged: load or train them again",
        )
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    unit: np.ndarray = (exact / np.maximum(lengths, EPSILON)).astype(np.float32)
    return unit
