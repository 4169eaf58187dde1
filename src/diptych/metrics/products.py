"""Scores of pairs: exact ones, slowly, and the distance a fast product can be from them.

The score of an image and a text is, by definition here, the inner product of their two float32 rows, multiplied
and added in float64 in one fixed order (NumPy's pairwise sum along the row). Equal rows therefore tie exactly.

Whatever the order of adding, a float32 product differs from the real inner product by at most ``gamma(d) |x|
|y|`` with ``gamma(d) = d u / (1 - d u)`` (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition,
section 3.1), if products are accumulated in the type of the inputs or better, as every BLAS does by default. So a
fast product decides every comparison but those inside that band, and only these are scored exactly.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from diptych.core.errors import DataError, NumericalError
from diptych.metrics.runs import blocks

EPSILON = 1e-12  # rows are divided by max(length, EPSILON), as torch.nn.functional.normalize does

_CHUNK_NUMBERS = 1 << 17  # float64 numbers multiplied at once: 1 MB, which stays in cache
_CHECK_NUMBERS = 1 << 20
_SMALLEST_NORMAL = {np.dtype(kind): float(np.finfo(kind).tiny) for kind in (np.float32, np.float64)}
_UNIT = 2.0**-21  # how far from 1 the length of a row may be that was divided by its length in float32


def pair_scores(left: np.ndarray, right: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return (p,) float64 exact scores of the pairs ``(left[i[p]], right[j[p]])`` of float32 rows."""
    scores = np.empty(len(i), dtype=np.float64)
    for here in blocks(len(i), _CHUNK_NUMBERS // max(1, left.shape[1])):
        products = left[i[here]].astype(np.float64)  # a product of two float32 is exact in float64
        products *= right[j[here]]
        np.add.reduce(products, axis=1, out=scores[here])
    return scores


def rounding_band(width: int, kind: np.dtype, left_norm: np.ndarray, right_norm: float) -> np.ndarray:
    """Bound, (n,) per left row, how far a product of type ``kind`` is from exact; infinite if it may overflow."""
    kind = np.dtype(kind)
    unit = float(np.finfo(kind).eps) / 2
    gamma = width * unit / (1 - width * unit) if width * unit < 1 else np.inf
    size = left_norm * right_norm
    exact = 2 * width * float(np.finfo(np.float64).eps) * size  # the exact score's own rounding
    band = gamma * size + exact + width * _SMALLEST_NORMAL[kind]  # underflow, flushed to zero or not
    return np.where(size < float(np.finfo(kind).max) / 4, band, np.inf)


def _blocks(rows: np.ndarray) -> Iterator[slice]:
    return blocks(len(rows), _CHECK_NUMBERS // max(1, rows.shape[1]))


def check_ids(what: str, ids: Sequence[str] | None, size: int) -> None:
    if ids is not None and len(ids) != size:
        raise DataError(f"{len(ids)} {what} ids for {size} {what} rows")


def check_rows(rows: np.ndarray, side: str, ids: Sequence[str] | None = None) -> np.ndarray:
    """Return (n,) bounds of the norms of float32 rows, all of them finite; rows may be memory-mapped."""
    if rows.ndim != 2 or rows.dtype != np.float32:
        convert = "convert them with .astype(np.float32), knowing what rounding does to ties"
        raise DataError(
            f"{side} rows must be a float32 matrix, got {rows.dtype} with shape {rows.shape}",
            convert if rows.ndim == 2 else "give one row per item, (n, d)",
        )
    check_ids(side, ids, len(rows))
    norms = np.empty(len(rows), dtype=np.float64)
    for here in _blocks(rows):
        squares = np.einsum("ij,ij->i", rows[here], rows[here], dtype=np.float64)
        for bad in np.flatnonzero(~np.isfinite(squares))[:1]:  # no square of a float32 overflows
            row = here.start + int(bad)
            name = "" if ids is None else f" {ids[row]!r}"
            raise NumericalError(
                f"{side}{name} (row {row}) is not finite: its embedding holds NaN or infinity",
                "the encoder diverged or its input was broken: embed again",
            )
        norms[here] = np.sqrt(squares)
    return np.asarray(norms * (1 + rows.shape[1] * float(np.finfo(np.float64).eps)))


def unit_rows(rows: np.ndarray, dtype: type[np.floating] = np.float32) -> np.ndarray:
    """Divide (n, d) finite rows by their length, which is taken in float64; a zero row stays zero."""
    exact = np.asarray(rows, dtype=np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    return np.asarray((exact / np.maximum(lengths, EPSILON)).astype(dtype, copy=False))


def cosine_rows(rows: np.ndarray) -> np.ndarray:
    """Return :func:`unit_rows` of finite float32 rows; what is of unit length but for rounding stays as it is."""
    longer = np.zeros(len(rows), dtype=bool)
    for here in _blocks(rows):
        squares = np.einsum("ij,ij->i", rows[here], rows[here], dtype=np.float64)
        longer[here] = np.abs(np.sqrt(squares) - 1) > _UNIT
    if not longer.any():
        return rows
    found = np.array(rows)
    for here in _blocks(rows):
        found[here][longer[here]] = unit_rows(rows[here][longer[here]])
    return found
