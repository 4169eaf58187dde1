"""Cosine distance to fixed targets: positives are pulled together, nothing is pushed away.

A query's loss is the mean of 1 − s over its positives. It only makes sense where one side cannot move,
such as captions embedded by a finished sentence encoder: if both sides learn, everything collapses to a
point at a loss of 0.

Source: Bleeker et al., Reducing Predictive Feature Suppression in Resource-Constrained Contrastive
Image-Caption Retrieval, TMLR 2023, §5.5.
"""

from __future__ import annotations

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
    together,
)
from diptych.objectives.pairs import mean_per_query


def _per_query(scores: Tensor, positives: Tensor) -> Tensor:
    """(queries,) mean over each query's positives of 1 − s."""
    queries, places = positives.nonzero(as_tuple=True)
    return mean_per_query(1 - scores[queries, places], queries, len(scores))


def cosine_distance(
    scores: Tensor,
    positives: Tensor,
    *,
    direction: Direction = "both",
    reduction: Reduction = "mean",
    compat: Compat = "none",
) -> Tensor:
    """1 − s of the positives of one score matrix; the negatives are not looked at.

    Args:
        scores: (n_images, n_texts) cosine scores.
        positives: (n_images, n_texts) boolean; several per row and column are allowed.
        direction: ``both`` averages image→text and text→image.
        reduction: ``mean`` or ``sum`` over queries; ``none`` gives one value per query, image
            queries first, not halved.
        compat: ``pairs`` makes every positive pair a query of its own, as published.

    Raises:
        UsageError: shapes that differ, a query without a positive.
        NumericalError: a score is NaN or infinite.
    """
    scores, positives = checked(scores, positives, compat, needs_negatives=False)
    return together(in_directions(_per_query, scores, positives, direction), reduction, "mean")


class CosineDistance(Directed):
    """1 − s of the positives, for targets that do not learn. Options are those of the function."""

    needs_negatives = False

    def __init__(
        self,
        direction: Direction = "both",
        reduction: Reduction = "mean",
        compat: Compat = "none",
    ) -> None:
        super().__init__(direction, reduction, compat)

    def forward(self, scores: Tensor, positives: Tensor, within: Within | None = None) -> Tensor:
        return cosine_distance(scores, positives, **self.choices)

    def per_query(self, scores: Tensor, positives: Tensor, within: Tensor | None = None) -> Tensor:
        """(queries,) mean over a query's positives."""
        return _per_query(*checked(scores, positives, self.compat, needs_negatives=False))


OBJECTIVES.add(
    ObjectiveKind(
        "cosine-distance",
        "1 − s of the positives, no negatives: for targets that do not learn",
        "Bleeker et al. 2023, §5.5",
        CosineDistance,
    )
)
