"""Several seeds of one recipe: mean and standard deviation of every measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diptych.core.errors import UsageError
from diptych.evaluation.comparable import check_comparable
from diptych.evaluation.result import Result


@dataclass(frozen=True)
class Spread:
    """A number over seeds.

    Attributes:
        values: one per seed.
    """

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return float(np.mean(self.values))

    @property
    def sd(self) -> float | None:
        """The sample standard deviation (n − 1), an estimate for seeds not run; None with one seed."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None

    @property
    def population_sd(self) -> float:
        """The standard deviation of just these seeds (n).

        compat: published code takes ``np.std``; with five seeds it is 11 % less than :attr:`sd`.
        """
        return float(np.std(self.values))


def spread_over_seeds(results: Sequence[Result], names: Sequence[str] | None = None) -> dict[str, Spread]:
    """Mean and spread of each measure over runs that differ in nothing but their seed."""
    if not results:
        raise UsageError("no results to take a mean of", "give one evaluation per seed")
    called = list(names) if names is not None else [f"seed {number}" for number in range(len(results))]
    if len(results) > 1:
        check_comparable(results, called)
    values = [result.values() for result in results]
    common = [name for name in values[0] if all(name in other for other in values)]
    return {name: Spread(tuple(one[name] for one in values)) for name in common}
