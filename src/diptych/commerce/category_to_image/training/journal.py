"""Journal: the folder of one training.

::

    OUT/
      training.json            what was asked for, by which the same call is known
      checkpoint.safetensors   what it goes on from; gone when it has ended
      metrics.jsonl            one line per epoch
      model/                   the trained model, when it has ended
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from diptych.commerce.category_to_image.training.adamw import AdamW
from diptych.commerce.category_to_image.training.checkpoint import Place, load_checkpoint, save_checkpoint
from diptych.commerce.category_to_image.training.trained import MARKER as MODEL_MARKER
from diptych.commerce.category_to_image.training.trained import TrainedModel
from diptych.core.errors import MismatchError, UsageError
from diptych.core.files import write_json, write_text
from diptych.core.locking import exclusive_folder
from diptych.core.reading import file_errors, read_json, read_log

MARKER = "training.json"
FORMAT = 1


class Journal:
    """Where a training writes; without a folder it writes nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._lines: list[str] = []

    @classmethod
    @contextmanager
    def begun(cls, folder: Path | str | None, request: Mapping[str, Any]) -> Iterator[Journal]:
        """A training's folder, for as long as one process works in it."""
        if folder is None:
            yield cls(None)
            return
        folder = Path(folder)
        with exclusive_folder(folder):
            said = {"format": FORMAT, "request": json.loads(json.dumps(request))}
            if (folder / MARKER).is_file():
                _check_same(folder, read_json(folder / MARKER), said)
            elif any(not file.name.startswith(".") for file in folder.iterdir()):
                raise UsageError(f"{folder} holds other things (no {MARKER})", "give a new or empty folder")
            else:
                write_json(folder / MARKER, said)
            yield cls(folder)

    def model(self) -> TrainedModel | None:
        """The trained model, where the training has ended."""
        if self.folder is None or not (self.folder / "model" / MODEL_MARKER).is_file():
            return None
        return TrainedModel.open(self.folder / "model")

    def resume(self, trained: nn.Module, optimizer: AdamW) -> tuple[Place, dict[str, Tensor] | None]:
        """Where to go on, after the state has been put back; the beginning where there is none."""
        if self.folder is None or not self._checkpoint.is_file():
            return Place(), None
        place, best = load_checkpoint(self._checkpoint, trained, optimizer)
        # Lines of epochs that the checkpoint has not seen are written again.
        log = self.folder / "metrics.jsonl"
        if log.is_file():
            with file_errors(log, fix="remove the line"):
                lines = [line for _, line in read_log(log) if line["epoch"] <= place.epoch]
            self._lines = [json.dumps(line) + "\n" for line in lines]
        return place, best

    def log(self, **values: Any) -> None:
        """One line of metrics; the file is replaced whole, for it is short."""
        self._lines.append(json.dumps(values) + "\n")
        if self.folder is not None:
            write_text(self.folder / "metrics.jsonl", "".join(self._lines))

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The lines so far."""
        return [json.loads(line) for line in self._lines]

    def save(
        self,
        trained: nn.Module,
        optimizer: AdamW,
        best: dict[str, Tensor] | None,
        place: Place,
    ) -> None:
        """Write the state."""
        if self.folder is not None:
            save_checkpoint(self._checkpoint, trained, optimizer, best, place)

    def end(self, model: TrainedModel) -> None:
        """Write the trained model; what the training went on from is not needed any more."""
        if self.folder is not None:
            model.save(self.folder / "model")
            self._checkpoint.unlink(missing_ok=True)

    @property
    def _checkpoint(self) -> Path:
        assert self.folder is not None
        return self.folder / "checkpoint.safetensors"


def _check_same(folder: Path, there: Any, asked: Mapping[str, Any]) -> None:
    if there == asked:
        return
    old = there.get("request") if isinstance(there, dict) else None
    if not isinstance(old, dict) or there.get("format") != FORMAT:
        raise MismatchError(f"{folder} holds a training of another version", "give a new folder")
    before, now = _flat(old), _flat(asked["request"])
    key = next(key for key in sorted({*before, *now}) if before.get(key) != now.get(key))
    raise MismatchError(
        f"{folder} holds a training with {key} {before.get(key)}, asked for was {now.get(key)}",
        "give a new folder, or the same call to go on",
    )


def _flat(request: Mapping[str, Any]) -> dict[str, Any]:
    """Options beside the rest, each under its own name."""
    return {**{key: value for key, value in request.items() if key != "options"}, **request["options"]}
