"""One model in one setting as a table prints it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from diptych.evaluation.comparison import Spread
from diptych.metrics.bootstrap import Bootstrap, drawn_clusters, interval


@dataclass(frozen=True)
class Value:
    """A measure of one model, a share in [0, 1].

    Attributes:
        spread: per seed of training; one value for a model that is not trained.
        chance: what a random order gets.
        low, high: ends of the interval over queries, of the mean over seeds; None without one.
    """

    spread: Spread
    chance: float
    low: float | None = None
    high: float | None = None

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return self.spread.mean


@dataclass(frozen=True)
class ModelRow:
    """A row of a setting's table.

    Attributes:
        model: its name.
        label: as printed.
        trained: whether it was trained here.
        values: per measure, of categories that ask for products.
        products: per measure, of products that ask for their category; ``R@1`` is the share put in the right place.
    """

    model: str
    label: str
    trained: bool
    values: Mapping[str, Value]
    products: Mapping[str, Value]


def intervals_of(values: Mapping[str, np.ndarray], how: Bootstrap) -> dict[str, tuple[float, float] | None]:
    """Percentile intervals of means over queries, the same draws for all measures.

    Args:
        values: per measure, (q,) values, NaN for queries that were not asked.
    """
    if not how.samples or not values:
        return dict.fromkeys(values)
    table = np.stack(list(values.values()), axis=1)
    table = table[~np.isnan(table).any(axis=1)]
    q = len(table)
    means = [weights @ table / weights.sum(axis=1, keepdims=True) for weights in drawn_clusters(how, 0, q, q)]
    drawn = np.concatenate(means)
    return {name: interval(drawn[:, place], how.confidence) for place, name in enumerate(values)}
