"""Triplet losses: every negative that comes closer than the margin, or only the hardest one.

For a query q and one of its positives p, with margin α and [x]₊ = max(0, x)::

    sum of hinges     Σ_{n ∈ N} [α − s_qp + s_qn]₊
    hardest negative  [α − s_qp + max_{n ∈ N} s_qn]₊

The default reduction is the sum over all (query, positive) pairs and both directions, as Faghri et
al. define and train it (VSE++, BMVC 2018, Eq. 4–6): averaging the hardest form from the start lets
all embeddings collapse to a point, unless the learning rate is small.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from diptych.core.errors import UsageError
from diptych.objectives.declaration import (
    OBJECTIVES,
    Compat,
    Direction,
    Objective,
    ObjectiveKind,
    Reduction,
    checked,
    in_directions,
    reduce,
)

__all__ = ["Triplet", "TripletHardest", "triplet"]


def _sum_of_hinges(scores: Tensor, positives: Tensor, margin: float) -> Tensor:
    """(pairs,) for each (query, positive) the sum over that query's negatives."""
    queries, _ = positives.nonzero(as_tuple=True)
    hinges = (margin + scores[queries] - scores[positives][:, None]).clamp(min=0)
    return hinges.masked_fill(positives[queries], 0.0).sum(dim=1)


def _hardest(scores: Tensor, positives: Tensor, margin: float) -> Tensor:
    """(pairs,) for each (query, positive) the hinge of that query's hardest negative."""
    queries, _ = positives.nonzero(as_tuple=True)
    hardest = scores.masked_fill(positives, -math.inf).max(dim=1).values
    return (margin + hardest[queries] - scores[positives]).clamp(min=0)


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
        UsageError: α < 0, shapes that differ, a query without a positive.
    """
    if not margin >= 0:
        raise UsageError(f"margin {margin}", "give a margin of at least 0, such as 0.2")
    scores, positives = checked(scores, positives, compat)
    form = _hardest if hardest else _sum_of_hinges
    losses = in_directions(lambda s, p: form(s, p, margin), scores, positives, direction)
    if reduction == "none":
        return torch.cat(losses)
    return torch.stack([reduce(loss, reduction) for loss in losses]).sum()


class Triplet(Objective):
    """Sum of hinges over all in-batch negatives.

    Args:
        margin: α.
        direction: ``both``, ``i2t`` or ``t2i``.
        reduction: ``sum`` (published) or ``mean`` over (query, positive) pairs.
        compat: ``pairs`` treats other captions of an image as negatives, as published.
    """

    hardest = False

    def __init__(
        self,
        margin: float = 0.2,
        direction: Direction = "both",
        reduction: Reduction = "sum",
        compat: Compat = "none",
    ) -> None:
        super().__init__()
        if not margin >= 0:
            raise UsageError(f"margin {margin}", "give a margin of at least 0, such as 0.2")
        self.margin = margin
        self.direction = direction
        self.reduction = reduction
        self.compat = compat

    def forward(self, scores: Tensor, positives: Tensor) -> Tensor:
        """The loss, a scalar."""
        return triplet(
            scores,
            positives,
            self.margin,
            hardest=self.hardest,
            direction=self.direction,
            reduction=self.reduction,
            compat=self.compat,
        )


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
