"""Triplet losses: every negative that comes closer than the margin, or only the hardest one.

For a query q and one of its positives p, with margin α and [x]₊ = max(0, x)::

    sum of hinges     Σ_{n ∈ N} [α − s_qp + s_qn]₊
    hardest negative  [α − s_qp + max_{n ∈ N} s_qn]₊

A query without negatives has a loss and a gradient of 0; so has a triplet exactly at the margin.

The default reduction is the sum over all (query, positive) pairs and both directions, as Faghri et
al. define and train it (VSE++, BMVC 2018, Eq. 4–6): averaging the hardest form from the start lets
all embeddings collapse to a point, unless the learning rate is small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from diptych.objectives.declaration import (
    OBJECTIVES,
    Compat,
    Directed,
    Direction,
    ObjectiveKind,
    Reduction,
    Within,
    checked,
    in_directions,
    not_negative,
    together,
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


def _pairs(scores: Tensor, positives: Tensor, margin: float, hardest: bool) -> Tensor:
    """(pairs,) the loss of each (query, positive), row by row."""
    if not hardest:
        return pair_losses(_Hinges(margin), scores, positives)
    queries, places = positives.nonzero(as_tuple=True)
    negatives = scores.masked_fill(positives, -math.inf).max(dim=1).values
    return (margin + negatives[queries] - scores[queries, places]).relu()


def triplet(
    scores: Tensor,
    positives: Tensor,
    margin: float = 0.2,
    *,
    hardest: bool = False,
    direction: Direction = "both",
    reduction: Reduction = "sum",
    compat: Compat = "none",
) -> Tensor:
    """Triplet loss over one score matrix, without a list of triplets.

    Args:
        scores: (n_images, n_texts).
        positives: (n_images, n_texts) boolean; several per row and column are allowed.
        margin: α ≥ 0.
        hardest: count only each query's hardest negative.
        direction: ``both`` adds image→text and text→image.
        reduction: ``sum`` (published) or ``mean`` over (query, positive) pairs of each direction;
            ``none`` gives one value per pair, image queries first.
        compat: ``pairs`` treats other captions of an image as negatives, as published.

    Raises:
        UsageError: α < 0, shapes that differ, a query without a positive, a batch without a negative;
            on the way back, a second derivative (``create_graph``) of the sum of hinges.
        NumericalError: a score is NaN or infinite.
    """
    not_negative("margin", margin, 0.2)
    scores, positives = checked(scores, positives, compat)
    losses = in_directions(lambda s, p: _pairs(s, p, margin, hardest), scores, positives, direction)
    return together(losses, reduction, "sum")


class Triplet(Directed):
    """Sum of hinges over all in-batch negatives. Options are those of the function."""

    hardest = False

    def __init__(
        self,
        margin: float = 0.2,
        direction: Direction = "both",
        reduction: Reduction = "sum",
        compat: Compat = "none",
    ) -> None:
        super().__init__(direction, reduction, compat)
        self.margin = not_negative("margin", margin, 0.2)

    def forward(self, scores: Tensor, positives: Tensor, within: Within | None = None) -> Tensor:
        return triplet(scores, positives, self.margin, hardest=self.hardest, **self.choices)

    def per_query(self, scores: Tensor, positives: Tensor, within: Tensor | None = None) -> Tensor:
        """(queries,) sum over a query's positives."""
        scores, positives = checked(scores, positives, self.compat)
        queries = positives.nonzero(as_tuple=True)[0]
        pairs = _pairs(scores, positives, self.margin, self.hardest)
        return sum_per_query(pairs, queries, len(scores))


class TripletHardest(Triplet):
    """Only the hardest in-batch negative of each query (Triplet SH); options as :class:`Triplet`."""

    hardest = True


OBJECTIVES.add(
    ObjectiveKind(
        "triplet",
        "sum of hinges over all in-batch negatives",
        "Kiros et al. 2014; Faghri et al. 2018, Eq. 4",
        Triplet,
    )
)
OBJECTIVES.add(
    ObjectiveKind(
        "triplet-hardest",
        "hinge of the hardest in-batch negative (VSE++, Triplet SH)",
        "Faghri et al. 2018, Eq. 6",
        TripletHardest,
    )
)
