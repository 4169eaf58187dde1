"""The learning rate at any step, from the recipe alone: nothing to save, nothing to restore."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from diptych.training.sections import Stage

__all__ = ["Segment", "learning_rate", "segment_of"]


@dataclass(frozen=True)
class Segment:
    """A stage and the epoch it begins with, all stages counted from 0."""

    stage: Stage
    first_epoch: int


def segment_of(stages: Sequence[Stage], epoch: int) -> Segment:
    """The stage that epoch ``epoch`` belongs to."""
    first = 0
    for stage in stages:
        if epoch < first + stage.epochs:
            return Segment(stage, first)
        first += stage.epochs
    raise IndexError(f"epoch {epoch} of {first}")


def learning_rate(stage: Stage, step: int, steps_per_epoch: int) -> float:
    """The learning rate of a stage's ``step``-th step, counted from 0.

    Warm-up is linear from 0 and reaches the top at step ``warmup``; ``step`` falls by ``decay`` every
    ``step_epochs`` epochs; ``cosine`` reaches ``final`` × learning rate at the stage's last step, or,
    moved once per epoch, would reach it with the epoch after the last.
    """
    if step < stage.warmup:
        return stage.learning_rate * (step + 1) / (stage.warmup + 1)
    if stage.schedule == "step":
        return stage.learning_rate * stage.decay ** (step // (steps_per_epoch * stage.step_epochs))
    if stage.schedule == "cosine" and stage.per == "epoch":
        return _cosine(stage, step // steps_per_epoch / stage.epochs)
    if stage.schedule == "cosine":
        last = stage.epochs * steps_per_epoch - 1
        return _cosine(stage, min(1.0, (step - stage.warmup) / max(1, last - stage.warmup)))
    return stage.learning_rate


def _cosine(stage: Stage, share: float) -> float:
    """Where a cosine stands after ``share`` of its way."""
    shape = (1 + math.cos(math.pi * share)) / 2
    return stage.learning_rate * (stage.final + (1 - stage.final) * shape)
