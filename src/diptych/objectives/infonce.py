"""InfoNCE and NT-Xent: each positive against all negatives, as a soft-max over cosine scores.

For a query q, a positive p and its negatives N, with temperature τ::

    ℓ(q, p) = −log( exp(s_qp/τ) / (exp(s_qp/τ) + Σ_{n ∈ N} exp(s_qn/τ)) )

Other positives of q are in neither sum. A query's loss is the mean over its positives; a query for
which everything in the batch is positive has a loss and a gradient of 0. NT-Xent between modalities is
the same function; it has its own name and the temperature it was studied with, 0.1.

Sources: van den Oord et al., Representation Learning with Contrastive Predictive Coding, 2018;
Radford et al., Learning Transferable Visual Models (CLIP), 2021, for the symmetric form; Bleeker and
de Rijke, Do Lessons from Metric Learning Generalize to Image-Caption Retrieval?, ECIR 2022, Eq. 4.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from diptych.objectives.declaration import (
    OBJECTIVES,
    Compat,
    Direction,
    ObjectiveKind,
    Reduction,
    Tempered,
    Within,
    checked,
    checked_temperature,
    in_directions,
    together,
)
from diptych.objectives.pairs import mean_per_query


def log_sum_of_negatives(logits: Tensor, others: Tensor) -> Tensor:
    """(queries,) log Σ exp over each row's negatives: the candidates that ``others`` does not mark."""
    # The lowest finite number, not −inf: a query without negatives then has a loss of 0 and a
    # gradient of 0 instead of NaN.
    return logits.masked_fill(others, torch.finfo(logits.dtype).min).logsumexp(dim=1)


def softmax_per_query(logits: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
    """(queries,) mean over each query's positives of −log p(positive against its negatives)."""
    queries, places = positives.nonzero(as_tuple=True)
    pairs = -logsigmoid(logits[queries, places] - negatives[queries])
    return mean_per_query(pairs, queries, len(logits))


def infonce_per_query(logits: Tensor, positives: Tensor) -> Tensor:
    """(queries,) InfoNCE of each row of ``logits``, scores divided by τ."""
    return softmax_per_query(logits, positives, log_sum_of_negatives(logits, positives))


def infonce(
    scores: Tensor,
    positives: Tensor,
    temperature: float | Tensor = 0.07,
    *,
    direction: Direction = "both",
    reduction: Reduction = "mean",
    compat: Compat = "none",
) -> Tensor:
    """InfoNCE over one score matrix.

    Args:
        scores: (n_images, n_texts) cosine scores.
        positives: (n_images, n_texts) boolean; several per row and column are allowed.
        temperature: τ > 0, a number or a scalar tensor that is trained.
        direction: ``both`` averages image→text and text→image.
        reduction: ``mean`` or ``sum`` over queries; ``none`` gives one value per query, image
            queries first, not halved.
        compat: ``pairs`` treats other captions of an image as negatives, as published.

    Raises:
        UsageError: τ ≤ 0, shapes that differ, a query without a positive, a batch without a negative.
        NumericalError: a score or a learned τ has become NaN or infinite.
    """
    checked_temperature(temperature)
    scores, positives = checked(scores, positives, compat)
    losses = in_directions(infonce_per_query, scores / temperature, positives, direction)
    return together(losses, reduction, "mean")


class InfoNCE(Tempered):
    """InfoNCE with a fixed or learned temperature.

    Args:
        learn_temperature: train log(1/τ) with the model; 1/τ is capped at 100, as in CLIP.

    The other options are those of the function.
    """

    def __init__(
        self,
        temperature: float = 0.07,
        learn_temperature: bool = False,
        direction: Direction = "both",
        reduction: Reduction = "mean",
        compat: Compat = "none",
    ) -> None:
        super().__init__(temperature, learn_temperature, direction, reduction, compat)

    def forward(self, scores: Tensor, positives: Tensor, within: Within | None = None) -> Tensor:
        return infonce(scores, positives, self.temperature, **self.choices)

    def per_query(self, scores: Tensor, positives: Tensor, within: Tensor | None = None) -> Tensor:
        """(queries,) mean over a query's positives."""
        scores, positives = checked(scores, positives, self.compat)
        return infonce_per_query(scores / checked_temperature(self.temperature), positives)


class NTXent(InfoNCE):
    """NT-Xent between modalities: InfoNCE at τ = 0.1; options as :class:`InfoNCE`."""

    def __init__(
        self,
        temperature: float = 0.1,
        learn_temperature: bool = False,
        direction: Direction = "both",
        reduction: Reduction = "mean",
        compat: Compat = "none",
    ) -> None:
        super().__init__(temperature, learn_temperature, direction, reduction, compat)


OBJECTIVES.add(
    ObjectiveKind(
        "infonce",
        "each positive against all negatives in a soft-max at temperature τ",
        "van den Oord et al. 2018; Radford et al. 2021",
        InfoNCE,
    )
)
OBJECTIVES.add(
    ObjectiveKind(
        "nt-xent",
        "InfoNCE at τ = 0.1, as in the comparison of metric-learning losses",
        "Chen et al. 2020; Bleeker and de Rijke 2022, Eq. 4",
        NTXent,
    )
)
