"""InfoNCE: each positive against all negatives, as a soft-max over cosine scores.

For a query q, a positive p and its negatives N, with temperature τ::

    ℓ(q, p) = −log( exp(s_qp/τ) / (exp(s_qp/τ) + Σ_{n ∈ N} exp(s_qn/τ)) )

Other positives of q are in neither sum. A query's loss is the mean over its positives.

Sources: van den Oord et al., Representation Learning with Contrastive Predictive Coding, 2018;
Radford et al., Learning Transferable Visual Models (CLIP), 2021, for the symmetric form.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from diptych.core.errors import NumericalError, UsageError
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

__all__ = ["InfoNCE", "infonce"]


def _per_query(logits: Tensor, positives: Tensor) -> Tensor:
    """(queries,) mean over each query's positives of −log p(positive against its negatives)."""
    # The lowest finite number, not −inf: a query without negatives then has a loss of 0 and a
    # gradient of 0 instead of NaN.
    lowest = torch.finfo(logits.dtype).min
    negatives = logits.masked_fill(positives, lowest).logsumexp(dim=1, keepdim=True)
    pairs = torch.logaddexp(logits, negatives) - logits
    return pairs.masked_fill(~positives, 0.0).sum(dim=1) / positives.sum(dim=1)


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
        UsageError: τ ≤ 0, shapes that differ, a query without a positive.
        NumericalError: a learned τ has become NaN or infinite.
    """
    value = float(temperature.detach()) if isinstance(temperature, Tensor) else temperature
    if isinstance(temperature, Tensor) and not math.isfinite(value):
        raise NumericalError(f"the learned temperature is {value}", "lower the learning rate")
    if not (value > 0 and math.isfinite(value)):
        raise UsageError(f"temperature {value}", "give a temperature above 0, such as 0.07")
    scores, positives = checked(scores, positives, compat)
    losses = in_directions(_per_query, scores / temperature, positives, direction)
    if reduction == "none":
        return torch.cat(losses)
    return torch.stack([reduce(loss, reduction) for loss in losses]).mean()


class InfoNCE(Objective):
    """InfoNCE with a fixed or learned temperature.

    Args:
        temperature: τ, or where learning starts.
        learn_temperature: train log(1/τ) with the model; 1/τ is capped at 100, as in CLIP.
        direction: ``both``, ``i2t`` or ``t2i``.
        reduction: ``mean`` or ``sum`` over queries.
        compat: ``pairs`` treats other captions of an image as negatives, as published.
    """

    def __init__(
        self,
        temperature: float = 0.07,
        learn_temperature: bool = False,
        direction: Direction = "both",
        reduction: Reduction = "mean",
        compat: Compat = "none",
    ) -> None:
        super().__init__()
        if not (temperature > 0 and math.isfinite(temperature)):
            raise UsageError(f"temperature {temperature}", "give a temperature above 0, such as 0.07")
        self._fixed = temperature
        self.log_scale = nn.Parameter(torch.tensor(-math.log(temperature))) if learn_temperature else None
        self.direction = direction
        self.reduction = reduction
        self.compat = compat

    @property
    def temperature(self) -> float | Tensor:
        """τ, a number or the scalar tensor that is learned."""
        if self.log_scale is None:
            return self._fixed
        return torch.exp(-self.log_scale.clamp(max=math.log(100.0)))

    def forward(self, scores: Tensor, positives: Tensor) -> Tensor:
        """The loss, a scalar."""
        return infonce(
            scores,
            positives,
            self.temperature,
            direction=self.direction,
            reduction=self.reduction,
            compat=self.compat,
        )

    def logged(self) -> dict[str, float]:
        """The temperature, when it is learned."""
        return {} if self.log_scale is None else {"temperature": float(self.temperature.detach())}  # type: ignore[union-attr]


OBJECTIVES.add(
    ObjectiveKind(
        "infonce",
        "each positive against all negatives in a soft-max at temperature τ",
        "van den Oord et al. 2018; Radford et al. 2021",
        InfoNCE,
    )
)
