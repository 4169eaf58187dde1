"""One optimisation step of a head: loss, gradients, AdamW, in mixed precision where the device has it."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from diptych.core.errors import UsageError
from diptych.objectives.similarity import similarity_of
from diptych.sparse.distillation import distillation_loss, rise, soft_targets, total_loss
from diptych.sparse.fused import Fused
from diptych.sparse.head import HeadPair, SparseHeads
from diptych.sparse.options import SparsifyOptions
from diptych.sparse.pairs import PairBatch
from diptych.sparse.schedule import rate_share

__all__ = ["Precision", "SparsifyStep", "chosen_precision"]

Precision = Literal["float32", "bfloat16", "float16"]

_ADAM_EPS = 1e-8


def chosen_precision(asked: Literal["auto"] | Precision, device: torch.device) -> Precision:
    """What matrix products are computed in; ``auto``: bfloat16 where the device has it in hardware.

    Raises:
        UsageError: float16 on a processor, where gradients would vanish.
    """
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
    """Takes a batch to gradients and weights a step on.

    Args:
        heads: one head or two, on ``device``.
        options: loss and optimisation.
        similarity: how dense rows are compared.
        device: where it is computed.
        precision: see :func:`chosen_precision`.
        steps: of the whole training.
    """

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
            batch: pairs.
            allowed: (n, |V|) which weights of captions stay; None when all do.
            step: which it is.

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
