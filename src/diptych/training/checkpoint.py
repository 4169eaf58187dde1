"""The state of a training on disk: everything that a resumed one needs to end with the same bits.

Weights, optimizer moments and what else the task keeps are safetensors, the place is JSON; nothing else
is state, for every random choice is a function of (seed, epoch, step).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from diptych.core.artifact import Artifact
from diptych.core.errors import StorageError
from diptych.core.files import recover_folder
from diptych.core.reading import file_errors
from diptych.encoders.inputs import load_tensors, save_tensors

_FIX = "the checkpoint is corrupt or of another version: train again in a new folder"


@dataclass
class Place:
    """Progress of a training.

    Attributes:
        epoch: epochs that are complete.
        position: optimizer steps done in the epoch after those.
        step: optimizer steps done in all.
        best: the best validation measure so far.
        best_epoch: the epoch that gave it, counted from 1; 0 for none.
        waited: validations since then.
        stopped: whether patience ran out.
        scaler: state of 16-bit training's loss scale; empty without.
        seconds: spent in training.
    """

    epoch: int = 0
    position: int = 0
    step: int = 0
    best: float = -1.0
    best_epoch: int = 0
    waited: int = 0
    stopped: bool = False
    scaler: dict[str, Any] = field(default_factory=dict)
    seconds: float = field(default=0.0, compare=False)

    def judge(self, value: float, patience: int | None = None) -> bool:
        """Record a validation after the epochs done so far; return whether it is the best."""
        if value > self.best:
            self.best, self.best_epoch, self.waited = value, self.epoch, 0
            return True
        self.waited += 1
        self.stopped = patience is not None and self.waited >= patience
        return False


@dataclass(eq=False)
class Checkpoint(Artifact, kind="checkpoint", version=2, recreate="train again in a new folder"):
    """A folder with the place, and tensors by file and name."""

    place: Place
    tensors: dict[str, Mapping[str, Tensor]] = field(init=False, default_factory=dict)

    def write_files(self, folder: Path) -> None:
        for name, tensors in self.tensors.items():
            save_tensors(tensors, folder / f"{name}.safetensors")


def save_checkpoint(
    folder: Path,
    place: Place,
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: Mapping[str, Tensor],
    saved: Callable[[str], bool],
) -> None:
    """Write the state; the one before stays whole until this one is."""
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    checkpoint = Checkpoint(place)
    checkpoint.tensors = {
        "weights": {name: value for name, value in module.state_dict().items() if saved(name)},
        "optimizer": {
            f"{names[id(parameter)]}|{key}": torch.as_tensor(value)
            for parameter, values in optimizer.state.items()
            for key, value in values.items()
        },
        "state": state,
    }
    checkpoint.save(folder)


def read_place(folder: Path) -> Place | None:
    """Read where the training stood when the checkpoint was written; None where there is none."""
    recover_folder(folder)
    return Checkpoint.open(folder).place if folder.is_dir() else None


def load_weights(folder: Path, module: nn.Module, saved: Callable[[str], bool]) -> dict[str, Tensor]:
    """Put a checkpoint's weights into ``module``; return what the task kept besides."""
    weights = load_tensors(folder / "weights.safetensors", _FIX)
    expected = {name for name in module.state_dict() if saved(name)}
    if set(weights) != expected:
        different = sorted(set(weights) ^ expected)
        raise StorageError(f"{folder} does not fit the model (e.g. {different[0]})", _FIX)
    with file_errors(folder / "weights.safetensors", fix=_FIX):
        module.load_state_dict(weights, strict=False)
    return load_tensors(folder / "state.safetensors", _FIX)


def load_moments(folder: Path, module: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Put a checkpoint's optimizer state into ``optimizer``."""
    parameters = dict(module.named_parameters())
    fused = any(group.get("fused") for group in optimizer.param_groups)
    for name, value in load_tensors(folder / "optimizer.safetensors", _FIX).items():
        parameter_name, _, key = name.rpartition("|")
        if parameter_name not in parameters:
            raise StorageError(f"{folder} holds moments of {parameter_name}, which the model lacks", _FIX)
        parameter = parameters[parameter_name]
        if key != "step" and value.shape != parameter.shape:
            raise StorageError(
                f"{folder}: {name} has shape {tuple(value.shape)}, expected {tuple(parameter.shape)}", _FIX
            )
        # Step counts stay on the CPU, except a fused optimizer's. AdamP counts in a plain int.
        if key != "step" or fused:
            optimizer.state[parameter][key] = value.to(parameter.device)
        else:
            optimizer.state[parameter][key] = int(value) if value.dtype == torch.int64 else value
