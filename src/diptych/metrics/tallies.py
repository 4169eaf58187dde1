"""Tallies: for every positive, how many negatives score above it and how many tie with it.

A tally is what one direction of a ranking comes down to. It is filled tile by tile, in any order, for
whole numbers add up to the same sum however they are grouped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.metrics.positives import Positives

_BYTE_LANES = 8
_MOST_ADDENDS = 255  # so many ones fit into one byte


def count_rows(mask: np.ndarray) -> np.ndarray:
    """True entries per row of a C-contiguous boolean matrix whose width is a multiple of eight.

    Eight bytes are added at a time as one 64-bit word, 255 words at most, so that no byte overflows:
    about fifteen times faster than ``np.count_nonzero(mask, axis=1)``.
    """
    words = mask.view(np.uint64)
    counts = np.zeros(len(mask), dtype=np.int64)
    for begin in range(0, words.shape[1], _MOST_ADDENDS):
        sums = np.add.reduce(words[:, begin : begin + _MOST_ADDENDS], axis=1)
        counts += sums.view(np.uint8).reshape(len(mask), _BYTE_LANES).sum(axis=1, dtype=np.int64)
    return counts


def count_columns(mask: np.ndarray) -> np.ndarray:
    """True entries per column of a boolean matrix, added as bytes, 255 rows at a time."""
    counts = np.zeros(mask.shape[1], dtype=np.int64)
    for begin in range(0, len(mask), _MOST_ADDENDS):
        rows = mask[begin : begin + _MOST_ADDENDS].view(np.uint8)
        counts += np.add.reduce(rows, axis=0, dtype=np.uint8)
    return counts


@dataclass(frozen=True, eq=False)
class Layer:
    """The j-th best positive of every query that has one.

    Attributes:
        queries: (q,) ascending.
        entries: (q,) where each query's counts are kept in the tally.
    """

    queries: np.ndarray
    entries: np.ndarray

    def within(self, begin: int, end: int) -> Layer:
        """Only the queries in [begin, end)."""
        low, high = np.searchsorted(self.queries, [begin, end])
        return Layer(self.queries[low:high], self.entries[low:high])


class Tally:
    """Counts per positive of one direction, best positive first within each query.

    Attributes:
        start: (n_queries + 1,) each query's slice of the arrays below.
        rows: gallery row of each positive.
        scores: its exact score.
        above: negatives that score more.
        tied: negatives that score the same.
        later: those of the tied that come later in the gallery.
    """

    def __init__(self, positives: Positives, scores: np.ndarray, every: bool, counted: bool = True) -> None:
        queries = positives.queries
        order = np.lexsort((-positives.rows, -scores, queries))
        self.positives = positives
        self.every = every
        self.start = positives.start
        self.rows = positives.rows[order]
        self.scores = scores[order]
        self.above = np.zeros(len(order), dtype=np.int64)
        self.tied = np.zeros(len(order), dtype=np.int64)
        self.later = np.zeros(len(order), dtype=np.int64)
        self.layers = list(self._make_layers()) if counted else []

    def _make_layers(self) -> list[Layer]:
        counts = self.positives.counts
        deepest = int(counts.max(initial=0)) if self.every else min(1, int(counts.max(initial=0)))
        layers = []
        for depth in range(deepest):
            queries = np.flatnonzero(counts > depth)
            layers.append(Layer(queries, self.start[queries] + depth))
        return layers

    def add(self, entries: np.ndarray, above: np.ndarray, tied: np.ndarray, later: np.ndarray) -> None:
        """Add counts to the (distinct) ``entries``."""
        self.above[entries] += above
        self.tied[entries] += tied
        self.later[entries] += later
