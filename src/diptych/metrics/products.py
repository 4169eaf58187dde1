"""Scores of pairs: exact ones, slowly, and the distance a fast product can be from them.

The score of an image and a text is, by definition here, the inner product of their two float32 rows,
multiplied and added in float64 in one fixed order (NumPy's pairwise sum along the row). Equal rows
therefore tie exactly, and no score depends on block size, thread count or position.

A matrix product adds in an order of its own. Whatever the order, a float32 product differs from the
real inner product by at most ``gamma(d) |x| |y|`` with ``gamma(d) = d u / (1 - d u)`` (Higham,
Accuracy and Stability of Numerical Algorithms, 2nd edition, section 3.1), provided that products are
accumulated in the type of the inputs or better, as every BLAS does by default. So a fast product
decides every comparison but those inside that band, and only these are scored exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.core.errors import DataError, NumericalError

_CHUNK_NUMBERS = 1 << 17  # float64 numbers multiplied at once: 1 MB, which stays in cache
_CHECK_NUMBERS = 1 << 20
_SMALLEST_NORMAL = {np.dtype(kind): float(np.finfo(kind).tiny) for kind in (np.float32, np.float64)}


def pair_scores(left: np.ndarray, right: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Exact scores of the pairs ``(left[i[p]], right[j[p]])``.

    Args:
        left: (n, d) float32 rows.
        right: (m, d) float32 rows.
        i: (p,) rows of ``left``.
        j: (p,) rows of ``right``.

    Returns:
        (p,) float64.
    """
    scores = np.empty(len(i), dtype=np.float64)
    step = max(1, _CHUNK_NUMBERS // max(1, left.shape[1]))
    for begin in range(0, len(i), step):
        here = slice(begin, begin + step)
        products = left[i[here]].astype(np.float64)  # a product of two float32 is exact in float64
        products *= right[j[here]]
        np.add.reduce(products, axis=1, out=scores[here])
    return scores


def rounding_band(width: int, kind: np.dtype, left_norm: np.ndarray, right_norm: float) -> np.ndarray:
    """How far a matrix product of type ``kind`` may be from the exact score, per left row.

    Args:
        kind: float32 or float64, what the product is computed in.
        left_norm: (n,) norms of the left rows.

    Returns:
        (n,) float64, infinite where the product could overflow.
    """
    kind = np.dtype(kind)
    unit = float(np.finfo(kind).eps) / 2
    gamma = width * unit / (1 - width * unit) if width * unit < 1 else np.inf
    size = left_norm * right_norm
    exact = 2 * width * float(np.finfo(np.float64).eps) * size  # the exact score's own rounding
    band = gamma * size + exact + width * _SMALLEST_NORMAL[kind]  # underflow, flushed to zero or not
    return np.where(size < float(np.finfo(kind).max) / 4, band, np.inf)


def distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first of each set of equal rows, and for every row the place of its first."""
    seen: dict[bytes, int] = {}
    of = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in rows], dtype=np.int64)
    first = np.unique(of, return_index=True)[1]
    return first, of


def check_rows(rows: np.ndarray, side: str, ids: Sequence[str] | None = None) -> np.ndarray:
    """Norms of float32 rows, all of them finite.

    Args:
        rows: (n, d) float32, possibly memory-mapped; read once, in blocks.

    Returns:
        (n,) float64, rounded up a little so that they can serve in a bound.
    """
    if rows.ndim != 2 or rows.dtype != np.float32:
        raise DataError(
            f"{side} rows must be a float32 matrix, got {rows.dtype} with shape {rows.shape}",
            "convert them with .astype(np.float32), knowing what rounding does to ties",
        )
    if ids is not None and len(ids) != len(rows):
        raise DataError(f"{len(ids)} {side} ids for {len(rows)} {side} rows")
    norms = np.empty(len(rows), dtype=np.float64)
    step = max(1, _CHECK_NUMBERS // max(1, rows.shape[1]))
    for begin in range(0, len(rows), step):
        block = np.asarray(rows[begin : begin + step])
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->i", block, block)
        if not np.all(np.isfinite(squares)):  # NaN, infinity, or only too large for a float32 square
            wide = block.astype(np.float64)
            bad = np.flatnonzero(~np.isfinite(wide).all(axis=1))
            if len(bad):
                row = begin + int(bad[0])
                name = "" if ids is None else f" {ids[row]!r}"
                raise NumericalError(
                    f"{side}{name} (row {row}) is not finite: its embedding holds NaN or infinity",
                    "the encoder diverged or its input was broken: embed again",
                )
            squares = np.einsum("ij,ij->i", wide, wide)
        norms[begin : begin + step] = np.sqrt(squares)
    # A float32 sum of d squares may be low by gamma(d), and tiny ones may have underflowed.
    slack = 1 + rows.shape[1] * float(np.finfo(np.float32).eps)
    bounds: np.ndarray = norms * slack + np.sqrt(rows.shape[1] * _SMALLEST_NORMAL[np.dtype(np.float32)])
    return bounds
