"""The state of a training on disk, in one file that is replaced whole.

Weights, optimizer moments, the best weights so far and the place; nothing else is state, for every random choice is a
function of (seed, epoch, step or product).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from diptych.commerce.category_to_image.training.adamw import AdamW
from diptych.core.files import atomic_path
from diptych.core.reading import file_errors
from diptych.encoders.tensors import load_tensors, save_tensors

_FIX = "the checkpoint is damaged or of another version: remove the folder and train again"


@dataclass
class Place:
    """Where a training stands.

    Attributes:
        epoch: epochs that are complete.
        step: steps done in the one after those.
        loss: sum of the losses of its pairs so far.
        best: the best validation measure, -1 before the first.
        best_epoch: the epoch that gave it, counted from 1; 0 for none.
        waited: validations since then.
    """

    epoch: int = 0
    step: int = 0
    loss: float = 0.0
    best: float = -1.0
    best_epoch: int = 0
    waited: int = 0

    def judge(self, value: float) -> bool:
        """Take note of a validation after the epochs done so far; whether it is the best."""
        if value > self.best:
            self.best, self.best_epoch, self.waited = value, self.epoch, 0
            return True
        self.waited += 1
        return False


def save_checkpoint(
    file: Path,
    trained: nn.Module,
    optimizer: AdamW,
    best: dict[str, Tensor] | None,
    place: Place,
) -> None:
    """Write the state; the one before stays whole until this one is."""
    tensors = {f"weights|{name}": value for name, value in trained.state_dict().items()}
    for name, value in optimizer.state().items():
        tensors[f"moments|{name}"] = value
    for name, value in (best or {}).items():
        tensors[f"best|{name}"] = value
    said = json.dumps(asdict(place)).encode()
    tensors["place"] = torch.from_numpy(np.frombuffer(said, dtype=np.uint8).copy())
    with atomic_path(file) as temporary:
        save_tensors(tensors, temporary)


def load_checkpoint(
    file: Path, trained: nn.Module, optimizer: AdamW
) -> tuple[Place, dict[str, Tensor] | None]:
    """Put a checkpoint's state into ``trained`` and ``optimizer``; gives the place and the best weights."""
    tensors = load_tensors(file, _FIX)
    with file_errors(file, fix=_FIX):
        place = Place(**json.loads(tensors.pop("place").numpy().tobytes()))
        parts: dict[str, dict[str, Tensor]] = {"weights": {}, "moments": {}, "best": {}}
        for name, value in tensors.items():
            part, _, rest = name.partition("|")
            parts[part][rest] = value
        trained.load_state_dict(parts["weights"])
        optimizer.restore(parts["moments"])
    return place, parts["best"] or None
