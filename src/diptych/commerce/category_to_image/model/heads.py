"""ProjectionHead: an MLP of two hidden layers with GELU and layer norm (thesis ch. 7, section 7.4.2).

::

    before:  x → first → first_norm → GELU → second → second_norm → GELU → output
    after:   x → first → GELU → first_norm → second → GELU → second_norm → output

The chapter names the parts and not their order; ``before`` is ours. GELU is the exact one, x·Φ(x).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from torch import Tensor, nn
from torch.nn.functional import gelu

Normalise = Literal["before", "after"]
"""Where a hidden layer has its layer norm: before the GELU or after it."""

Keep = Callable[[int, int], Tensor]
"""Dropout of a hidden layer: (rows, width) to multipliers, 0 for what is dropped and 1/(1 − share) for the rest."""


class ProjectionHead(nn.Module):
    """g of Eq. 7.2 and 7.6; its parameters are ``first``, ``first_norm``, ``second``, ``second_norm``, ``output``."""

    def __init__(self, inputs: int, hidden: int, width: int, normalise: Normalise = "before") -> None:
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.first_norm = nn.LayerNorm(hidden)
        self.second = nn.Linear(hidden, hidden)
        self.second_norm = nn.LayerNorm(hidden)
        self.output = nn.Linear(hidden, width)
        self.normalise = normalise

    def forward(self, rows: Tensor, keep: Keep | None = None, shift: Tensor | None = None) -> Tensor:
        """(n, inputs) rows to (n, width) rows, not of unit length.

        Args:
            shift: (n, hidden) added to what ``first`` gives.
        """
        for linear, norm in ((self.first, self.first_norm), (self.second, self.second_norm)):
            rows = linear(rows)
            if shift is not None and linear is self.first:
                rows = rows + shift
            rows = gelu(norm(rows)) if self.normalise == "before" else norm(gelu(rows))
            if keep is not None:
                rows = rows * keep(*rows.shape)
        projected: Tensor = self.output(rows)
        return projected
