"""One optimisation step of a head: loss, gradients, AdamW, in mixed precision where the device has it."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from diptych.core.errors import UsageError
from diptych.objectives.similarity import similarity_of
from diptych.sparse.fused import Fused
from diptych.sparse.head import HeadPair, SparseHeads
from diptych.sparse.options import LossOptions, SparsifyOptions
from diptych.sparse.pairs import PairBatch


def rate_share(step: int, steps: int, warmup: int) -> float:
    """The share of its top that a learning rate has at a step counted from 0.

    It rises linearly and is 1 at step ``warmup``; from there it falls linearly, and would be 0 at
    ``steps``, the step after the last.
    """
    if step < warmup:
        return (step + 1) / (warmup + 1)
    return (steps - step) / (steps - warmup)


# The distillation loss: sparse scores learn the distributions that dense scores give, both ways.
#
# Targets are soft-maxes of dense scores at a temperature and have no gradient; sparse scores are plain
# inner products, not scaled. Sparsity comes from a regulariser whose weight rises quadratically.
#
# Source: Nguyen et al. 2024, Eq. 7; its published code takes means where the equation has sums, and nats
# where it has bits.


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


Precision = Literal["float32", "bfloat16", "float16"]

_ADAM_EPS = 1e-8


def chosen_precision(asked: Literal["auto"] | Precision, device: torch.device) -> Precision:
    """What matrix products are computed in; ``auto``: bfloat16 where the device has it in hardware."""
    if asked == "float16" and device.type != "cuda":
        raise UsageError(f"training.precision = float16 on {device.type}", "use bfloat16 or float32")
    if asked != "auto":
        return asked
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    # PyTorch tells only in private whether a processor multiplies bfloat16; without, it is emulated, slowly.
    has = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return "bfloat16" if device.type == "cpu" and has is not None and has() else "float32"


class SparsifyStep:
    """Takes a batch to gradients and weights a step on."""

    def __init__(
        self,
        heads: SparseHeads,
        options: SparsifyOptions,
        similarity: str,
        device: torch.device,
        precision: Precision,
        steps: int,
    ) -> None:
        self.heads = heads
        self.steps = steps
        self._loss, training = options.loss, options.training
        self._similarity = similarity_of(similarity)
        self.fused = Fused(
            self._loss.regulariser, dtype=getattr(torch, precision), compiled=training.compiled
        )
        self.scaler = torch.amp.GradScaler(device.type, enabled=precision == "float16")
        both = [heads.image, heads.text] if isinstance(heads, HeadPair) else [heads]
        groups = [
            (training.projection_learning_rate, [p for one in both for p in one.proj.parameters()]),
            (
                training.learning_rate,
                [
                    p
                    for one in both
                    for part in (one.vocab_layer_norm, one.vocab_projector)
                    for p in part.parameters()
                ],
            ),
        ]
        self.optimizer = torch.optim.AdamW(
            [{"params": parameters, "lr": rate, "top": rate} for rate, parameters in groups],
            eps=_ADAM_EPS,
            weight_decay=training.weight_decay,
            fused=device.type in ("cpu", "cuda"),
        )
        self._rate_warmup = round(training.warmup * steps)
        self._penalty_warmup = round(self._loss.warmup * steps)

    def __call__(self, batch: PairBatch, allowed: Tensor | None, step: int) -> Tensor:
        """Do step ``step``, counted from 0.

        Args:
            allowed: (n, |V|) which weights of captions stay; None when all do.

        Returns:
            (3,) loss, distillation in nats, regulariser without its weight (mean of both sides), still on
            the device.
        """
        share = rate_share(step, self.steps, self._rate_warmup)
        for group in self.optimizer.param_groups:
            group["lr"] = group["top"] * share
        with torch.no_grad():
            targets = soft_targets(self._similarity(batch.images, batch.texts), self._loss.temperature)
        found = self.fused(self.heads, batch.images, batch.texts, allowed)
        distillation = distillation_loss(found.scores, targets)
        loss = total_loss(
            distillation,
            found.image_penalty,
            found.text_penalty,
            self._loss,
            rise(step, self._penalty_warmup),
        )
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        self.scaler.step(self.optimizer)
        self.scaler.update()
        penalty = (found.image_penalty + found.text_penalty) / 2
        return torch.stack([loss, distillation, penalty]).detach()
