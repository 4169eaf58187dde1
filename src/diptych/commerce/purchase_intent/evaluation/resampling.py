"""Intervals: the percentile bootstrap over persons, the same draws for all cells.

Sessions of one person are not independent, so whole persons are drawn with replacement. They are drawn among all
persons of the table, whichever cell is measured: the differences of two cells' resamples, be it of two feature
sets, two models or two steps, are then resamples of the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from diptych.metrics.bootstrap import Bootstrap, drawn_clusters, interval

Measured = Callable[[np.ndarray], np.ndarray]
"""From (samples, sessions) weights to (samples,) values."""


@dataclass(frozen=True, eq=False)
class Persons:
    """Who is drawn.

    Attributes:
        numbers: (n,) of all sessions of the table: 0, 1, … of its persons.
        count: how many there are.
        how: samples, confidence and seed.
    """

    numbers: np.ndarray
    count: int
    how: Bootstrap

    @classmethod
    def of(cls, persons: np.ndarray, how: Bootstrap) -> Persons:
        """From (n,) whatever numbers."""
        known, numbers = np.unique(persons, return_inverse=True)
        return cls(numbers, len(known), how)

    def resamples(self, rows: np.ndarray, measures: Mapping[str, Measured]) -> dict[str, np.ndarray]:
        """Per measure, (samples,) values on every resample; NaN where it is not defined."""
        found: dict[str, list[np.ndarray]] = {name: [] for name in measures}
        mine = self.numbers[rows]
        for drawn in drawn_clusters(self.how, 0, self.count, len(self.numbers)):
            weights = drawn[:, mine]
            for name, measured in measures.items():
                found[name].append(measured(weights))
        return {name: np.concatenate(parts) if parts else np.zeros(0) for name, parts in found.items()}

    def interval(self, samples: np.ndarray) -> tuple[float | None, float | None]:
        """Ends of the percentile interval; None without resamples."""
        return interval(samples, self.how.confidence) or (None, None)
