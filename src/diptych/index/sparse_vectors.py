"""Checks of sparse vectors: their width, their weights, and whether they belong to the engine at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from diptych.core.errors import DataError, NumericalError, UsageError
from diptych.encoders.sparse_embeddings import canonical_rows
from diptych.index.vectors import check_width

LARGEST_WEIGHT = 1e15
"""So that no score of vectors of up to 10^8 terms overflows float32."""


def sparse_vectors(vectors: Any, width: int, names: Sequence[str] | None, what: str) -> csr_array:
    """The vectors as canonical float32 rows, see :func:`canonical_rows`; not copied when they are that already.

    Negative weights are refused: an item that shares a term with a query has a score above 0, which is what
    sparse engines find items by.
    """
    given = vectors if issparse(vectors) else np.asarray(vectors)
    if given.dtype == np.float16:  # SciPy has no such arrays
        given = given.astype(np.float32)
    check_width(given, width, what)
    if given.dtype.kind not in "fiub":
        raise UsageError(f"{what} vectors must be real numbers, got {given.dtype}")
    _check_structure(given, what)
    matrix = csr_array(given)
    smallest = matrix.data.min(initial=0)
    largest = matrix.data.max(initial=0)
    if not (np.isfinite(smallest) and np.isfinite(largest)):
        named = _first(matrix, ~np.isfinite(matrix.data), names, what)
        raise NumericalError(f"{named} is not finite", "the head diverged: train it with a lower rate")
    if smallest < 0:
        raise DataError(
            f"{_first(matrix, matrix.data < 0, names, what)} has a negative weight ({smallest:g} is the lowest)",
            "the weights of terms are from 0 up; vectors with negative ones are searched by a dense engine",
        )
    if largest > LARGEST_WEIGHT:
        named = _first(matrix, matrix.data > LARGEST_WEIGHT, names, what)
        raise NumericalError(f"{named} has a weight above {LARGEST_WEIGHT:g}", "scale the weights")
    return canonical_rows(matrix, what)


def _check_structure(vectors: Any, what: str) -> None:
    """SciPy takes row starts and columns on trust; compiled code would read and write elsewhere in memory."""
    form = getattr(vectors, "format", None)
    if form not in ("csr", "csc"):
        return
    lines, width = vectors.shape if form == "csr" else vectors.shape[::-1]
    starts, columns = vectors.indptr, vectors.indices
    sound = len(starts) == lines + 1 and starts[0] == 0 and bool((starts[1:] >= starts[:-1]).all())
    sound = sound and starts[-1] <= min(len(columns), len(vectors.data))
    if not sound or (len(columns) and not 0 <= columns.min() <= columns.max() < width):
        raise DataError(
            f"{what} vectors: the starts or columns are not those of a sparse array of shape {vectors.shape}",
            "make the array from (weights, (rows, columns)), which SciPy checks",
        )


def _first(matrix: csr_array, bad: np.ndarray, names: Sequence[str] | None, what: str) -> str:
    """What messages call the first row with a bad weight."""
    row = int(np.searchsorted(matrix.indptr, np.flatnonzero(bad)[0], side="right")) - 1
    return f"{what} vector (row {row})" if names is None else f"{what} vector {names[row]!r} (row {row})"
