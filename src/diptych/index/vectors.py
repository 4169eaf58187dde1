"""Checks of what comes in: dense vectors, the ids that name them, how many hits are asked for."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from diptych.core.errors import DataError, MismatchError, NumericalError, UsageError

_CHECK_ROWS = 16_384


def check_ids(ids: Sequence[str], count: int) -> list[str]:
    """The ids as a list of ``count`` different strings."""
    if isinstance(ids, str):
        raise UsageError(f"ids must be a sequence of ids, got the string {ids!r}", f"pass [{ids!r}]")
    names = list(ids)
    if len(names) != count:
        raise DataError(f"{len(names):,} ids for {count:,} vectors")
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"id {name!r} is a {type(name).__name__}, ids are strings")
    if len(set(names)) != len(names):
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise DataError(f"id {name!r} occurs twice", "make ids unique")
            seen.add(name)
    return [str(name) for name in names]


def check_k(k: Any) -> int:
    """k as an int."""
    if isinstance(k, bool) or not hasattr(k, "__index__") or operator.index(k) < 1:
        raise UsageError(f"k={k!r} hits cannot be asked for", "k is a whole number from 1")
    return operator.index(k)


def count_rows(vectors: Any, what: str) -> int:
    """How many vectors, dense or sparse, there are."""
    shape = np.shape(vectors)
    if len(shape) != 2:
        raise UsageError(
            f"{what} vectors must have shape (n, width), got {shape}",
            "pass vector[None] for a single one" if len(shape) == 1 else "",
        )
    return int(shape[0])


def check_width(vectors: Any, width: int, what: str) -> None:
    """Compare the width of vectors, dense or sparse, with the index's."""
    count_rows(vectors, what)
    given = np.shape(vectors)[1]
    if given != width:
        raise MismatchError(
            f"{what} vectors have width {given}, the index holds vectors of width {width}",
            "encode them with the encoder that made the index's vectors",
        )


def dense_vectors(vectors: Any, width: int, what: str) -> np.ndarray:
    """The vectors as (n, width) float32 rows in C order; not copied when they are that already."""
    if issparse(vectors):
        raise UsageError(
            f"{what} vectors are sparse, the engine takes dense ones",
            "use a sparse engine, or the dense vectors",
        )
    array = np.asarray(vectors)
    check_width(array, width, what)
    if array.dtype.kind not in "fiu":
        raise UsageError(f"{what} vectors must be real numbers, got {array.dtype}")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32)


def row_norms(rows: np.ndarray, names: Sequence[str] | None, what: str) -> np.ndarray:
    """(n,) float32 Euclidean lengths, computed in blocks.

    Args:
        rows: (n, d) float32.
    """
    norms = np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), _CHECK_ROWS):
        block = np.asarray(rows[start : start + _CHECK_ROWS])
        with np.errstate(over="ignore", invalid="ignore"):
            norms[start : start + len(block)] = np.sqrt(np.vecdot(block, block))
        bad = np.flatnonzero(~np.isfinite(norms[start : start + len(block)]))
        if len(bad):
            row = start + int(bad[0])
            named = f"{what} vector {names[row]!r}" if names is not None else f"{what} vector"
            finite = bool(np.isfinite(rows[row]).all())
            raise NumericalError(
                f"{named} (row {row}) is {'too long for float32' if finite else 'not finite'}",
                "scale the vectors to unit length"
                if finite
                else "the encoder diverged: train it again with a lower learning rate",
            )
    return norms
