"""The distillation loss: sparse scores learn the distributions that dense scores give, both ways.

Targets are soft-maxes of dense scores at a temperature and have no gradient; sparse scores are plain
inner products, not scaled. Sparsity comes from a regulariser whose weight rises quadratically.

Source: Nguyen et al. 2024, Eq. 7; its published code takes means where the equation has sums, and nats
where it has bits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from diptych.sparse.options import LossOptions


def rate_share(step: int, steps: int, warmup: int) -> float:
    """The share of its top that a learning rate has at a step counted from 0.

    It rises linearly and is 1 at step ``warmup``; from there it falls linearly, and would be 0 at
    ``steps``, the step after the last.
    """
    if step < warmup:
        return (step + 1) / (warmup + 1)
    return (steps - step) / (steps - warmup)


class Targets(NamedTuple):
    """Distributions of dense scores.

    Attributes:
        i2t: (n, n), of each picture over the captions.
        t2i: (n, n), of each caption over the pictures.
    """

    i2t: Tensor
    t2i: Tensor


@torch.no_grad()
def soft_targets(scores: Tensor, temperature: float) -> Targets:
    """What the sparse scores are to say.

    Args:
        scores: (n, n) dense scores, pictures as rows, captions as columns.
    """
    scaled = scores / temperature
    return Targets(torch.softmax(scaled, dim=1), torch.softmax(scaled.T, dim=1))


def distillation_loss(scores: Tensor, targets: Targets) -> Tensor:
    """Cross-entropy in nats, the mean over queries and over both directions.

    Args:
        scores: (n, n) sparse scores, pictures as rows, captions as columns.
    """
    i2t = functional.cross_entropy(scores, targets.i2t)
    return (i2t + functional.cross_entropy(scores.T, targets.t2i)) / 2


def l1_penalty(weights: Tensor) -> Tensor:
    """The mean over rows of the sum of a row's weights; weights are not negative."""
    return weights.sum(dim=1).mean()


def flops_penalty(weights: Tensor) -> Tensor:
    """The sum over terms of the squared mean weight (Paria et al. 2020)."""
    return weights.mean(dim=0).square().sum()


def rise(step: int, steps: float) -> float:
    """The share of its weight that a regulariser has at a step counted from 0: quadratic, 1 from ``steps``."""
    return 1.0 if step >= steps else (step / steps) ** 2


def total_loss(
    distillation: Tensor, image_penalty: Tensor, text_penalty: Tensor, options: LossOptions, share: float
) -> Tensor:
    """Distillation and regulariser together."""
    penalty = options.eta * share * (image_penalty + text_penalty)
    if options.weight is None:
        return distillation + penalty / 2
    bits = distillation * (2 / math.log(2))
    return (1 - options.weight) * bits + options.weight * penalty
