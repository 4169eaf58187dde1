"""Stochastic weight averaging: the mean of the weights at several steps near an epoch's end.

Training continues from the mean, and validation sees the mean, as in paper 000 in every epoch with
its InfoNCE rows. The mean's batch-norm statistics are those of no model that was ever run, so they are
computed anew unless the recipe says not to.

Sources: Izmailov et al., Averaging Weights Leads to Wider Optima, UAI 2018; Bleeker, Yates and de Rijke
2022, section 4.
"""

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from diptych.core.errors import RecipeError
from diptych.training.sections import Averaging


def averaged_steps(steps_per_epoch: int, averaging: Averaging) -> list[int]:
    """Return the steps of an epoch, counted from 1, after which weights enter the mean."""
    spacing = _spacing(steps_per_epoch, averaging)
    if spacing < 1:
        needed = math.ceil(averaging.checkpoints / averaging.share - 1e-9)
        needed += _spacing(needed, averaging) < 1  # the published expression may want one more
        raise RecipeError(
            f"averaging takes {averaging.checkpoints} weights from the last {averaging.share:g} of an epoch, "
            f"which has only {steps_per_epoch} steps",
            f"use smaller batches (an epoch of at least {needed} steps), a larger averaging.share or fewer "
            "averaging.checkpoints",
        )
    if averaging.compat == "published":
        start = int((1 - averaging.share) * steps_per_epoch)
        return [step for step in range(start + 1, steps_per_epoch + 1) if step % spacing == 0]
    return [steps_per_epoch - spacing * back for back in reversed(range(averaging.checkpoints))]


def _spacing(steps_per_epoch: int, averaging: Averaging) -> int:
    """Return the steps between two weights of the mean; 0 in too short an epoch."""
    if averaging.compat == "published":
        # The published expression, kept as it is: 1 − 0.9 is not 0.1 to a computer.
        return int((1 - (1 - averaging.share)) * steps_per_epoch / averaging.checkpoints)
    # The small number: 0.29 × 100 is 28.999….
    return int(averaging.share * steps_per_epoch / averaging.checkpoints + 1e-9)


class WeightAverage:
    """The running mean of what is trained in a module; empty between epochs."""

    def __init__(self, module: nn.Module, averaging: Averaging | None, steps_per_epoch: int) -> None:
        self._module = module
        self._averaging = averaging
        self._steps = set(averaged_steps(steps_per_epoch, averaging)) if averaging else set()
        self.count = 0
        self.mean: dict[str, Tensor] = {}

    @torch.no_grad()
    def after_step(self, step: int) -> None:
        """Let the present weights enter the mean if ``step`` of the epoch, from 1, is one that counts."""
        if step not in self._steps:
            return
        self.count += 1
        for name, parameter in self._module.named_parameters():
            if parameter.requires_grad and name not in self.mean:
                self.mean[name] = parameter.detach().clone()
            elif parameter.requires_grad:
                self.mean[name] += (parameter.detach() - self.mean[name]) / self.count

    @torch.no_grad()
    def finish(self, passes: Callable[[], Iterable[Callable[[], object]]]) -> None:
        """At the end of an epoch, put the mean in place of the weights and forget it."""
        if self._averaging is None:
            return
        parameters = dict(self._module.named_parameters())
        for name, value in self.mean.items():
            parameters[name].copy_(value)
        self.mean, self.count = {}, 0
        if self._averaging.refresh_batch_norm and batch_norms(self._module):
            refresh_batch_norm(self._module, passes())

    def state(self) -> dict[str, Tensor]:
        return {"count": torch.tensor(self.count), **self.mean} if self.count else {}

    def load_state(self, state: dict[str, Tensor]) -> None:
        devices = {name: parameter.device for name, parameter in self._module.named_parameters()}
        self.count = int(state.pop("count", 0))
        self.mean = {name: value.to(devices[name]) for name, value in state.items()}


def batch_norms(module: nn.Module) -> list[nn.modules.batchnorm._BatchNorm]:
    """Return the batch norms that follow the batches they see; call it in training mode."""
    return [
        part
        for part in module.modules()
        if isinstance(part, nn.modules.batchnorm._BatchNorm) and part.training and part.track_running_stats
    ]


@torch.no_grad()
def refresh_batch_norm(module: nn.Module, passes: Iterable[Callable[[], object]]) -> None:
    """Compute the statistics of all active batch norms anew, as the plain mean over ``passes``."""
    norms = batch_norms(module)
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a cumulative mean
    for run in passes:
        run()
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
