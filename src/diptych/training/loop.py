"""The training loop: epochs, steps, validation and checkpoints, resumable at any moment."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from diptych.core.context import Task, task
from diptych.core.errors import Interrupted, MismatchError, NumericalError
from diptych.core.files import recover_folder
from diptych.data.batches import Batch, BatchPlan
from diptych.data.loading import read_ahead
from diptych.encoders.trainable import TrainableEncoder
from diptych.objectives.similarity import similarity_of
from diptych.training.averaging import WeightAverage
from diptych.training.checkpoint import (
    Place,
    load_average,
    load_moments,
    load_weights,
    read_place,
    save_checkpoint,
)
from diptych.training.examples import Examples, Loaded
from diptych.training.run import Run
from diptych.training.sections import Stage
from diptych.training.step import BatchLoss, Losses
from diptych.training.trainee import Trainee, make_optimizer
from diptych.training.validation import Validation


@dataclass(frozen=True)
class Segment:
    """A stage and the epoch it begins with, all stages counted from 0."""

    stage: Stage
    first_epoch: int


def segment_of(stages: Sequence[Stage], epoch: int) -> Segment:
    """The stage that epoch ``epoch`` belongs to."""
    first = 0
    for stage in stages:
        if epoch < first + stage.epochs:
            return Segment(stage, first)
        first += stage.epochs
    raise IndexError(f"epoch {epoch} of {first}")


def learning_rate(stage: Stage, step: int, steps_per_epoch: int) -> float:
    """The learning rate of a stage's ``step``-th step, counted from 0.

    Warm-up is linear from 0 and reaches the top at step ``warmup``; ``step`` falls by ``decay`` every
    ``step_epochs`` epochs; ``cosine`` reaches ``final`` × learning rate at the stage's last step, or,
    moved once per epoch, would reach it with the epoch after the last.
    """
    if step < stage.warmup:
        return stage.learning_rate * (step + 1) / (stage.warmup + 1)
    if stage.schedule == "step":
        return stage.learning_rate * stage.decay ** (step // (steps_per_epoch * stage.step_epochs))
    if stage.schedule == "cosine" and stage.per == "epoch":
        return _cosine(stage, step // steps_per_epoch / stage.epochs)
    if stage.schedule == "cosine":
        last = stage.epochs * steps_per_epoch - 1
        return _cosine(stage, min(1.0, (step - stage.warmup) / max(1, last - stage.warmup)))
    return stage.learning_rate


def _cosine(stage: Stage, share: float) -> float:
    """Where a cosine stands after ``share`` of its way."""
    shape = (1 + math.cos(math.pi * share)) / 2
    return stage.learning_rate * (stage.final + (1 - stage.final) * shape)


class Loop:
    """One training, from where its run stands to its end."""

    def __init__(
        self,
        fabric: Any,
        run: Run,
        encoder: TrainableEncoder,
        trainee: Trainee,
        examples: Examples,
        plan: BatchPlan,
        validation: Validation,
        data: str,
        should_stop: Callable[[], bool],
    ) -> None:
        self.fabric, self.run, self.recipe = fabric, run, run.recipe
        self.encoder, self.trainee = encoder, trainee
        self.examples, self.plan, self.validation = examples, plan, validation
        self.should_stop = should_stop
        self.steps_per_epoch = -(-len(plan) // self.recipe.optimizer.accumulate)
        self.average = WeightAverage(trainee, self.recipe.averaging, self.steps_per_epoch)
        self.frozen_backbone = not any(trainee.trains_backbone(stage) for stage in self.recipe.stages)
        self.place = self._start(data)

    def _start(self, data: str) -> Place:
        recover_folder(self.run.checkpoint)
        recover_folder(self.run.best)
        if not self.run.checkpoint.is_dir():
            if self.fabric.is_global_zero:
                self.run.rewind_metrics(-1)
            return Place(data=data)
        place = read_place(self.run.checkpoint)
        if place.data != data:
            raise MismatchError(
                f"{self.run.folder} was begun on training captions {place.data}, these are {data}",
                "give the same data, or start a new run",
            )
        load_weights(self.run.checkpoint, self.trainee, self.frozen_backbone)
        load_average(self.run.checkpoint, self.average)
        if self.fabric.is_global_zero:
            self.run.rewind_metrics(place.step)
        return place

    def go(self) -> Place:
        """Train to the end."""
        place, total = self.place, self.recipe.epochs * self.steps_per_epoch
        if self.recipe.fine_tune is not None and place.step == 0:
            self._measure(0)  # what the encoder could do before: of a pretrained one, zero-shot
        current: Segment | None = None
        with task("training", total, "steps", place.step) as bar:
            while place.epoch < self.recipe.epochs and not place.stopped:
                segment = segment_of(self.recipe.stages, place.epoch)
                if segment != current:
                    inside = place.position > 0 or place.epoch > segment.first_epoch
                    self._enter(segment, resumed=current is None and inside)
                    current = segment
                self._epoch(segment, bar)
        if self.fabric.is_global_zero:
            self.run.set_state(
                "finished", step=place.step, epoch=place.epoch, best=place.best, best_epoch=place.best_epoch
            )
        self.fabric.barrier()
        return place

    def _enter(self, segment: Segment, resumed: bool) -> None:
        """Begin a stage: what is trained, a fresh optimizer, and its saved state when resuming inside."""
        self.trainee.begin(segment.stage)
        optimizer = make_optimizer(self.trainee, self.recipe, segment.stage)
        if resumed:
            load_moments(self.run.checkpoint, self.trainee, optimizer)
        self.module, self.optimizer = self.fabric.setup(self.trainee, optimizer)
        self.raw_optimizer = optimizer
        self.batch_loss = BatchLoss(
            self.fabric,
            self.module,
            self.trainee,
            similarity_of(self.encoder.scoring),
            self.examples.cached,
            self.recipe.batches.chunk,
        )
        scaler = getattr(self.fabric._precision, "scaler", None)
        if scaler is not None and self.place.scaler is not None:
            scaler.load_state_dict(self.place.scaler)

    def _epoch(self, segment: Segment, bar: Task) -> None:
        place, accumulate = self.place, self.recipe.optimizer.accumulate
        self.trainee.train()
        batches = self.plan.epoch(place.epoch)[place.position * accumulate :]
        loaded = self._loaded(batches, place.epoch)
        total_loss, counted = 0.0, 0
        while place.position < self.steps_per_epoch:
            stage_step = (place.epoch - segment.first_epoch) * self.steps_per_epoch + place.position
            loss = self._step(segment, stage_step, loaded, min(accumulate, len(batches)))
            batches = batches[accumulate:]
            place.position += 1
            place.step += 1
            total_loss, counted = total_loss + loss, counted + 1
            bar.advance(1, self._note(total_loss / counted))
            self.average.after_step(place.position)
            if place.position == self.steps_per_epoch:
                self.average.finish(self._passes)
                place.epoch, place.position = place.epoch + 1, 0
                self._validate()
                self._save()
                self._stop_if_asked()
                return
            if place.step % self.recipe.checkpoints.every_steps == 0:
                self._save()
            self._stop_if_asked()

    def _note(self, loss: float) -> str:
        best = f"  best rsum {self.place.best:.1f}" if self.place.best_epoch else ""
        return f"epoch {self.place.epoch + 1}/{self.recipe.epochs}  loss {loss:.3f}{best}"

    def _loaded(self, batches: list[Batch], epoch: int) -> Iterator[Loaded]:
        rank, world = self.fabric.global_rank, self.fabric.world_size
        workers = 0 if self.examples.cached else None
        return read_ahead(lambda batch: self.examples.load(batch.shard(rank, world), epoch), batches, workers)

    def _step(self, segment: Segment, stage_step: int, loaded: Iterator[Loaded], parts: int) -> float:
        """One optimizer step over ``parts`` micro-batches; gives the mean loss."""
        rate = learning_rate(segment.stage, stage_step, self.steps_per_epoch)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["scale"]
        # Dropout and the like: the same at the same step, whether or not the run was interrupted.
        seed = (self.recipe.seed * 1_000_003 + self.place.step) * 1_009 + self.fabric.global_rank
        self.optimizer.zero_grad()
        losses = [
            self.batch_loss(next(loaded), 1 / parts, part == parts - 1, seed + 32_452_843 * part)
            for part in range(parts)
        ]
        mean = Losses(*(sum(values) / parts for values in zip(*losses, strict=True)))
        reconstructor = self.trainee.reconstruction
        total = mean.contrastive
        if reconstructor is not None:
            total = reconstructor.total(mean.contrastive, mean.reconstruction)
        if not math.isfinite(total):
            raise NumericalError(
                f"the loss is {total} at step {self.place.step + 1} (epoch {self.place.epoch + 1})",
                "lower the learning rate, add warm-up or clipping, or use 32-bit precision",
            )
        norm = self._clip()
        self.optimizer.step()
        logged = {"step": self.place.step + 1, "loss": total, "learning_rate": rate, "gradient_norm": norm}
        if reconstructor is not None:
            logged |= {"contrastive": mean.contrastive, **reconstructor.logged(mean.reconstruction)}
            reconstructor.after_step(mean.reconstruction)
        if self.fabric.is_global_zero:
            self.run.log(**logged, **self.trainee.objective.logged())
        return total

    def _clip(self) -> float:
        limit = self.recipe.optimizer.clip or math.inf
        norm = self.fabric.clip_gradients(
            self.module, self.optimizer, max_norm=limit, error_if_nonfinite=False
        )
        return float(norm)

    def _passes(self) -> Iterator[Callable[[], object]]:
        """The epoch's batches once more, each as a run of the trainee."""
        epoch = self.place.epoch
        for loaded in self._loaded(self.plan.epoch(epoch), epoch):
            batch = loaded.to(self.fabric.device)
            yield partial(self.trainee, batch.images, batch.tokens, batch.lengths, self.examples.cached)

    def _validate(self) -> None:
        place, checkpoints = self.place, self.recipe.checkpoints
        last = place.epoch == self.recipe.epochs
        if place.epoch % checkpoints.validate_every and not last:
            return
        best = place.judge(self._measure(place.epoch), checkpoints.patience)
        if (best or checkpoints.keep == "last") and self.fabric.is_global_zero:
            temperature, bias = (self.trainee.learned(name) for name in ("temperature", "bias"))
            self.encoder.as_trained(self.recipe.name, temperature, bias).save(self.run.best)

    def _measure(self, epoch: int) -> float:
        """The validation rsum, measured and logged by the first process, known to all."""
        rsum = 0.0
        if self.fabric.is_global_zero:
            values = self.validation.measure()
            self.run.log(step=self.place.step, epoch=epoch, validation=values)
            rsum = values["rsum"]
        return float(self.fabric.broadcast(rsum))

    def _save(self) -> None:
        scaler = getattr(self.fabric._precision, "scaler", None)
        self.place.scaler = scaler.state_dict() if scaler is not None else None
        if self.fabric.is_global_zero:
            save_checkpoint(
                self.run.checkpoint,
                self.trainee,
                self.raw_optimizer,
                self.average,
                self.place,
                self.frozen_backbone,
            )
        self.fabric.barrier()

    def _stop_if_asked(self) -> None:
        if self.fabric.broadcast(self.should_stop()) and self.place.epoch < self.recipe.epochs:
            self._save()
            raise Interrupted(
                f"stopped after step {self.place.step}; everything up to it is saved",
                f"go on with: diptych train --resume {self.run.folder}",
            )
