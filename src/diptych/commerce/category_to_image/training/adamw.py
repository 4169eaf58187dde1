"""AdamW (Loshchilov and Hutter, ICLR 2019) in one pass over weights and moments.

The arithmetic is torch's own, fused. Its optimizer class is not used: for heads as small as these the class costs as
much per step as the arithmetic, and the first one of a process loads a compiler that is not used here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

_BETAS, _EPSILON = (0.9, 0.999), 1e-8


@dataclass
class AdamW:
    """AdamW with torch's usual β = (0.9, 0.999) and ε = 1e-8.

    Attributes:
        parameters: by name.
        learning_rate: of all.
        weight_decay: of all but ``undecayed``.
        undecayed: names of those without decay.
        moments: per parameter that has had a gradient: both moments and the number of its steps.
    """

    parameters: Mapping[str, nn.Parameter]
    learning_rate: float
    weight_decay: float
    undecayed: frozenset[str] = frozenset()
    moments: dict[str, tuple[Tensor, Tensor, Tensor]] = field(default_factory=dict)

    @torch.no_grad()
    def step(self) -> None:
        """Take a step along the gradients that there are, and forget them."""
        moving = [name for name, value in self.parameters.items() if value.grad is not None]
        self._step((name for name in moving if name not in self.undecayed), self.weight_decay)
        self._step((name for name in moving if name in self.undecayed), 0.0)
        for name in moving:
            self.parameters[name].grad = None

    def _step(self, names: Iterable[str], weight_decay: float) -> None:
        values: list[Tensor] = []
        gradients: list[Tensor] = []
        first: list[Tensor] = []
        second: list[Tensor] = []
        steps: list[Tensor] = []
        for name in names:
            value = self.parameters[name]
            assert value.grad is not None
            if name not in self.moments:
                zeros = torch.zeros_like(value), torch.zeros_like(value)
                self.moments[name] = (*zeros, torch.zeros((), dtype=torch.float32))
            values.append(value)
            gradients.append(value.grad)
            for to, one in zip((first, second, steps), self.moments[name], strict=True):
                to.append(one)
        if values:
            adamw(
                values,
                gradients,
                first,
                second,
                [],
                steps,
                foreach=False,
                fused=True,
                amsgrad=False,
                beta1=_BETAS[0],
                beta2=_BETAS[1],
                lr=self.learning_rate,
                weight_decay=weight_decay,
                eps=_EPSILON,
                maximize=False,
            )

    def state(self) -> dict[str, Tensor]:
        """Everything to go on from, by name."""
        return {
            f"{name}|{kind}": value
            for name, moments in self.moments.items()
            for kind, value in zip(_KINDS, moments, strict=True)
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """The inverse of :meth:`state`."""
        for name in dict.fromkeys(key.rpartition("|")[0] for key in state):
            if state[f"{name}|{_KINDS[0]}"].shape != self.parameters[name].shape:
                raise KeyError(f"moments of {name} have another shape")
            first, second, steps = (state[f"{name}|{kind}"] for kind in _KINDS)
            self.moments[name] = first, second, steps


_KINDS = ("first", "second", "steps")
