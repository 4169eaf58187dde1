"""The state of a head's training on disk: weights, AdamW's moments and a place; nothing else is state."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from diptych.core.errors import StorageError
from diptych.core.files import atomic_folder, read_json, write_json
from diptych.encoders.tensors import load_tensors, save_tensors

__all__ = ["Place", "load_state", "read_place", "save_state"]

_FIX = "the checkpoint is damaged or of another version: train the head again in a new folder"


@dataclass
class Place:
    """Where a training stands.

    Attributes:
        epoch: epochs that are complete.
        position: steps done in the epoch after those.
        step: steps done in all.
        sums: of loss, distillation and regulariser over those of the unfinished epoch.
        best: the best validation recall sum among epochs after the warm-up.
        best_epoch: the epoch that gave it, counted from 1.
        seconds: spent in training so far.
        scaler: of 16-bit training's loss scale.
    """

    epoch: int = 0
    position: int = 0
    step: int = 0
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    best: float = -1.0
    best_epoch: int = 0
    seconds: float = 0.0
    scaler: dict[str, Any] = field(default_factory=dict)


def save_state(folder: Path, heads: nn.Module, optimizer: torch.optim.Optimizer, place: Place) -> None:
    """Write the state; the one before stays whole until this one is.

    Raises:
        StorageError: the write failed; the previous checkpoint is untouched.
    """
    names = {id(parameter): name for name, parameter in heads.named_parameters()}
    moments: dict[str, Tensor] = {}
    for parameter, state in optimizer.state.items():
        for key, value in state.items():
            moments[f"{names[id(parameter)]}|{key}"] = value
    with atomic_folder(folder, "place.json") as temporary:
        save_tensors(heads.state_dict(), temporary / "weights.safetensors")
        save_tensors(moments, temporary / "optimizer.safetensors")
        write_json(temporary / "place.json", asdict(place))


def read_place(folder: Path) -> Place:
    """Where the training stood when the checkpoint was written.

    Raises:
        StorageError: there is none, or it is of another version.
    """
    try:
        return Place(**read_json(folder / "place.json"))
    except TypeError as error:
        raise StorageError(f"{folder} is of another version: {error}", _FIX) from None


def load_state(folder: Path, heads: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Put a checkpoint's weights and moments into ``heads`` and ``optimizer``.

    Raises:
        StorageError: the checkpoint is damaged or of another head.
    """
    weights = load_tensors(folder / "weights.safetensors", _FIX)
    try:
        heads.load_state_dict(weights)
    except RuntimeError as error:
        raise StorageError(f"{folder} does not fit its options: {error}", _FIX) from None
    parameters = dict(heads.named_parameters())
    for name, value in load_tensors(folder / "optimizer.safetensors", _FIX).items():
        of, key = name.rsplit("|", 1)
        if of not in parameters:
            raise StorageError(f"{folder} holds moments of {of}, which the head does not have", _FIX)
        # AdamW's fused form keeps its count of steps beside the parameter, as it was saved.
        optimizer.state[parameters[of]][key] = value.to(parameters[of].device)
