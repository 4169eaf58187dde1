"""What COCOS counts in one batch and one direction, and what each count is called."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Literal, get_args

import numpy as np

from diptych.core.errors import UsageError

DirectionName = Literal["i2t", "t2i"]
DIRECTIONS: tuple[DirectionName, DirectionName] = ("i2t", "t2i")

Unit = Literal["temperature", "score"]

CocosCompat = Literal["none", "equations", "published"]
"""``none`` counts gradient weights, ``equations`` as Eq. 9–13 read, ``published`` as the published code."""


def check_epsilon(epsilon: float) -> float:
    """The threshold, a number of at least 0."""
    if not (epsilon >= 0 and math.isfinite(epsilon)):
        raise UsageError(f"epsilon {epsilon}", "give a threshold of at least 0, such as 0.01")
    return epsilon


def check_compat(compat: str) -> CocosCompat:
    """The compat, one of those there are."""
    known = get_args(CocosCompat)
    if compat not in known:
        raise UsageError(f"compat {compat!r}", f"one of {', '.join(map(repr, known))}")
    return compat  # type: ignore[return-value]


@dataclass(frozen=True)
class Counted:
    """A count as tables print it.

    Attributes:
        name: the attribute of :class:`Counts`.
        symbol: as Bleeker and de Rijke print it, with ``^`` before what is raised.
        description: one line.
        decimals: digits after the point.
    """

    name: str
    symbol: str
    description: str
    decimals: int = 2


COUNTS = (
    Counted("per_query", "C^q", "negatives that contribute, mean over all queries"),
    Counted("per_active_query", "C^q active", "the same, mean over the queries that have a gradient"),
    Counted("within_per_query", "C^q in-modality", "those of them that are of the query's own modality"),
    Counted("in_batch", "C^B", "negatives that contribute, sum over the batch"),
    Counted("without_gradient", "C^0", "queries without gradient: no candidate contributes"),
    Counted(
        "negatives_weight", "W^-", "summed weight of the negatives that contribute, mean over queries", 3
    ),
    Counted("positives_weight", "W^+", "summed weight of the positives, mean over queries", 3),
)


@dataclass(frozen=True, eq=False)
class Counts:
    """One batch in one direction; what a way of counting does not say is None.

    Attributes:
        queries: how many queries the batch has.
        each: (queries,) how many negatives contribute to each query's gradient.
        per_query: C^q, mean of ``each`` over all queries.
        per_active_query: mean of ``each`` over the queries that have a gradient; None in a batch
            where none has.
        in_batch: C^B, sum of ``each``.
        without_gradient: C^0, queries none of whose candidates contributes, positive or negative.
        negatives_weight: W^-, weight of the contributing negatives, summed per query, mean over queries.
        positives_weight: W^+, weight of all positives, summed per query, mean over queries.
        within_per_query: for objectives with in-modality negatives: how many of ``per_query`` they are.
    """

    queries: int
    each: np.ndarray = field(repr=False)
    per_query: float
    per_active_query: float | None
    in_batch: float
    without_gradient: int
    negatives_weight: float | None = None
    positives_weight: float | None = None
    within_per_query: float | None = None

    def values(self) -> dict[str, float]:
        """The counts there are, by name, in the order of :data:`COUNTS`."""
        own = {item.name for item in fields(self)}
        given = {count.name: getattr(self, count.name) for count in COUNTS if count.name in own}
        return {name: float(value) for name, value in given.items() if value is not None}
