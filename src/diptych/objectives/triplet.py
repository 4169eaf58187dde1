"""Triplet losses: every negative that comes closer than the margin, or only the hardest one.

For a query q and one of its positives p, with margin α and [x]₊ = max(0, x)::

    sum of hinges     Σ_{n ∈ N} [α − s_qp + s_qn]₊
    hardest negative  [α − s_qp + max_{n ∈ N} s_qn]₊

A query without negatives has a loss and a gradient of 0; so has a triplet exactly at the margin.

The default reduction is the sum over all (query, positive) pairs and both directions, as Faghri et
al. define and train it (VSE++, BMVC 2018, Eq. 4–6): averaging the hardest form from the start lets
all embeddings collapse to a point, unless the learning rate is small.
"""

import math
from dataclasses import dataclass
from typing import Unpack

from torch import Tensor

from diptych.core.errors import UsageError
from diptych.objectives.declaration import (
    Directed,
    LossOptions,
    OneWay,
    Reduction,
    checked,
    declared,
    not_negative,
)
from diptych.objectives.pairs import PairBlock, pair_losses, sum_per_query


@dataclass(frozen=True)
class _Hinges:
    """For each (query, positive) the sum of the hinges of that query's negatives."""

    margin: float

    def value(self, block: PairBlock) -> Tensor:
        return (block.rows - (block.own - self.margin)).relu_().masked_fill_(block.relevant, 0.0).sum(dim=1)

    def slope(self, block: PairBlock) -> Tensor:
        violating = (block.rows > block.own - self.margin).logical_and_(~block.relevant)
        return violating.to(block.rows.dtype)


def _pairs(scores: Tensor, positives: Tensor, margin: float, hardest: int | None) -> Tensor:
    """(pairs,) the loss of each (query, positive), row by row; of so many hardest negatives, or of all."""
    if hardest is None:
        return pair_losses(_Hinges(margin), scores, positives)
    queries, places = positives.nonzero(as_tuple=True)
    negatives = scores.masked_fill(positives, -math.inf)
    if hardest == 1:  # of equally hard ones the first
        return (margin + negatives.max(dim=1).values[queries] - scores[queries, places]).relu()
    top = negatives.topk(min(hardest, scores.shape[1]), dim=1).values
    return (margin + top[queries] - scores[queries, places][:, None]).relu().sum(dim=1)


@declared(
    "triplet", "sum of hinges over all in-batch negatives", "Kiros et al. 2014; Faghri et al. 2018, Eq. 4"
)
class Triplet(Directed):
    """Sum of hinges over all in-batch negatives."""

    reduction: Reduction = "sum"
    combined = "sum"
    hardest: int | None = None

    def __init__(self, margin: float = 0.2, **choices: Unpack[LossOptions]) -> None:
        super().__init__(**choices)
        self.margin = not_negative("margin", margin, 0.2)

    def one_way(self, scores: Tensor) -> tuple[Tensor, OneWay]:
        return scores, lambda scores, positives: _pairs(scores, positives, self.margin, self.hardest)

    def per_query(self, scores: Tensor, positives: Tensor, within: Tensor | None = None) -> Tensor:
        """Return (queries,) sums over a query's positives."""
        scores, positives = checked(scores, positives, self.compat)
        pairs = _pairs(scores, positives, self.margin, self.hardest)
        return sum_per_query(pairs, positives.nonzero(as_tuple=True)[0], len(scores))


@declared(
    "triplet-hardest",
    "hinge of the hardest in-batch negative (VSE++, Triplet SH)",
    "Faghri et al. 2018, Eq. 6",
)
class TripletHardest(Triplet):
    """Only the hardest in-batch negative of each query (Triplet SH)."""

    hardest = 1


@declared(
    "triplet-top",
    "sum of hinges over the k hardest in-batch negatives",
    "between Eq. 4 (all) and Eq. 6 (one) of Faghri et al. 2018",
)
class TripletTop(Triplet):
    """Sum of hinges over the k hardest in-batch negatives of each query."""

    def __init__(self, k: int = 8, margin: float = 0.2, **choices: Unpack[LossOptions]) -> None:
        super().__init__(margin, **choices)
        if k < 1:
            raise UsageError(f"k {k}", "give the number of hardest negatives, such as 8")
        self.k = self.hardest = k


def triplet(
    scores: Tensor,
    positives: Tensor,
    margin: float = 0.2,
    *,
    hardest: bool = False,
    **choices: Unpack[LossOptions],
) -> Tensor:
    """Triplet loss over one score matrix, both directions added, without a list of triplets.

    ``margin`` is α ≥ 0; ``hardest`` counts only each query's hardest negative. The reduction is over (query,
    positive) pairs, and their sum (published) by default. A second derivative of the sum of hinges is refused.
    """
    return (TripletHardest if hardest else Triplet)(margin, **choices).forward(scores, positives)
