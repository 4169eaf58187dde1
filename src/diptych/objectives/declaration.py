"""What every objective is: a pure function of scores and positives, and a small class around it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from diptych.core.errors import RecipeError, UsageError
from diptych.core.registry import Registry

__all__ = [
    "OBJECTIVES",
    "Compat",
    "Direction",
    "Objective",
    "ObjectiveKind",
    "Reduction",
    "checked",
    "in_directions",
    "reduce",
]

Direction = Literal["both", "i2t", "t2i"]
Reduction = Literal["mean", "sum", "none"]
Compat = Literal["none", "pairs"]


class Objective(nn.Module):
    """A loss over one score matrix, carrying its hyper-parameters.

    Called with ``scores`` (n_images, n_texts) and ``positives``, a boolean matrix of the same shape,
    it gives a scalar. A parameter of it (a learned temperature) is trained with the model.
    """

    def forward(self, scores: Tensor, positives: Tensor) -> Tensor:
        """The loss, a scalar."""
        raise NotImplementedError

    def logged(self) -> dict[str, float]:
        """What is worth a line in the metrics besides the loss (a learned temperature)."""
        return {}


@dataclass(frozen=True)
class ObjectiveKind:
    """An objective in the registry.

    Attributes:
        name: what a recipe calls it.
        description: one line.
        citation: where it is defined.
        build: the class; its keyword arguments are the hyper-parameters.
    """

    name: str
    description: str
    citation: str
    build: Callable[..., Objective]

    @property
    def options(self) -> dict[str, Any]:
        """Hyper-parameters and their defaults."""
        parameters = inspect.signature(self.build).parameters
        return {name: parameter.default for name, parameter in parameters.items()}

    def __call__(self, **options: Any) -> Objective:
        """Build it.

        Raises:
            RecipeError: an option it does not have; the message lists those it has.
        """
        for name in options:
            if name not in self.options:
                known = ", ".join(f"{key}={default!r}" for key, default in self.options.items())
                raise RecipeError(f"objective {self.name!r} has no option {name!r}", f"its options: {known}")
        return self.build(**options)


OBJECTIVES: Registry[ObjectiveKind] = Registry("objective", "diptych.objectives")


def checked(scores: Tensor, positives: Tensor, compat: Compat = "none") -> tuple[Tensor, Tensor]:
    """Scores and positives, after seeing that they make sense, and as ``compat`` wants them.

    With ``compat="pairs"`` every positive pair becomes a row and a column of its own, and all other
    pairs are negatives, those of the same image too: what published code does when it puts
    (image, caption) pairs in a batch without looking whether an image is there twice.

    Raises:
        UsageError: shapes that differ, or an image or caption without a positive in the batch.
    """
    if scores.shape != positives.shape or scores.dim() != 2:
        raise UsageError(
            f"scores have shape {tuple(scores.shape)}, positives {tuple(positives.shape)}",
            "both are (n_images, n_texts)",
        )
    if positives.dtype != torch.bool:
        raise UsageError(f"positives are {positives.dtype}", "give a boolean matrix")
    if compat not in ("none", "pairs"):
        raise UsageError(f"compat {compat!r}", "'none', or 'pairs' as published")
    for side, dimension in (("image", 1), ("text", 0)):
        covered = positives.any(dim=dimension)
        if not bool(covered.all()):
            row = int((~covered).nonzero()[0])
            raise UsageError(f"{side} {row} of the batch has no positive", "leave it out of the batch")
    if compat == "pairs":
        images, texts = positives.nonzero(as_tuple=True)
        scores = scores[images][:, texts]
        positives = torch.eye(len(images), dtype=torch.bool, device=scores.device)
    return scores, positives


def reduce(values: Tensor, reduction: Reduction) -> Tensor:
    """Mean, sum, or the values themselves."""
    if reduction == "mean":
        return values.mean()
    if reduction == "sum":
        return values.sum()
    if reduction == "none":
        return values
    raise UsageError(f"reduction {reduction!r}", "one of 'mean', 'sum', 'none'")


def in_directions(
    one_direction: Callable[[Tensor, Tensor], Tensor],
    scores: Tensor,
    positives: Tensor,
    direction: Direction,
) -> list[Tensor]:
    """``one_direction`` applied to images as queries, texts as queries, or both."""
    if direction not in ("both", "i2t", "t2i"):
        raise UsageError(f"direction {direction!r}", "one of 'both', 'i2t', 't2i'")
    losses = []
    if direction in ("both", "i2t"):
        losses.append(one_direction(scores, positives))
    if direction in ("both", "t2i"):
        losses.append(one_direction(scores.T, positives.T))
    return losses
