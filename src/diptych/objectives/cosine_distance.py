"""Cosine distance to fixed targets: positives are pulled together, nothing is pushed away.

A query's loss is the mean of 1 − s over its positives. It only makes sense where one side cannot move,
such as captions embedded by a finished sentence encoder: if both sides learn, everything collapses to a
point at a loss of 0.

Source: Bleeker et al., Reducing Predictive Feature Suppression in Resource-Constrained Contrastive
Image-Caption Retrieval, TMLR 2023, §5.5.
"""

from typing import Unpack

from torch import Tensor

from diptych.objectives.declaration import Directed, LossOptions, OneWay, declared
from diptych.objectives.pairs import mean_per_query


def _per_query(scores: Tensor, positives: Tensor) -> Tensor:
    """(queries,) mean over each query's positives of 1 − s."""
    queries, places = positives.nonzero(as_tuple=True)
    return mean_per_query(1 - scores[queries, places], queries, len(scores))


@declared(
    "cosine-distance",
    "1 − s of the positives, no negatives: for targets that do not learn",
    "Bleeker et al. 2023, §5.5",
)
class CosineDistance(Directed):
    """1 − s of the positives, for targets that do not learn."""

    needs_negatives = False

    def one_way(self, scores: Tensor) -> tuple[Tensor, OneWay]:
        return scores, _per_query


def cosine_distance(scores: Tensor, positives: Tensor, **choices: Unpack[LossOptions]) -> Tensor:
    """1 − s of the positives of one score matrix; the negatives are not looked at."""
    return CosineDistance(**choices).forward(scores, positives)
