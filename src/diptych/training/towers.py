"""Training of a dual encoder's two towers, with an objective and perhaps a decoder, in stages."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from diptych.analysis.shortcuts.shortcuts import Shortcuts
from diptych.data.batches import Batch, BatchPlan
from diptych.data.collection import Collection
from diptych.data.loading import read_ahead
from diptych.encoders.dual_encoder import TrainableEncoder
from diptych.encoders.two_tower import TwoTowerEncoder
from diptych.evaluation import evaluate
from diptych.metrics import DIRECTIONS, GroundTruth
from diptych.objectives.similarity import similarity_of
from diptych.training.averaging import WeightAverage
from diptych.training.batch_loss import BatchLoss, Losses
from diptych.training.checkpoint import Place
from diptych.training.examples import Examples, Loaded
from diptych.training.features import FeatureOptions, FeatureStore
from diptych.training.run import Run
from diptych.training.sections import Stage
from diptych.training.trainee import Trainee, make_optimizer
from diptych.training.trainer import MicroBatch, StepResult, TrainingTask

_RECALLS = ("R@1", "R@5", "R@10")
_MEASURES = (*_RECALLS, "rsum")


def learning_rate(stage: Stage, step: int, steps_per_epoch: int) -> float:
    """Return the learning rate of a stage's ``step``-th step, counted from 0.

    Warm-up is linear from 0 and reaches the top at step ``warmup``; ``step`` falls by ``decay`` every
    ``step_epochs`` epochs; ``cosine`` and ``linear`` reach ``final`` × learning rate at the stage's last
    step, or, moved once per epoch, would reach it with the epoch after the last.
    """
    if step < stage.warmup:
        return stage.learning_rate * (step + 1) / (stage.warmup + 1)
    if stage.schedule == "step":
        return stage.learning_rate * stage.decay ** (step // (steps_per_epoch * stage.step_epochs))
    if stage.schedule == "constant":
        return stage.learning_rate
    if stage.per == "epoch":
        share = step // steps_per_epoch / stage.epochs
    else:
        last = stage.epochs * steps_per_epoch - 1
        share = min(1.0, (step - stage.warmup) / max(1, last - stage.warmup))
    shape = (1 + math.cos(math.pi * share)) / 2 if stage.schedule == "cosine" else 1 - share
    return stage.learning_rate * (stage.final + (1 - stage.final) * shape)


class Validation:
    """The validation split, read or cached once, encoded at every validation."""

    def __init__(
        self,
        collection: Collection,
        encoder: TrainableEncoder,
        root: Path,
        features: FeatureOptions | None,
        shortcuts: Shortcuts | None = None,
    ) -> None:
        self._collection = collection
        self._encoder = encoder
        self._truth = GroundTruth.from_caption_image(collection.caption_image, collection.n_images)
        self._injected: Collection | None = None
        if shortcuts is not None and shortcuts.options.setup != "none":
            self._injected = shortcuts.injected(collection, encoder.with_endings)
        self._features: np.ndarray | None = None
        if features is not None and isinstance(encoder, TwoTowerEncoder):
            options = features.model_copy(update={"views": 0})
            self._features = FeatureStore.of(encoder.model.image, collection, root, options).rows[:, 0]

    def measure(self) -> dict[str, float]:
        """Return ``rsum``, its ``chance`` level and, per direction, R@1, R@5 and R@10, all in per cent.

        They are without shortcuts; where training has them, ``with rsum`` and so on are with them.
        """
        values = self._measured(self._collection)
        if self._injected is not None:
            values |= {f"with {name}": value for name, value in self._measured(self._injected).items()}
        return values

    def _measured(self, collection: Collection) -> dict[str, float]:
        if self._features is not None and isinstance(self._encoder, TwoTowerEncoder):
            images = self._encoder.project_features(self._features)
        else:
            images = self._encoder.encode_images(read_ahead(collection.item, range(collection.n_images)))
        texts = self._encoder.encode_texts(collection.captions)
        result = evaluate(images, texts, self._truth, _MEASURES, similarity=self._encoder.similarity)
        rsum = result.score("rsum")
        values = {"rsum": rsum.value, "chance": rsum.chance}
        for direction in DIRECTIONS:
            for name in _RECALLS:
                values[f"{direction} {name}"] = 100 * result.value(name, direction)
        return values


class TowerTask(TrainingTask):
    """A recipe's training of an encoder's towers."""

    advice = "lower the learning rate, add warm-up or clipping, or use 32-bit precision"

    def __init__(
        self,
        run: Run,
        encoder: TrainableEncoder,
        trainee: Trainee,
        examples: Examples,
        plan: BatchPlan,
        validation: Validation,
    ) -> None:
        recipe = run.recipe
        self.run, self.recipe = run, recipe
        self.encoder, self.trainee = encoder, trainee
        self.examples, self.plan, self.validation = examples, plan, validation
        self.module: Trainee = trainee
        self.epochs, self.seed = recipe.epochs, recipe.seed
        self.accumulate: int = recipe.optimizer.accumulate
        self.steps_per_epoch: int = -(-len(plan) // self.accumulate)
        self.workers = 0 if examples.cached else None
        self.clip: float = recipe.optimizer.clip or math.inf
        self.average: WeightAverage = WeightAverage(trainee, recipe.averaging, self.steps_per_epoch)
        starts = accumulate((stage.epochs for stage in recipe.stages), initial=0)
        # Of each epoch: the stage it belongs to, and the epoch with which that began.
        self._stages = [
            (first, stage)
            for first, stage in zip(starts, recipe.stages, strict=False)
            for _ in range(stage.epochs)
        ]
        self._frozen_backbone = not any(trainee.trains_backbone(stage) for stage in recipe.stages)

    def batches(self, epoch: int) -> Sequence[Batch]:
        return self.plan.epoch(epoch)

    def load(self, batch: Batch, epoch: int) -> Loaded:
        return self.examples.load(batch.shard(self.fabric.global_rank, self.fabric.world_size), epoch)

    def first_epoch(self, epoch: int) -> int:
        return self._stages[epoch][0]

    def optimizer(self, epoch: int) -> torch.optim.Optimizer:
        _, stage = self._stages[epoch]
        self.trainee.begin(stage)
        return make_optimizer(self.trainee, self.recipe, stage)

    def stage_begins(self, module: Any) -> None:
        self._batch_loss = BatchLoss(
            self.fabric,
            module,
            self.trainee,
            similarity_of(self.encoder.scoring),
            self.examples.cached,
            self.recipe.batches.chunk,
        )

    def learning_rate(self, epoch: int, position: int) -> float:
        first, stage = self._stages[epoch]
        step = (epoch - first) * self.steps_per_epoch + position
        return learning_rate(stage, step, self.steps_per_epoch)

    def gradients(self, batch: MicroBatch) -> Losses:
        return self._batch_loss(batch.data, batch.share, batch.last, batch.seed)

    def total(self, values: Sequence[float]) -> float:
        mean, reconstructor = Losses(*values), self.trainee.reconstruction
        if reconstructor is None:
            return mean.contrastive
        return reconstructor.total(mean.contrastive, mean.reconstruction)

    def before_first_step(self, place: Place) -> None:
        if self.recipe.fine_tune is not None:
            self._measure(place)

    def after_step(self, place: Place, result: StepResult) -> None:
        mean, reconstructor = Losses(*result.values), self.trainee.reconstruction
        logged = {
            "step": place.step,
            "loss": self.total(mean),
            "learning_rate": result.learning_rate,
            "gradient_norm": result.gradient_norm,
        }
        if reconstructor is not None:
            logged |= {"contrastive": mean.contrastive, **reconstructor.logged(mean.reconstruction)}
            reconstructor.after_step(mean.reconstruction)
        if self.fabric.is_global_zero:
            self.run.log(**logged, **self.trainee.objective.logged())
        self.average.after_step(place.position)

    def after_epoch(self, place: Place) -> None:
        self.average.finish(lambda: self._passes(place.epoch - 1))
        checkpoints = self.recipe.checkpoints
        if place.epoch % checkpoints.validate_every and place.epoch < self.epochs:
            return
        best = place.judge(self._measure(place), checkpoints.patience)
        if (best or checkpoints.keep == "last") and self.fabric.is_global_zero:
            temperature, bias = (self.trainee.learned(name) for name in ("temperature", "bias"))
            self.encoder.as_trained(self.recipe.name, temperature, bias).save(self.run.best)

    def _passes(self, epoch: int) -> Iterator[Callable[[], object]]:
        for loaded in read_ahead(partial(self.load, epoch=epoch), self.plan.epoch(epoch), self.workers):
            batch = loaded.to(self.fabric.device)
            yield partial(self.trainee, batch.images, batch.tokens, batch.lengths, self.examples.cached)

    def _measure(self, place: Place) -> float:
        rsum = 0.0
        if self.fabric.is_global_zero:
            values = self.validation.measure()
            self.run.log(step=place.step, epoch=place.epoch, validation=values)
            rsum = values["rsum"]
        return float(self.fabric.broadcast(rsum))

    def note(self, place: Place) -> str:
        return f"  best rsum {place.best:.1f}" if place.best_epoch else ""

    def state(self) -> Mapping[str, Tensor]:
        return self.average.state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.average.load_state(state)

    def saved(self, name: str) -> bool:
        return not (self._frozen_backbone and name.startswith("image.backbone."))
