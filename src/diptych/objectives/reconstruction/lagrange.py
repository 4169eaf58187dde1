"""The Lagrange multiplier of a reconstruction constraint, raised by gradient ascent.

Minimising L_con subject to L_rec ≤ η is the saddle point (Eq. 8 and 9)::

    max_{λ ≥ 0} min_θ  L_con + λ (L_rec / η − 1)

θ descends as ever; λ ascends by SGD with momentum μ and dampening δ on its own gradient
g = L_rec / η − 1, with learning rate α. The first step is not dampened, as in PyTorch::

    v ← μ v + (1 − δ) g        λ ← λ + α v

λ is kept in [0, highest] by projection after each step. The velocity v that pushed it against a
bound is set to zero there: what it still holds would only push further out. Kept, it would hold λ
at 0 while the constraint is already broken, for as many steps as it takes v to change sign.

The published code clamps λ where it is used and not where it is kept. While the constraint is met
the kept value goes on falling below zero, and when the constraint is broken again λ stays 0 until
the kept value has come all the way back. ``compat="unprojected"`` is that wind-up.

Source: Bleeker, Yates, de Rijke, Keep the Caption Information, 2022; Platt and Barr, Constrained
Differential Optimization, 1987, for the method.
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from diptych.core.errors import NumericalError, StorageError, UsageError


class LagrangeMultiplier(nn.Module):
    """λ ≥ 0 of one constraint L_rec ≤ η.

    It has no parameters, for no optimizer of the model may touch it. Its state is three double
    precision numbers, whatever precision and device the model is moved to; the state dict carries
    them as one float64 tensor.

    Args:
        bound: η > 0.
        start: λ before the first step.
        learning_rate: α > 0 of the ascent.
        momentum: μ in [0, 1).
        dampening: δ in [0, 1]; without momentum there is none, as in PyTorch.
        highest: λ stays in [0, highest].
        compat: ``unprojected`` clamps λ where it is used but not where it is kept, as published.
    """

    def __init__(
        self,
        bound: float,
        start: float = 1.0,
        learning_rate: float = 5e-3,
        momentum: float = 0.9,
        dampening: float = 0.9,
        highest: float = 100.0,
        compat: Literal["none", "unprojected"] = "none",
    ) -> None:
        super().__init__()
        for name, value, inside, expected in (
            (
                "constraint's bound η",
                bound,
                0 < bound < math.inf,
                "a bound above 0, such as 0.2 for 1 − cosine",
            ),
            (
                "multiplier's learning rate",
                learning_rate,
                0 < learning_rate < math.inf,
                "one above 0, such as 5e-3",
            ),
            ("multiplier's momentum", momentum, 0 <= momentum < 1, "one in [0, 1), such as 0.9"),
            ("multiplier's dampening", dampening, 0 <= dampening <= 1, "one in [0, 1], such as 0.9"),
            ("multiplier's highest value", highest, highest > 0, "one above 0, such as 100"),
        ):
            if not inside:
                raise UsageError(f"the {name} is {value}", f"give {expected}")
        if not (0 <= start <= highest and math.isfinite(start)):
            raise UsageError(
                f"the multiplier starts at {start}, outside [0, {highest}]", "start inside, such as at 1"
            )
        if compat not in ("none", "unprojected"):
            raise UsageError(f"compat {compat!r}", "'none', or 'unprojected' as published")
        self.bound = bound
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.dampening = dampening
        self.highest = highest
        self.compat = compat
        self.raw = float(start)  # λ as it is kept; outside [0, highest] only with compat="unprojected"
        self.velocity = 0.0  # v, in the direction of ascent (PyTorch's momentum buffer holds −v)
        self._stepped = False

    @property
    def value(self) -> float:
        """λ as the loss uses it, in [0, highest]."""
        return min(max(self.raw, 0.0), self.highest)

    def term(self, loss: Tensor) -> Tensor:
        """λ (L_rec / η − 1) with λ as a constant, to be added to the loss that is minimised."""
        return self.value * (loss / self.bound - 1)

    def ascend(self, loss: float) -> None:
        """One step of λ, after the model's."""
        if not math.isfinite(loss):
            raise NumericalError(
                f"the reconstruction loss is {loss}",
                "the model has diverged: lower the learning rate, add warm-up or clipping",
            )
        gradient = loss / self.bound - 1
        if self._stepped and self.momentum > 0:
            self.velocity = self.momentum * self.velocity + (1 - self.dampening) * gradient
        else:
            self.velocity = gradient
            self._stepped = True
        self.raw += self.learning_rate * self.velocity
        if self.compat == "none" and self.raw != self.value:
            self.raw = self.value
            self.velocity = 0.0

    def logged(self) -> dict[str, float]:
        return {"multiplier": self.value}

    def get_extra_state(self) -> Tensor:
        """(3,) float64: λ as kept, velocity, whether a step was made."""
        return torch.tensor([self.raw, self.velocity, float(self._stepped)], dtype=torch.float64)

    def set_extra_state(self, state: Tensor) -> None:
        if state.shape != (3,) or state.dtype != torch.float64 or not bool(torch.isfinite(state).all()):
            raise StorageError(
                f"a multiplier's state is three finite float64 numbers, got {state.tolist()} ({state.dtype})",
                "the checkpoint is of another version or corrupt: start the run again",
            )
        raw, velocity, stepped = state.tolist()
        self.raw, self.velocity, self._stepped = raw, velocity, bool(stepped)
