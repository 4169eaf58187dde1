"""The state of a training on disk: everything needed to go on as if nothing had happened.

Weights and optimizer moments are safetensors, the place is JSON; nothing else is state, for every
random choice is a function of (seed, epoch, step).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from diptych.core.errors import StorageError
from diptych.core.files import atomic_folder, write_json
from diptych.core.reading import file_errors, read_json
from diptych.encoders.tensors import load_tensors, save_tensors
from diptych.training.averaging import WeightAverage
from diptych.training.trainee import Trainee


@dataclass
class Place:
    """Where a training stands.

    Attributes:
        epoch: epochs that are complete, all stages counted.
        position: optimizer steps done in the epoch after those.
        step: optimizer steps done in all.
        best: the best validation rsum so far.
        best_epoch: the epoch that gave it, counted from 1.
        waited: validations since then.
        stopped: whether patience ran out.
        data: fingerprint of the training captions.
        scaler: of 16-bit training's loss scale.
        averaged: weights that are in the epoch's mean.
    """

    epoch: int = 0
    position: int = 0
    step: int = 0
    best: float = -1.0
    best_epoch: int = 0
    waited: int = 0
    stopped: bool = False
    data: str = ""
    scaler: dict[str, Any] | None = None
    averaged: int = 0

    def judge(self, rsum: float, patience: int | None) -> bool:
        """Take note of a validation after the epochs done so far; whether it is the best."""
        if rsum > self.best:
            self.best, self.best_epoch, self.waited = rsum, self.epoch, 0
            return True
        self.waited += 1
        self.stopped = patience is not None and self.waited >= patience
        return False


def _skipped(name: str, frozen_backbone: bool) -> bool:
    return frozen_backbone and name.startswith("image.backbone.")


def save_checkpoint(
    folder: Path,
    trainee: Trainee,
    optimizer: torch.optim.Optimizer,
    average: WeightAverage,
    place: Place,
    frozen_backbone: bool,
) -> None:
    """Write the state; the one before stays whole until this one is.

    A backbone that no stage trains is left out: the recipe says where it comes from.
    """
    weights = {
        name: value for name, value in trainee.state_dict().items() if not _skipped(name, frozen_backbone)
    }
    names = _optimizer_names(trainee, optimizer)
    moments: dict[str, Tensor] = {}
    for parameter, state in optimizer.state.items():
        for key, value in state.items():
            moments[f"{names[id(parameter)]}|{key}"] = torch.as_tensor(value)
    place.averaged = average.count
    with atomic_folder(folder, "place.json") as temporary:
        save_tensors(weights, temporary / "weights.safetensors")
        save_tensors(moments, temporary / "optimizer.safetensors")
        if average.count:
            save_tensors(average.mean, temporary / "average.safetensors")
        write_json(temporary / "place.json", asdict(place))


def _optimizer_names(trainee: Trainee, optimizer: torch.optim.Optimizer) -> dict[int, str]:
    names = {id(parameter): name for name, parameter in trainee.named_parameters()}
    return {id(p): names[id(p)] for group in optimizer.param_groups for p in group["params"]}


def read_place(folder: Path) -> Place:
    """Where the training stood when the checkpoint was written."""
    with file_errors(folder / "place.json", fix="start the run again"):
        return Place(**read_json(folder / "place.json"))


def load_weights(folder: Path, trainee: Trainee, frozen_backbone: bool) -> None:
    """Put the checkpoint's weights into ``trainee``."""
    fix = "the checkpoint is of another version or damaged: start the run again"
    weights = load_tensors(folder / "weights.safetensors", fix)
    wanted = {name for name in trainee.state_dict() if not _skipped(name, frozen_backbone)}
    if set(weights) != wanted:
        different = sorted(set(weights) ^ wanted)
        raise StorageError(f"{folder} does not fit the recipe's model (e.g. {different[0]})", fix)
    with file_errors(folder / "weights.safetensors", fix=fix):
        trainee.load_state_dict(weights, strict=False)


def load_average(folder: Path, average: WeightAverage) -> None:
    """Put the checkpoint's unfinished mean of weights, if it has one, into ``average``."""
    count = read_place(folder).averaged
    if count:
        average.restore(load_tensors(folder / "average.safetensors", "start the run again"), count)


def load_moments(folder: Path, trainee: Trainee, optimizer: torch.optim.Optimizer) -> None:
    """Put the checkpoint's optimizer state into ``optimizer``."""
    moments = load_tensors(folder / "optimizer.safetensors", "start the run again")
    parameters = dict(trainee.named_parameters())
    with file_errors(folder / "optimizer.safetensors", fix="start the run again"):
        _put_moments(moments, parameters, optimizer)


def _put_moments(
    moments: dict[str, Tensor], parameters: dict[str, nn.Parameter], optimizer: torch.optim.Optimizer
) -> None:
    for name, value in moments.items():
        parameter_name, key = name.rsplit("|", 1)
        parameter = parameters[parameter_name]
        if key != "step" and value.shape != parameter.shape:
            raise ValueError(f"{name} has shape {tuple(value.shape)}, {tuple(parameter.shape)} expected")
        # Step counts stay on the CPU, moments lie beside the parameter. AdamP counts in a plain int.
        if key == "step":
            optimizer.state[parameter][key] = int(value) if value.dtype == torch.int64 else value
        else:
            optimizer.state[parameter][key] = value.to(parameter.device)
