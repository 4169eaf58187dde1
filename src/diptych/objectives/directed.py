"""What nearly every objective carries: a direction, a reduction, and which compat."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from diptych.core.errors import UsageError
from diptych.objectives.declaration import Compat, Direction, Objective, Reduction, reduce


def not_negative(name: str, value: float, example: float) -> float:
    """``value``, after seeing that it is a finite number of at least 0.

    Raises:
        UsageError: it is not; the message names it.
    """
    if not 0 <= value < float("inf"):
        raise UsageError(f"{name} {value}", f"give a {name} of at least 0, such as {example}")
    return value


def together(losses: list[Tensor], reduction: Reduction, directions: Literal["mean", "sum"]) -> Tensor:
    """Values of one or both directions as one loss.

    Args:
        losses: values of each direction, image queries first.
        reduction: within a direction; ``none`` keeps the values, one direction after the other.
        directions: whether the directions are averaged or added.
    """
    if reduction == "none":
        return torch.cat(losses)
    reduced = torch.stack([reduce(loss, reduction) for loss in losses])
    return reduced.mean() if directions == "mean" else reduced.sum()


class Directed(Objective):
    """An objective with a direction and a reduction; refuses those there are not, and a strange compat.

    Args:
        direction: ``both``, ``i2t`` or ``t2i``.
        reduction: ``mean`` or ``sum``.
        compat: one of ``compats``; seen to be one, and kept by the class whose it is.

    Raises:
        UsageError: a choice there is not.
    """

    compats: tuple[str, ...] = get_args(Compat)

    def __init__(self, direction: Direction, reduction: Reduction, compat: str) -> None:
        super().__init__()
        for what, value, known in (
            ("direction", direction, get_args(Direction)),
            ("reduction", reduction, ("mean", "sum")),
            ("compat", compat, self.compats),
        ):
            if value not in known:
                raise UsageError(f"{what} {value!r}", f"one of {', '.join(map(repr, known))}")
        self.direction = direction
        self.reduction = reduction
