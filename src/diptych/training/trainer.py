"""Trainer: the loop, the step and the checkpoints of everything that is trained by gradient descent.

What is trained, on which batches and by which loss is a :class:`TrainingTask`: towers, sparse heads and
product heads each have one. A training that is stopped or killed anywhere and resumed ends with the same
bits as an uninterrupted one: every random choice is a function of (seed, epoch, step), everything else is
in the checkpoint.
"""

import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from diptych.core.context import RESUME, Task, stopping
from diptych.core.context import task as progress_task
from diptych.core.errors import Interrupted, NumericalError
from diptych.data.loading import read_ahead
from diptych.training.checkpoint import Place, load_moments, load_weights, read_place, save_checkpoint
from diptych.training.run import TrainingFolder

Loss = Tensor | float


class MicroBatch(NamedTuple):
    """One of the batches whose gradients are summed for a step.

    Attributes:
        data: what the task loaded.
        place: where the training stands, before the step.
        share: of this batch in the step's loss.
        last: whether the step has no further batch.
        seed: what PyTorch's generator was seeded with.
    """

    data: Any
    place: Place
    share: float
    last: bool
    seed: int


class StepResult(NamedTuple):
    """Result of a step.

    Attributes:
        losses: of each batch, as the task gave them; the first is minimised.
        values: their means over the batches; empty where the device was not waited for.
        learning_rate: it was made with.
        gradient_norm: before clipping; NaN where it is not measured.
        data: of the last batch.
    """

    losses: Sequence[Sequence[Loss]]
    values: tuple[float, ...]
    learning_rate: float
    gradient_norm: float
    data: Any


class TrainingTask:
    """Define one training; the base class of them all.

    Attributes:
        title: of the progress bar.
        module: all that learns and its buffers; its state dict is the checkpoint's weights.
        epochs, steps_per_epoch: how long.
        seed: of what PyTorch draws inside a step.
        accumulate: batches whose gradients are summed for one step.
        workers: threads that load batches ahead; None for one per CPU core.
        clip: largest norm of the gradients, infinite to measure it only; None for neither.
        read_every: steps from one look at the loss to the next; a look waits for the device.
        advice: what to do about a loss that is not finite.
        fabric: devices and precision; set by the Trainer.
    """

    title: str = "training"
    module: nn.Module
    epochs: int
    steps_per_epoch: int
    seed: int = 0
    accumulate: int = 1
    workers: int | None = 0
    clip: float | None = None
    read_every: int = 1
    advice: str = "lower the learning rate"
    fabric: Any

    def batches(self, epoch: int) -> Sequence[Any]:
        """Return what is loaded for each batch of an epoch: a function of (seed, epoch)."""
        raise NotImplementedError

    def load(self, batch: Any, epoch: int) -> Any:
        """Return a batch's tensors."""
        return batch

    def optimizer(self, epoch: int) -> torch.optim.Optimizer:
        """Return a new optimizer for the stage that begins with ``epoch``; groups have a ``scale``."""
        raise NotImplementedError

    def first_epoch(self, epoch: int) -> int:
        """Return the epoch with which the stage of ``epoch`` began: there the optimizer was new."""
        return 0

    def stage_begins(self, module: Any) -> None:
        """Take the module as the device strategy wraps it."""

    def learning_rate(self, epoch: int, position: int) -> float:
        """Return the rate of a step, which each group's ``scale`` is multiplied by."""
        return 1.0

    def losses(self, batch: MicroBatch) -> Sequence[Tensor]:
        """Return a batch's losses; the first is minimised, the others are for the record."""
        raise NotImplementedError

    def gradients(self, batch: MicroBatch) -> Sequence[Loss]:
        """Add a batch's gradients to the parameters'; return its losses without gradients."""
        found = self.losses(batch)
        self.fabric.backward(found[0] if batch.share == 1 else found[0] * batch.share)
        return [loss.detach() for loss in found]

    def total(self, values: Sequence[float]) -> float:
        """Return the loss that is minimised, of the mean losses of a step."""
        return values[0]

    def before_first_step(self, place: Place) -> None:
        """Do what comes before the first step of a new training."""

    def after_step(self, place: Place, result: StepResult) -> None:
        """Do what follows a step: move schedules, log."""

    def after_epoch(self, place: Place) -> None:
        """Do what follows an epoch's last step: validate, log, keep the best; ``place`` counts the epoch."""

    def note(self, place: Place) -> str:
        """Return what the progress bar says besides epoch and loss."""
        return ""

    def state(self) -> Mapping[str, Tensor]:
        """Return what a checkpoint keeps besides weights and moments."""
        return {}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Take back what :meth:`state` gave."""

    def saved(self, name: str) -> bool:
        """Return whether a weight is part of a checkpoint; one that never changes need not be."""
        return True


@dataclass(frozen=True)
class Saving:
    """When a checkpoint is written, besides at a stop.

    Attributes:
        epochs: after every epoch.
        steps: after every so many steps.
        minutes: after every so many minutes.
    """

    epochs: bool = True
    steps: int | None = None
    minutes: float | None = None


class Trainer:
    """One training, from where its folder stands to its end.

    Args:
        fabric: Lightning Fabric's, launched: devices, precision, processes.
        resume: how an interrupted training is resumed, for the message; None where its folder is not kept.
    """

    def __init__(
        self,
        task: TrainingTask,
        folder: TrainingFolder,
        fabric: Any,
        saving: Saving,
        resume: str | None = RESUME,
    ) -> None:
        self.task, self.folder, self.fabric = task, folder, fabric
        self._saving, self._resume = saving, resume
        self._stage: int | None = None
        self._shown: list[float] = []
        self._saved_step = -1
        self._saved_at = self._since = time.monotonic()
        task.fabric = fabric
        self.place = self._start()
        self.total = task.epochs * task.steps_per_epoch

    def _start(self) -> Place:
        place = read_place(self.folder.checkpoint)
        if place is not None:
            self.task.load_state(load_weights(self.folder.checkpoint, self.task.module, self.task.saved))
        if self.fabric.is_global_zero:
            self.folder.rewind_metrics(-1 if place is None else place.step)
        return place or Place()

    def train(self) -> Place:
        place, task = self.place, self.task
        if place.step == 0:
            task.before_first_step(place)
        with progress_task(task.title, self.total, "steps", place.step) as bar:
            while not self._finished():
                self._enter_stage()
                self._epoch(bar)
        self._count_time()
        return place

    def _finished(self) -> bool:
        return self.place.epoch >= self.task.epochs or self.place.stopped

    def _enter_stage(self) -> None:
        """Make the optimizer of a stage that begins, with its moments where it is resumed inside."""
        task, place = self.task, self.place
        first = task.first_epoch(place.epoch)
        if first == self._stage:
            return
        resumed = self._stage is None and (place.position > 0 or place.epoch > first)
        self._stage = first
        optimizer = task.optimizer(place.epoch)
        if resumed:
            load_moments(self.folder.checkpoint, task.module, optimizer)
        self._module, self._optimizer = self.fabric.setup(task.module, optimizer)
        self._raw_optimizer = optimizer
        task.stage_begins(self._module)
        if self._scaler is not None and place.scaler:
            self._scaler.load_state_dict(place.scaler)

    @property
    def _scaler(self) -> Any:
        return getattr(self.fabric._precision, "scaler", None)

    def _epoch(self, bar: Task) -> None:
        place, task = self.place, self.task
        task.module.train()
        self._shown.clear()
        batches = task.batches(place.epoch)[place.position * task.accumulate :]
        loaded = read_ahead(partial(task.load, epoch=place.epoch), batches, task.workers)
        left = len(batches)
        for _ in range(place.position, task.steps_per_epoch):
            result = self._step(loaded, min(task.accumulate, left))
            left -= task.accumulate
            place.position += 1
            place.step += 1
            bar.advance(1, self._note(result.values))
            task.after_step(place, result)
            if place.position == task.steps_per_epoch:
                place.epoch, place.position = place.epoch + 1, 0
                task.after_epoch(place)
            if self._due():
                self._save()
            self._stop_if_requested()

    def _step(self, loaded: Iterator[Any], parts: int) -> StepResult:
        task, place = self.task, self.place
        rate = task.learning_rate(place.epoch, place.position)
        for group in self._optimizer.param_groups:
            group["lr"] = rate * group["scale"]
        # Dropout and the like: the same at the same step, whether or not the training was interrupted.
        seed = (task.seed * 1_000_003 + place.step) * 1_009 + self.fabric.global_rank
        self._optimizer.zero_grad()
        losses = []
        for part in range(parts):
            part_seed = (seed + 32_452_843 * part) % 2**63
            torch.manual_seed(part_seed)
            batch = MicroBatch(next(loaded), place, 1 / parts, part == parts - 1, part_seed)
            losses.append(task.gradients(batch))
        values: tuple[float, ...] = ()
        if place.step % task.read_every == 0:
            values = tuple(sum(map(float, some)) / parts for some in zip(*losses, strict=True))
            self._check_finite(task.total(values))
        norm = math.nan
        if task.clip is not None:
            norm = float(
                self.fabric.clip_gradients(
                    self._module, self._optimizer, max_norm=task.clip, error_if_nonfinite=False
                )
            )
        self._optimizer.step()
        self._last = losses
        return StepResult(losses, values, rate, norm, batch.data)

    def _check_finite(self, loss: float) -> None:
        place = self.place
        if not math.isfinite(loss):
            raise NumericalError(
                f"the loss is {loss} at step {place.step + 1} (epoch {place.epoch + 1})", self.task.advice
            )

    def _note(self, values: Sequence[float]) -> str:
        if not values:
            return ""
        self._shown.append(self.task.total(values))
        mean = sum(self._shown) / len(self._shown)
        return f"epoch {self.place.epoch + 1}/{self.task.epochs}  loss {mean:.3f}{self.task.note(self.place)}"

    def _due(self) -> bool:
        saving, place = self._saving, self.place
        if place.position == 0 and saving.epochs:
            return True
        if saving.steps is not None and place.step % saving.steps == 0:
            return True
        return saving.minutes is not None and time.monotonic() - self._saved_at >= 60 * saving.minutes

    def _count_time(self) -> None:
        now = time.monotonic()
        self.place.seconds += now - self._since
        self._since = now

    def _save(self) -> None:
        task, place = self.task, self.place
        if task.read_every > 1:  # weights that may be no numbers any more are not kept
            self._check_finite(sum(float(some[0]) for some in self._last))
        self._count_time()
        place.scaler = {} if self._scaler is None else self._scaler.state_dict()
        if self.fabric.is_global_zero:
            save_checkpoint(
                self.folder.checkpoint, place, task.module, self._raw_optimizer, task.state(), task.saved
            )
        self.fabric.barrier()
        self._saved_at, self._saved_step = time.monotonic(), place.step

    def _stop_if_requested(self) -> None:
        if not self.fabric.broadcast(stopping()) or self._finished():
            return
        done = f"stopped after step {self.place.step:,} of {self.total:,}"
        if self._resume is None:
            raise Interrupted(done, "nothing is kept: give a folder to keep what is done")
        if self._saved_step != self.place.step:
            self._save()
        raise Interrupted(f"{done}; everything up to it is saved", self._resume)


def multiplies_bfloat16(device: torch.device) -> bool:
    """Return whether the device computes in bfloat16 in hardware; emulated it is slower than float32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    # PyTorch tells only in private whether a CPU multiplies bfloat16.
    has = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return device.type == "cpu" and has is not None and bool(has())


def single_device(device: torch.device, precision: str = "32-true") -> Any:
    """Return a launched Fabric of one device."""
    from lightning_fabric import Fabric

    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    devices: Any = 1 if device.index is None else [device.index]
    fabric = Fabric(accelerator=device.type, devices=devices, precision=precision)
    fabric.launch()
    return fabric
