"""The training loop of a head: epochs, steps, validation and checkpoints."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from diptych.core.context import Task, task
from diptych.core.errors import Interrupted, NumericalError, StorageError
from diptych.core.files import atomic_folder, write_json
from diptych.core.reading import read_json
from diptych.encoders.tensors import load_tensors, save_tensors
from diptych.sparse.expansion import ExpansionControl, caption_probability
from diptych.sparse.folder import HeadFolder
from diptych.sparse.head import head_of
from diptych.sparse.pairs import PairBatch, Pairs
from diptych.sparse.sparsifier import Sparsifier
from diptych.sparse.step import SparsifyStep
from diptych.sparse.validation import Validation

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
    """Write the state; the one before stays whole until this one is."""
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
    """Where the training stood when the checkpoint was written."""
    try:
        return Place(**read_json(folder / "place.json"))
    except TypeError as error:
        raise StorageError(f"{folder} is of another version: {error}", _FIX) from None


def load_state(folder: Path, heads: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Put a checkpoint's weights and moments into ``heads`` and ``optimizer``."""
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


_VALIDATIONS = 10
_SAMPLE = 512
# A graphics processor is not waited for after every step to see whether the loss is still a number.
_CHECK_EVERY = {"cpu": 1, "other": 50}


class Loop:
    """One training, from where its folder stands to its end."""

    def __init__(
        self,
        folder: HeadFolder,
        about: dict[str, Any],
        pairs: Pairs,
        step: SparsifyStep,
        control: ExpansionControl,
        sparsifier: Sparsifier,
        validation: Validation | None,
        should_stop: Callable[[], bool],
    ) -> None:
        self._folder, self._about = folder, about
        self._pairs, self._step, self._control = pairs, step, control
        self._sparsifier, self._validation = sparsifier, validation
        self._should_stop = should_stop
        self._options = sparsifier.options.training
        self._device = sparsifier.device
        self._every = _CHECK_EVERY.get(self._device.type, _CHECK_EVERY["other"])
        self._place = Place()
        if folder.checkpoint.is_dir():
            self._place = read_place(folder.checkpoint)
            load_state(folder.checkpoint, step.heads, step.optimizer)
            if self._place.scaler:
                step.scaler.load_state_dict(self._place.scaler)
        folder.rewind_metrics(self._place.epoch)
        self._sums = torch.tensor(self._place.sums, device=self._device)
        self._saved = self._since = time.monotonic()

    def go(self) -> None:
        """Train to the end and write the head."""
        place, epochs = self._place, self._options.epochs
        with task("training the head", self._step.steps, "steps", place.step) as bar:
            while place.epoch < epochs:
                self._epoch(bar)
        if self._options.select == "last":
            self._save_head()
        self._count_time()
        more = {"epochs": place.epoch, "seconds": round(place.seconds, 1)}
        if place.best_epoch:
            more |= {"best": place.best, "best_epoch": place.best_epoch}
        self._folder.set_state("finished", self._about | more)

    def _epoch(self, bar: Task) -> None:
        place = self._place
        for batch in self._pairs.batches(place.epoch, place.position, self._device):
            allowed = self._control.allowed(place.epoch, place.position, batch.in_caption)
            self._sums += self._step(batch, allowed, place.step)
            place.position += 1
            place.step += 1
            last = place.position == self._pairs.steps
            note = ""
            if last or place.position % self._every == 0:
                note = self._note()
            bar.advance(1, note)
            if last:
                self._finish_epoch()
            if last and place.epoch == self._options.epochs:
                return
            if self._should_stop():
                self._save()
                raise Interrupted(
                    f"stopped after step {place.step:,} of {self._step.steps:,}; everything up to it is saved",
                    "repeat the command to go on",
                )
            if time.monotonic() - self._saved >= 60 * self._options.checkpoint_minutes:
                self._save()

    def _note(self) -> str:
        """The epoch's mean loss so far."""
        place = self._place
        loss = float(self._sums[0]) / place.position
        if not math.isfinite(loss):
            raise NumericalError(
                f"the loss is {loss} at step {place.step} (epoch {place.epoch + 1})",
                "lower training.learning_rate, or set training.precision = float32",
            )
        return f"epoch {place.epoch + 1}/{self._options.epochs}  loss {loss:.3f}"

    def _finish_epoch(self) -> None:
        place = self._place
        means = (self._sums / place.position).tolist()
        place.epoch, place.position = place.epoch + 1, 0
        self._sums.zero_()
        values = {"epoch": place.epoch, "step": place.step, **dict(zip(_MEANS, means, strict=True))}
        mode, epoch = self._control.options.mode, place.epoch - 1
        probability = {"0": 0.0, "1": 1.0}.get(mode)
        if probability is None:
            schedule = self._control.options.schedule
            probability = caption_probability(epoch, self._options.epochs, schedule)
        values |= {"p_c": probability, **self._nonzeros()}
        if self._validation is not None and self._validates():
            values["validation"] = self._measured()
        self._folder.log(**values)

    @torch.no_grad()
    def _nonzeros(self) -> dict[str, float]:
        """Mean non-zeros of a sample of pairs, captions with all the terms they have in use."""
        count = min(_SAMPLE, len(self._pairs))
        rows = np.linspace(0, len(self._pairs) - 1, count).round().astype(np.int64)
        batch: PairBatch = self._pairs.load(rows, self._device)
        images = head_of(self._step.heads, "image")(batch.images) > 0
        texts = head_of(self._step.heads, "text")(batch.texts) > 0
        if not self._sparsifier.expands:
            texts = texts & batch.in_caption
        return {
            "image_nonzeros": float(images.sum()) / count,
            "text_nonzeros": float(texts.sum()) / count,
        }

    def _validates(self) -> bool:
        """Whether the epoch that is done is measured: about ten are; to choose the best, all after the warm-up."""
        done, epochs = self._place.epoch, self._options.epochs
        if self._options.select == "best" and self._warm():
            return True
        return done == epochs or done % max(1, epochs // _VALIDATIONS) == 0

    def _warm(self) -> bool:
        """Whether rates and regulariser have risen."""
        share = max(self._options.warmup, self._sparsifier.options.loss.warmup)
        return self._place.step >= round(share * self._step.steps)

    def _measured(self) -> dict[str, float]:
        place = self._place
        assert self._validation is not None
        values = self._validation.measure(self._step.heads)
        if self._warm() and values["rsum"] > place.best:
            place.best, place.best_epoch = values["rsum"], place.epoch
            if self._options.select == "best":
                self._save_head()
        return values

    def _save_head(self) -> None:
        """Write the head as it is now; a Sparsifier remembers the fingerprint of the weights it was made with."""
        made = self._sparsifier
        head = Sparsifier(
            self._step.heads, made.vocabulary, made.options, made.encoder, device=str(made.device)
        )
        head.save(self._folder.head)

    def _count_time(self) -> None:
        now = time.monotonic()
        self._place.seconds += now - self._since
        self._since = now

    def _save(self) -> None:
        if self._place.position:
            self._note()  # weights that are no numbers any more are not kept
        self._count_time()
        place = self._place
        place.sums, place.scaler = self._sums.tolist(), self._step.scaler.state_dict()
        save_state(self._folder.checkpoint, self._step.heads, self._step.optimizer, place)
        self._saved = time.monotonic()


_MEANS = ("loss", "distillation", "penalty")
