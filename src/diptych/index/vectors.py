"""Dense vectors and ids: checks of what comes in, rows by slot, mapped with a tail in memory, and the best of them.

A matrix product rounds the same two vectors differently at different places of the matrix, so its scores can neither
find ties nor order them. In :func:`top_k` they only choose candidates, with a margin for their rounding error; a
candidate's score is then computed only from its two vectors. So equal rows have equal scores wherever they stand,
and the result does not depend on how queries are batched.
"""

import itertools
import operator
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from diptych.core.errors import DataError, MismatchError, NumericalError, UsageError
from diptych.data.columns import first_duplicate

_CHECK_ROWS = 16_384


def check_ids(ids: Sequence[str], count: int) -> list[str]:
    if isinstance(ids, str):
        raise UsageError(f"ids must be a sequence of ids, got the string {ids!r}", f"pass [{ids!r}]")
    names = list(ids)
    if len(names) != count:
        raise DataError(f"{len(names):,} ids for {count:,} vectors")
    for name in itertools.filterfalse(lambda name: isinstance(name, str), names):
        raise DataError(f"id {name!r} is a {type(name).__name__}, ids are strings")
    if (twice := first_duplicate(names)) is not None:
        raise DataError(f"id {twice!r} occurs twice", "make ids unique")
    return [str(name) for name in names]


def check_k(k: Any) -> int:
    if isinstance(k, bool) or not hasattr(k, "__index__") or operator.index(k) < 1:
        raise UsageError(f"k={k!r} hits cannot be requested", "k is a whole number from 1")
    return operator.index(k)


def count_rows(vectors: Any, what: str) -> int:
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


def called(row: int, names: Sequence[str] | None, what: str) -> str:
    return f"{what} vector (row {row})" if names is None else f"{what} vector {names[row]!r} (row {row})"


def largest_norm(rows: np.ndarray, names: Sequence[str] | None, what: str) -> np.float32:
    """Return the largest Euclidean length of (n, d) float32 rows, computed in blocks; every one must be finite."""
    largest = np.float32(0)
    for start in range(0, len(rows), _CHECK_ROWS):
        block = np.asarray(rows[start : start + _CHECK_ROWS])
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.sqrt(np.vecdot(block, block))
        bad = np.flatnonzero(~np.isfinite(norms))
        if len(bad):
            row = start + int(bad[0])
            wrong = "not finite", "the encoder diverged: train it again with a lower learning rate"
            if np.isfinite(rows[row]).all():
                wrong = "too long for float32", "scale the vectors to unit length"
            raise NumericalError(f"{called(row, names, what)} is {wrong[0]}", wrong[1])
        largest = max(largest, norms.max())
    return largest


class Growing:
    """An array that grows at its end; views of it that were taken before stay as they are.

    Args:
        first: copied, with room for an eighth more, so that the first to be appended does not wait for a copy.
    """

    def __init__(self, first: np.ndarray) -> None:
        self._room = np.empty((len(first) + len(first) // 8, *first.shape[1:]), dtype=first.dtype)
        self._room[: len(first)] = first
        self.view = self._room[: len(first)]

    def extend(self, more: np.ndarray) -> None:
        count, needed = len(self.view), len(self.view) + len(more)
        if needed > len(self._room):
            # Doubling: n single appends copy 2n rows, not n²/2.
            room = np.empty((max(needed, 2 * len(self._room)), *self._room.shape[1:]), dtype=self._room.dtype)
            room[:count] = self.view
            self._room = room
        self._room[count:needed] = more
        self.view = self._room[:needed]


class RowStore:
    """(n, d) float32 rows that can grow without touching what is mapped.

    Args:
        base: (n, d) float32 in C order, usually a memory map; kept as it is, never written.
        longest: no row's length is above it; measured (reading every row) when not given.
    """

    def __init__(self, base: np.ndarray, longest: np.float32 | None = None) -> None:
        self._base = np.asarray(base)  # a plain view: slicing np.memmap objects costs microseconds each
        self._tail = Growing(np.empty((0, self._base.shape[1]), dtype=np.float32))
        self._longest = longest

    def __len__(self) -> int:
        return len(self._base) + len(self._tail.view)

    @property
    def width(self) -> int:
        return int(self._base.shape[1])

    @property
    def longest(self) -> np.float32:
        if self._longest is None:
            self._longest = largest_norm(self._base, None, "item")
        return self._longest

    def append(self, rows: np.ndarray) -> None:
        self._longest = max(self.longest, largest_norm(rows, None, "item"))
        self._tail.extend(rows)

    def blocks(self, size: int = 16_384) -> Iterator[tuple[int, np.ndarray]]:
        for offset, part in ((0, self._base), (len(self._base), self._tail.view)):
            for start in range(0, len(part), size):
                yield offset + start, part[start : start + size]

    def take(self, slots: np.ndarray) -> np.ndarray:
        if not len(self._tail.view):
            return np.asarray(self._base[slots])
        rows = np.empty((*slots.shape, self.width), dtype=np.float32)
        tail = slots >= len(self._base)
        rows[~tail] = self._base[slots[~tail]]
        rows[tail] = self._tail.view[slots[tail] - len(self._base)]
        return rows

    def write(self, path: Path, slots: np.ndarray) -> None:
        """Write the rows in ``slots`` as a NumPy file, a block at a time.

        Written, not mapped: on a full disk a write raises OSError, a mapped page kills the process.
        """
        with open(path, "wb") as handle:
            np.lib.format.write_array_header_1_0(
                handle, {"descr": "<f4", "fortran_order": False, "shape": (len(slots), self.width)}
            )
            for start in range(0, len(slots), 16_384):
                handle.write(self.take(slots[start : start + 16_384]).astype("<f4", copy=False).data)


_QUERIES = 1024
_SCORES = 1 << 17  # floats in one block of scores: 512 kB, which a core's cache holds
_FEWEST_ROWS = 2048
_LARGEST = 1 << 22  # floats of a block where many are looked for; candidates kept until scored for good
_MOST_ROWS = 65_536
_PAIR_FLOATS = 1 << 22  # floats gathered at a time to score candidates


def top_k(
    rows: RowStore, queries: np.ndarray, k: int, alive: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best ``k`` rows for each query.

    Memory: one block of scores besides the result, whatever the number of rows; it takes longer where very many scores
    are nearly equal, for each such pair is scored by itself.

    Args:
        queries: (q, d) float32.
        alive: (n,) bool, the rows that can be found; None: all.

    Returns:
        (q, k) int64 slots, best first, equal scores by slot, and (q, k) float32 scores.
    """
    parts = [
        _best(rows, queries[start : start + _QUERIES], k, alive) for start in range(0, len(queries), _QUERIES)
    ]
    slots, scores = (np.concatenate(one) for one in zip(*parts, strict=True))
    return slots, scores


def _best(
    rows: RowStore, queries: np.ndarray, k: int, alive: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    # |computed - true| <= d * u / (1 - d * u) * |x| * |y| for a float32 inner product in any order of summation
    # (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1), so twice that may lie between two ways of
    # computing it. Rounding of the norms and underflow: rounded up.
    count, width = queries.shape
    lengths = np.sqrt(np.vecdot(queries, queries)).astype(np.float64)
    unit, tiny = 2.1 * (width + 2) * np.finfo(np.float32).eps / 2, float(np.finfo(np.float32).tiny)
    error = unit * lengths * float(rows.longest) + 4 * width * tiny
    best = np.full((count, k), -np.inf, dtype=np.float32)  # scores of products
    size = min(_MOST_ROWS, max(_FEWEST_ROWS, min(16 * k, _LARGEST // count), _SCORES // count))
    buffer = np.empty(count * size, dtype=np.float32)
    pending: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # owner, slot and score of candidates

    def settled() -> tuple[np.ndarray, np.ndarray]:
        """Return the k best of the candidates by their scores for good."""
        owner, slots, found = (np.concatenate(part) for part in zip(*pending, strict=True))
        kept = np.flatnonzero(found >= (best.min(axis=1) - 2 * error)[owner])
        kept = kept[np.argsort(owner[kept], kind="stable")]  # by query, then by slot
        owner, slots = owner[kept], slots[kept]
        scores = _table(count, owner, pair_scores(rows, slots, queries, owner), -np.inf)
        # A stable sort by score is all that the rule for ties needs.
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        slots = np.take_along_axis(_table(count, owner, slots, -1), order, axis=1)
        return slots, np.take_along_axis(scores, order, axis=1)

    for start, block in rows.blocks(size):
        scores = buffer[: count * len(block)].reshape(len(block), count)
        np.matmul(block, queries.T, out=scores)  # a third faster than the other way round
        if alive is not None:
            scores[~alive[start : start + len(block)]] = -np.inf
        least = best.min(axis=1) - 2 * error
        if len(block) > k and not np.isfinite(least).all():
            least = np.maximum(least, _at_most_kth(np.ascontiguousarray(scores.T), k) - 2 * error)
        # The largest number is below every score, and above those of what is dead.
        least = np.maximum(np.nextafter(least.astype(np.float32), -np.inf), np.finfo(np.float32).min)
        places = np.flatnonzero(scores >= least)
        column, owner = np.divmod(places, count)
        order = np.argsort(owner, kind="stable")  # what is of one query stands together
        places, owner, column = places[order], owner[order], column[order]
        pending.append((owner, start + column, scores.reshape(-1)[places]))
        best = np.concatenate([best, _table(count, owner, pending[-1][2], -np.inf)], axis=1)
        best = np.partition(best, -k, axis=1)[:, -k:]
        if sum(len(one) for one, _, _ in pending) > max(
            _LARGEST, 2 * best.size
        ):  # very many are nearly equal
            slots, best = settled()
            owner, place = np.nonzero(slots >= 0)
            pending = [(owner, slots[owner, place], best[owner, place])]
    return settled()


def _at_most_kth(scores: np.ndarray, k: int) -> np.ndarray:
    """Return for each row a number that at least k of it reach: the k-th largest of the largest of each part."""
    parts = 16 * k
    width = scores.shape[1] // parts
    if width > 4 and (len(scores) == 1 or width * parts == scores.shape[1]):
        scores = scores[:, : width * parts].reshape(len(scores), parts, width).max(axis=2)
    kth: np.ndarray = np.partition(scores, -k, axis=1)[:, -k]
    return kth


def _table(count: int, owner: np.ndarray, values: np.ndarray, filler: float) -> np.ndarray:
    """Return the values of each query, which stand together, as a row."""
    counts = np.bincount(owner, minlength=count)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    table = np.full((count, int(counts.max(initial=0))), filler, dtype=values.dtype)
    table[owner, place] = values
    return table


def pair_scores(rows: RowStore, slots: np.ndarray, queries: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """(m,) float32: the inner product of row ``slots[i]`` and query ``owner[i]``, each pair by itself."""
    scores = np.empty(len(slots), dtype=np.float32)
    size = max(1, _PAIR_FLOATS // rows.width)
    for start in range(0, len(slots), size):
        part = slice(start, start + size)
        scores[part] = np.vecdot(rows.take(slots[part]), queries[owner[part]])
    return scores
