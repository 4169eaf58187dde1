"""Temperatures: what they may be, and how one is learned."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from diptych.core.errors import NumericalError, UsageError
from diptych.objectives.declaration import Direction, Reduction
from diptych.objectives.directed import Directed


def checked_temperature(temperature: float | Tensor) -> float | Tensor:
    """``temperature``, after seeing that it is finite and above 0.

    Raises:
        UsageError: τ ≤ 0, or a given τ that is no number.
        NumericalError: a learned τ has become NaN or infinite.
    """
    value = float(temperature.detach()) if isinstance(temperature, Tensor) else temperature
    if isinstance(temperature, Tensor) and not math.isfinite(value):
        raise NumericalError(f"the learned temperature is {value}", "lower the learning rate")
    if not (value > 0 and math.isfinite(value)):
        raise UsageError(f"temperature {value}", "give a temperature above 0, such as 0.07")
    return temperature


class Tempered(Directed):
    """An objective with a fixed or learned temperature.

    Args:
        temperature: τ, or where learning starts.
        learn_temperature: train log(1/τ) with the model.
        direction: ``both``, ``i2t`` or ``t2i``.
        reduction: ``mean`` or ``sum``.
        compat: one of ``compats``.

    Attributes:
        ceiling: the largest 1/τ a learned temperature may reach; beyond it, it is set back to it.
    """

    ceiling = 100.0  # as in CLIP

    def __init__(
        self,
        temperature: float,
        learn_temperature: bool,
        direction: Direction,
        reduction: Reduction,
        compat: str,
    ) -> None:
        super().__init__(direction, reduction, compat)
        checked_temperature(temperature)
        self._fixed = temperature
        self.log_scale = nn.Parameter(torch.tensor(-math.log(temperature))) if learn_temperature else None

    @property
    def temperature(self) -> float | Tensor:
        """τ, a number or the scalar tensor that is learned."""
        if self.log_scale is None:
            return self._fixed
        # Projected, as CLIP does after every step: a clamp in the graph has no gradient above the
        # ceiling, and a scale that once went beyond it would stay there.
        with torch.no_grad():
            self.log_scale.clamp_(max=math.log(self.ceiling))
        return torch.exp(-self.log_scale)

    def logged(self) -> dict[str, float]:
        """The temperature, when it is learned."""
        temperature = self.temperature
        return {"temperature": float(temperature.detach())} if isinstance(temperature, Tensor) else {}
