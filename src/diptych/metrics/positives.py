"""Positives: one direction of a ground truth, and how lists of rows become one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from diptych.core.distinct import distinct
from diptych.core.errors import DataError

Direction = Literal["i2t", "t2i"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)


@dataclass(frozen=True, eq=False)
class Positives:
    """One direction of a ground truth: the relevant gallery rows of every query.

    Attributes:
        start: (n_queries + 1,) int64; query q's positives are ``rows[start[q]:start[q + 1]]``.
        rows: gallery rows, ascending within a query.
        gallery: how many rows the gallery has.
    """

    start: np.ndarray
    rows: np.ndarray
    gallery: int

    @property
    def n_queries(self) -> int:
        """How many queries, those without a positive included."""
        return len(self.start) - 1

    @cached_property
    def counts(self) -> np.ndarray:
        """(n_queries,) int64, the positives of each query."""
        return np.diff(self.start)

    @cached_property
    def queries(self) -> np.ndarray:
        """The query of every entry of ``rows``."""
        return np.repeat(np.arange(self.n_queries), self.counts)

    def of(self, query: int) -> np.ndarray:
        """The relevant gallery rows of ``query``."""
        return self.rows[self.start[query] : self.start[query + 1]]

    def holds(self, queries: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Whether each gallery row is relevant to the query beside it; booleans."""
        keys = self.queries * max(self.gallery, 1) + self.rows  # ascending
        if not len(keys):
            return np.zeros(len(rows), dtype=bool)
        wanted = queries * max(self.gallery, 1) + rows
        found: np.ndarray = keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted
        return found

    def transposed(self) -> Positives:
        """The same pairs, asked from the other side."""
        return positives_of(self.rows, self.queries, self.gallery, self.n_queries)

    def taken(self, queries: np.ndarray) -> Positives:
        """Only the queries in these rows, in this order."""
        place = np.full(self.n_queries, -1, dtype=np.int64)
        place[queries] = np.arange(len(queries))
        keep = place[self.queries] >= 0
        return positives_of(place[self.queries[keep]], self.rows[keep], len(queries), self.gallery)


def frozen(values: np.ndarray) -> np.ndarray:
    """Whole numbers that nobody can change."""
    values = np.ascontiguousarray(values, dtype=np.int64)
    values.flags.writeable = False
    return values


def positives_of(queries: np.ndarray, rows: np.ndarray, n_queries: int, gallery: int) -> Positives:
    """Positives of pairs, of which one given twice counts once."""
    queries, rows = np.divmod(distinct(queries * max(gallery, 1) + rows), max(gallery, 1))
    start = np.concatenate([[0], np.cumsum(np.bincount(queries, minlength=n_queries))])
    return Positives(frozen(start), frozen(rows), gallery)


def check_range(what: str, values: np.ndarray, size: int) -> None:
    """Refuse rows outside [0, size)."""
    outside = np.flatnonzero((values < 0) | (values >= size))
    if len(outside):
        where = int(outside[0])
        raise DataError(
            f"ground truth: {what} row {int(values[where])} (entry {where}) is not in [0, {size})",
            "give the rows of the same images and texts that are evaluated",
        )


def as_rows(what: str, values: object) -> np.ndarray:
    """A list of whole numbers as int64."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise DataError(
            f"ground truth: {what} must be a list of whole numbers, "
            f"got an array of {array.dtype} with shape {array.shape}"
        )
    return array.astype(np.int64)
