"""Grades of pairs as a sorted table: of single pairs, the best of a query, the mean over the gallery."""

from __future__ import annotations

import numpy as np

from diptych.core.errors import DataError
from diptych.metrics.gain_measure import Gain
from diptych.metrics.positives import Direction, Positives
from diptych.metrics.relevance import Grades


class GradeTable:
    """Grades of pairs, asked from one direction."""

    def __init__(self, positives: Positives, direction: Direction, grades: Grades | None) -> None:
        self._width = max(positives.gallery, 1)
        queries, rows, values = positives.queries, positives.rows, np.ones(len(positives.rows))
        if grades is not None:
            missing = grades.ungraded(positives, direction)
            rated = grades.asked_from(direction)
            queries = np.concatenate([queries[missing], rated[0]])
            rows = np.concatenate([rows[missing], rated[1]])
            values = np.concatenate([np.full(int(missing.sum()), grades.highest), grades.values])
        outside = (queries < 0) | (queries >= positives.n_queries) | (rows < 0) | (rows >= self._width)
        if outside.any():
            raise DataError(
                f"a grade is of query row {int(queries[outside][0])} and gallery row {int(rows[outside][0])}, "
                f"there are {positives.n_queries:,} and {positives.gallery:,}",
                "give the grades of the same images and texts that are evaluated",
            )
        keys = queries * self._width + rows
        order = np.argsort(keys)
        self._keys, self._values = keys[order], values[order].astype(np.float64)
        self._n, self._gallery = positives.n_queries, positives.gallery

    def of(self, queries: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The grade of each pair."""
        if not len(self._keys):
            return np.zeros(len(rows))
        wanted = queries * self._width + rows
        place = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        grades: np.ndarray = np.where(self._keys[place] == wanted, self._values[place], 0.0)
        return grades

    def best(self, gain: Gain, depth: int) -> np.ndarray:
        """(n, depth) the greatest gains, descending."""
        query, values = self._keys // self._width, gain.transform(self._values)
        order = np.lexsort((-values, query))
        counts = np.bincount(query, minlength=self._n)
        place = np.arange(len(order)) - (np.cumsum(counts) - counts)[query[order]]
        found = np.zeros((self._n, depth))
        inside = place < depth
        found[query[order][inside], place[inside]] = values[order][inside]
        return found

    def mean(self, gain: Gain) -> np.ndarray:
        """(n,) mean gain of the gallery."""
        values = gain.transform(self._values)
        total = np.bincount(self._keys // self._width, weights=values, minlength=self._n)
        means: np.ndarray = total / self._gallery
        return means
