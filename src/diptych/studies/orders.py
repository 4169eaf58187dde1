"""Relative results: which of two rows is ahead, whether so few queries can tell, and whether two orders agree.

Voorhees (2002) compares systems by their order, not by their scores: a relative result is reproduced where
the same row is ahead. A *near tie* is an order that the queries at hand cannot tell from chance: of what is
measured here by a paired t-test whose independent observations are images (p > 0.05, not corrected), of
printed recalls, which have no values per query, by two independent shares of the printed number of queries
(95 %). The latter ignores that both rows answered the same queries, so it calls more orders near ties.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from diptych.studies.evidence import Evidence
from diptych.studies.published import PublishedRow

if TYPE_CHECKING:
    from diptych.evaluation import Result

_LEVEL = 0.05
_Z = 1.96
_DIGITS = 9  # of a difference of percentages


@dataclass(frozen=True)
class Order:
    """Which of two rows is ahead in one column.

    Attributes:
        ahead: the row's name; empty where both have the same value.
        apart: the first row's value less the second's.
        near_tie: whether the queries cannot tell; None where that is not known.
    """

    ahead: str
    apart: float
    near_tie: bool | None = None


@dataclass(frozen=True)
class Agreement:
    """How many of several comparisons of two orders have the same row ahead.

    Attributes:
        same: of them.
        of: all that could be made.
    """

    same: int
    of: int

    @property
    def word(self) -> Literal["holds", "partly", "fails", "not run"]:
        """``holds`` when all agree, ``fails`` when none does."""
        if not self.of:
            return "not run"
        return "holds" if self.same == self.of else "partly" if self.same else "fails"

    def __add__(self, other: Agreement) -> Agreement:
        return Agreement(self.same + other.same, self.of + other.of)

    def __str__(self) -> str:
        return f"{self.same} of {self.of}" if self.of else "–"


def order_in(
    evidence: Evidence, pair: tuple[str, str], column: str, near_tie: bool | None = None
) -> Order | None:
    """Which of the pair is ahead in a column; None where one has no figure."""
    first, second = (evidence.figure(row, column) for row in pair)
    if first is None or second is None:
        return None
    # Sums of the same recalls in another order differ in their last digits: no order.
    apart = round(first.mean - second.mean, _DIGITS)
    return Order("" if apart == 0 else pair[0] if apart > 0 else pair[1], apart, near_tie)


def agreement(pairs: Iterable[tuple[Order | None, Order | None]]) -> Agreement:
    """How many pairs of orders have the same row ahead, of those where both are known."""
    known = [(one, other) for one, other in pairs if one is not None and other is not None]
    return Agreement(sum(one.ahead == other.ahead for one, other in known), len(known))


def printed_near_tie(first: PublishedRow, second: PublishedRow, column: str) -> bool | None:
    """Whether two printed recalls are apart by less than their numbers of queries can tell.

    None for columns that are no recalls of one direction, and where one is not printed.
    """
    direction, _, name = column.partition(" ")
    if direction not in ("i2t", "t2i") or not name.startswith("R@"):
        return None
    if column not in first.cells or column not in second.cells:
        return None
    variance, values = 0.0, []
    for row in (first, second):
        share = row.cells[column].value / 100
        queries = row.on.images if direction == "i2t" else min(row.on.captions)
        values.append(share)
        variance += share * (1 - share) / queries
    return abs(values[0] - values[1]) <= _Z * math.sqrt(variance)


def measured_near_tie(first: Path, second: Path, columns: Sequence[str]) -> Mapping[str, bool | None]:
    """Per column (recalls, sums of a direction, ``rsum``) whether two evaluations are a near tie.

    Args:
        first, second: folders of evaluations (:meth:`diptych.evaluation.Result.save`).
    """
    from diptych.evaluation import Result

    results = Result.open(first), Result.open(second)
    return {column: _near_tie(*results, column) for column in columns}


def _near_tie(first: Result, second: Result, column: str) -> bool | None:
    import numpy as np

    from diptych.metrics.paired import Shares, shares_of, t_test

    direction, _, name = column.partition(" ")
    directions = [direction] if name else ["i2t", "t2i"]
    texts = first.text_image
    same = all(first.protocol.about.get(key) == second.protocol.about.get(key) for key in ("dataset", "data"))
    if not same or texts is None or second.text_image is None or not np.array_equal(texts, second.text_image):
        return None
    n_images = first.protocol.n_images
    parts, residuals = np.zeros(n_images), np.zeros(n_images)
    for way in directions:
        recalls = (
            [name] if name.startswith("R@") else [key for key in first.per_query[way] if key.startswith("R@")]
        )
        values = [sum(one.per_query[way][key] for key in recalls) for one in (first, second)]
        cluster = np.arange(n_images) if way == "i2t" else texts
        shares = shares_of(np.asarray(values[0]) - np.asarray(values[1]), cluster, n_images)
        parts, residuals = parts + shares.parts, residuals + shares.residuals
    p = t_test([Shares(parts, residuals, np.ones(n_images, dtype=bool))])
    return None if p is None else p > _LEVEL
