"""Differences between cells with intervals: two models, two feature sets, or gains at two steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diptych.commerce.purchase_intent.evaluation.resampling import Persons
from diptych.commerce.purchase_intent.evaluation.result import Evaluation
from diptych.commerce.purchase_intent.evaluation.summary import RESAMPLED, Pooled
from diptych.core.errors import MismatchError, UnknownNameError
from diptych.metrics.bootstrap import Bootstrap

CellName = tuple[str, str, int, str]
"""Setting, feature set, step, model."""


@dataclass(frozen=True)
class Difference:
    """A difference, or another sum, of values of cells.

    Attributes:
        measure: of what.
        values: of the cells, in the order given.
        difference: the sum of the values times their factors.
        low, high: ends of its interval; None without resamples.
    """

    measure: str
    values: tuple[float, ...]
    difference: float
    low: float | None
    high: float | None

    @property
    def is_clear(self) -> bool:
        """Whether the interval lies on one side of 0."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def compare(
    evaluation: Evaluation,
    first: CellName,
    second: CellName,
    *,
    measure: str = "average_precision",
    bootstrap: Bootstrap | None = None,
) -> Difference:
    """The second cell less the first, on the same sessions: a paired bootstrap over persons.

    Args:
        evaluation: with both.
        first: e.g. ``("anonymous", "baseline", 0, "random-forest")``.
        second: the same with ``"extended"``, or another model.
        measure: ``average_precision``, ``f1`` or ``best_f1``.
        bootstrap: how the interval is made.

    Raises:
        UnknownNameError: no such cell or measure.
        MismatchError: they were tested on other sessions.
    """
    one, other = evaluation.pooled(*first), evaluation.pooled(*second)
    if not np.array_equal(one.rows, other.rows):
        raise MismatchError(
            f"{first} was tested on {len(one.rows):,} sessions, {second} on {len(other.rows):,}, not the same ones",
            "compare cells of one setting and step, or contrast() their gains",
        )
    return _contrast(evaluation, [(-1.0, one), (1.0, other)], measure, bootstrap)


def contrast(
    evaluation: Evaluation,
    terms: Sequence[tuple[float, CellName]],
    *,
    measure: str = "average_precision",
    bootstrap: Bootstrap | None = None,
) -> Difference:
    """A sum of cells' values with factors, e.g. the gain at step 0 less the gain at step 10.

    The same persons are drawn for all cells, so that cells of other steps, whose sessions are partly the same, are
    paired as far as they are.
    """
    return _contrast(
        evaluation, [(factor, evaluation.pooled(*name)) for factor, name in terms], measure, bootstrap
    )


def _contrast(
    evaluation: Evaluation, terms: Sequence[tuple[float, Pooled]], measure: str, bootstrap: Bootstrap | None
) -> Difference:
    if measure not in RESAMPLED:
        raise UnknownNameError("measure with an interval", measure, RESAMPLED)
    persons = Persons.of(evaluation.sessions()[1], bootstrap or Bootstrap())
    values = tuple(float(pooled.values(measure)) for _, pooled in terms)
    samples = [factor * pooled.resampled(persons, [measure])[measure] for factor, pooled in terms]
    low, high = persons.interval(np.sum(samples, axis=0))
    total = sum(factor * value for (factor, _), value in zip(terms, values, strict=True))
    return Difference(measure, values, total, low, high)
