"""SigLIP: every pair on its own, as a yes-or-no question.

With logit scale t = 1/τ and bias b, and z = +1 for a positive pair and −1 for any other::

    L = −(1/|B|) Σ_i Σ_j log σ( z_ij (t·s_ij + b) )

|B| is the number of images. In a rectangular batch (k texts per image) the sum is over all of its pairs,
each counted once, and is still divided by the number of images; with texts as queries (``t2i``) by
the number of texts. Both are the published loss when there are as many of one as of the other. Pairs
do not compete, so several positives per query are nothing special, and a batch of positives alone still
teaches; it is refused all the same, because every pair would only be pulled together.

Source: Zhai et al., Sigmoid Loss for Language Image Pre-Training, ICCV 2023, Algorithm 1.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from diptych.core.errors import NumericalError, UsageError
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
    together,
)


def _checked_bias(bias: float | Tensor) -> float | Tensor:
    value = float(bias.detach()) if isinstance(bias, Tensor) else bias
    if isinstance(bias, Tensor) and not math.isfinite(value):
        raise NumericalError(f"the learned bias is {value}", "lower the learning rate")
    if not math.isfinite(value):
        raise UsageError(f"bias {value}", "give a finite bias, such as -10")
    return bias


def _per_query(
    scores: Tensor, positives: Tensor, temperature: float | Tensor, bias: float | Tensor
) -> Tensor:
    """(queries,) the sum over all candidates of each."""
    logits = scores / temperature + bias
    return binary_cross_entropy_with_logits(logits, positives.to(logits.dtype), reduction="none").sum(dim=1)


def siglip(
    scores: Tensor,
    positives: Tensor,
    temperature: float | Tensor = 0.1,
    bias: float | Tensor = -10.0,
    *,
    direction: Direction = "both",
    reduction: Reduction = "mean",
    compat: Compat = "none",
) -> Tensor:
    """Sigmoid loss over one score matrix.

    Args:
        scores: (n_images, n_texts) cosine scores.
        positives: (n_images, n_texts) boolean; several per row and column are allowed.
        temperature: τ = 1/t > 0, a number or a scalar tensor that is trained.
        bias: b, a number or a scalar tensor that is trained.
        direction: ``both`` and ``i2t`` sum over an image's texts, ``t2i`` over a text's images. Every
            pair counts once in each of them.
        reduction: ``mean`` (published) or ``sum`` over images, or over texts with ``t2i``; ``none``
            gives one value for each.
        compat: ``pairs`` treats other captions of an image as negatives.

    Raises:
        UsageError: τ ≤ 0, a bias that is no number, shapes that differ, a query without a positive, a
            batch without a negative.
        NumericalError: a score, or a learned τ or b, has become NaN or infinite.
    """
    checked_temperature(temperature)
    _checked_bias(bias)
    scores, positives = checked(scores, positives, compat)
    if direction not in ("both", "i2t", "t2i"):
        raise UsageError(f"direction {direction!r}", "one of 'both', 'i2t', 't2i'")
    if direction == "t2i":
        scores, positives = scores.T, positives.T
    return together([_per_query(scores, positives, temperature, bias)], reduction, "mean")


class SigLIP(Tempered):
    """Sigmoid loss with a learned or fixed temperature and bias.

    Args:
        learn_temperature: train t' = log(1/τ) with the model, without a ceiling, as the paper does.
        bias: b, or where learning starts: low, because nearly all pairs are negatives.
        learn_bias: train b with the model.

    The other options are those of the function.
    """

    ceiling = math.inf

    def __init__(
        self,
        temperature: float = 0.1,
        learn_temperature: bool = True,
        bias: float = -10.0,
        learn_bias: bool = True,
        direction: Direction = "both",
        reduction: Reduction = "mean",
        compat: Compat = "none",
    ) -> None:
        super().__init__(temperature, learn_temperature, direction, reduction, compat)
        _checked_bias(bias)
        self.bias = nn.Parameter(torch.tensor(float(bias))) if learn_bias else bias

    def forward(self, scores: Tensor, positives: Tensor, within: Within | None = None) -> Tensor:
        return siglip(scores, positives, self.temperature, self.bias, **self.choices)

    def per_query(self, scores: Tensor, positives: Tensor, within: Tensor | None = None) -> Tensor:
        """(queries,) sum over all candidates of a query."""
        scores, positives = checked(scores, positives, self.compat)
        return _per_query(scores, positives, checked_temperature(self.temperature), _checked_bias(self.bias))

    def logged(self) -> dict[str, float]:
        """The temperature and the bias, when they are learned."""
        bias = {"bias": float(self.bias.detach())} if isinstance(self.bias, Tensor) else {}
        return super().logged() | bias


OBJECTIVES.add(
    ObjectiveKind(
        "siglip",
        "every pair on its own in a sigmoid with learned temperature and bias",
        "Zhai et al. 2023",
        SigLIP,
    )
)
