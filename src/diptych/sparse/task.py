"""Training of a sparse head: its batches, its loss, its schedules, and when it is measured and kept.

Sparse scores learn the distributions that dense scores give, both ways: targets are soft-maxes of dense
scores at a temperature and have no gradient; sparse scores are plain inner products, not scaled. Sparsity
comes from a regulariser whose weight rises quadratically.

Source: Nguyen et al. 2024, Eq. 7; its published code takes means where the equation has sums, and nats
where it has bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from diptych.objectives.similarity import similarity_of
from diptych.sparse.expansion import ExpansionControl
from diptych.sparse.fused import Fused
from diptych.sparse.head import each_head, head_of
from diptych.sparse.options import LossOptions, SparsifyOptions
from diptych.sparse.pairs import PairBatch, Pairs, Validation
from diptych.sparse.sparsifier import Sparsifier
from diptych.training.checkpoint import Place
from diptych.training.run import TrainingFolder
from diptych.training.trainer import MicroBatch, StepResult, TrainingTask

_ADAM_EPS = 1e-8
_VALIDATIONS = 10
_SAMPLE = 512
# A GPU is not waited for after every step to see whether the loss is still a number.
_READ_EVERY = 50
_MEANS = ("loss", "distillation", "penalty")


def rate_share(step: int, steps: int, warmup: int) -> float:
    """Return the share of its top that a learning rate has at a step counted from 0.

    It rises linearly and is 1 at step ``warmup``; from there it falls linearly, and would be 0 at
    ``steps``, the step after the last.
    """
    if step < warmup:
        return (step + 1) / (warmup + 1)
    return (steps - step) / (steps - warmup)


class Targets(NamedTuple):
    """Distributions of (n, n) dense scores: of each image over the captions, of each caption over the images."""

    i2t: Tensor
    t2i: Tensor


@torch.no_grad()
def soft_targets(scores: Tensor, temperature: float) -> Targets:
    """Return what the sparse scores are to say, from (n, n) dense scores with images as rows."""
    scaled = scores / temperature
    return Targets(torch.softmax(scaled, dim=1), torch.softmax(scaled.T, dim=1))


def distillation_loss(scores: Tensor, targets: Targets) -> Tensor:
    """Return the cross-entropy in nats of (n, n) sparse scores, the mean over queries and over both directions."""
    i2t = functional.cross_entropy(scores, targets.i2t)
    return (i2t + functional.cross_entropy(scores.T, targets.t2i)) / 2


def rise(step: int, steps: float) -> float:
    """Return the share of its weight that a regulariser has at a step counted from 0: quadratic, 1 from ``steps``."""
    return 1.0 if step >= steps else (step / steps) ** 2


def total_loss(
    distillation: Tensor, image_penalty: Tensor, text_penalty: Tensor, options: LossOptions, share: float
) -> Tensor:
    """Return distillation and regulariser together."""
    penalty = options.eta * share * (image_penalty + text_penalty)
    if options.weight is None:
        return distillation + penalty / 2
    bits = distillation * (2 / math.log(2))
    return (1 - options.weight) * bits + options.weight * penalty


class HeadFolder(TrainingFolder):
    """The folder of a head's training: what every training writes, the terms, the head, and rows without a home."""

    @property
    def vocabulary(self) -> Path:
        """The folder of the terms."""
        return self.folder / "vocabulary"

    @property
    def head(self) -> Path:
        """The folder of the trained head, which ``Sparsifier.load`` reads."""
        return self.folder / "head"

    def check_options(self, options: SparsifyOptions) -> None:
        """See that a training with ``options`` can begin or be resumed here."""
        self.check(options.model_dump(mode="json"), beside=("embeddings",), whole=False)


class HeadTask(TrainingTask):
    """Distils dense scores into a head.

    Args:
        sparsifier: of the heads to train, on their device.
        similarity: of the dense rows.
        precision: of matrix products.
    """

    title = "training the head"
    advice = "lower training.learning_rate, or set training.precision = float32"

    def __init__(
        self,
        folder: HeadFolder,
        sparsifier: Sparsifier,
        pairs: Pairs,
        similarity: str,
        precision: str,
        validation: Validation | None = None,
    ) -> None:
        self.folder, self.sparsifier, self.pairs, self.validation = folder, sparsifier, pairs, validation
        self.options, self.heads, self.device = sparsifier.options, sparsifier.heads, sparsifier.device
        self.module = self.heads
        training, on_cpu, self.seed = self.options.training, self.device.type == "cpu", self.options.seed
        self.epochs, self.steps_per_epoch = training.epochs, pairs.steps
        self.workers, self.read_every = (0, 1) if on_cpu else (1, _READ_EVERY)
        self.control = ExpansionControl(
            self.options.expansion, pairs.document_frequency, training.epochs, self.seed
        )
        self._steps = training.epochs * pairs.steps
        self._similarity = similarity_of(similarity)
        regulariser = self.options.loss.regulariser
        self._fused = Fused(regulariser, dtype=getattr(torch, precision), compiled=training.compiled)
        self._sums = torch.zeros(len(_MEANS), device=self.device)

    def batches(self, epoch: int) -> Sequence[np.ndarray]:
        return self.pairs.epoch(epoch)

    def load(self, batch: np.ndarray, epoch: int) -> PairBatch:
        return self.pairs.load(batch, self.device)

    def optimizer(self, epoch: int) -> torch.optim.Optimizer:
        """Return AdamW, with a rate of its own for the first map."""
        training = self.options.training
        first = [parameter for head in each_head(self.heads) for parameter in head.proj.parameters()]
        known = {id(parameter) for parameter in first}
        rest = [parameter for parameter in self.heads.parameters() if id(parameter) not in known]
        rates = ((first, training.projection_learning_rate), (rest, training.learning_rate))
        return torch.optim.AdamW(
            [{"params": parameters, "lr": rate, "scale": rate} for parameters, rate in rates],
            eps=_ADAM_EPS,
            weight_decay=training.weight_decay,
            fused=self.device.type in ("cpu", "cuda"),
        )

    def learning_rate(self, epoch: int, position: int) -> float:
        step = epoch * self.steps_per_epoch + position
        return rate_share(step, self._steps, round(self.options.training.warmup * self._steps))

    def losses(self, batch: MicroBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Return the loss, the distillation in nats, and the regulariser without its weight."""
        loss, pairs, place = self.options.loss, batch.data, batch.place
        allowed = self.control.allowed(place.epoch, place.position, pairs.in_caption)
        with torch.no_grad():
            targets = soft_targets(self._similarity(pairs.images, pairs.texts), loss.temperature)
        found = self._fused(self.heads, pairs.images, pairs.texts, allowed)
        distillation = distillation_loss(found.scores, targets)
        share = rise(place.step, round(loss.warmup * self._steps))
        total = total_loss(distillation, found.image_penalty, found.text_penalty, loss, share)
        return total, distillation, (found.image_penalty + found.text_penalty) / 2

    def after_step(self, place: Place, result: StepResult) -> None:
        """Add up the epoch's losses, on the device."""
        self._sums += torch.stack([torch.as_tensor(loss) for loss in result.losses[0]])

    def after_epoch(self, place: Place) -> None:
        """Log the epoch; measure and keep the head where it is due.

        About ten epochs are measured; to choose the best, all whose rates and regulariser have risen.
        """
        means = (self._sums / self.steps_per_epoch).tolist()
        self._sums.zero_()
        values = {"epoch": place.epoch, "step": place.step, **dict(zip(_MEANS, means, strict=True))}
        values |= {"p_c": self.control.probability(place.epoch - 1), **self._nonzeros()}
        training, last = self.options.training, place.epoch == self.epochs
        best, warmup = training.select == "best", max(training.warmup, self.options.loss.warmup)
        warm = place.step >= round(warmup * self._steps)
        due = last or place.epoch % max(1, self.epochs // _VALIDATIONS) == 0 or (best and warm)
        if self.validation is not None and due:
            values["validation"] = measured = self.validation.measure(self.sparsifier)
            if warm and place.judge(measured["rsum"]) and best:
                self._save_head()
        self.folder.log(**values)
        if last and not best:
            self._save_head()

    @torch.no_grad()
    def _nonzeros(self) -> dict[str, float]:
        """Return mean non-zeros of a sample of pairs, captions with all the terms they have in use."""
        count = min(_SAMPLE, len(self.pairs))
        rows = np.linspace(0, len(self.pairs) - 1, count).round().astype(np.int64)
        batch = self.pairs.load(rows, self.device)
        images = head_of(self.heads, "image")(batch.images) > 0
        texts = head_of(self.heads, "text")(batch.texts) > 0
        if not self.sparsifier.expands:
            texts = texts & batch.in_caption
        return {"image_nonzeros": float(images.sum()) / count, "text_nonzeros": float(texts.sum()) / count}

    def _save_head(self) -> None:
        """Write the head as it is now; a Sparsifier remembers the fingerprint of the weights it was made with."""
        made = self.sparsifier
        head = Sparsifier(self.heads, made.vocabulary, made.options, made.encoder, device=str(made.device))
        head.save(self.folder.head)

    def state(self) -> Mapping[str, Tensor]:
        return {"sums": self._sums}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self._sums = state["sums"].to(self.device)
