"""Training of a sparse head: its batches, its loss, its schedules, and when it is measured and kept.

Sparse scores learn the distributions that dense scores give, both ways: targets are soft-maxes of dense scores at a
temperature and have no gradient; sparse scores are plain inner products, not scaled. Sparsity comes from a regulariser
whose weight rises quadratically.

Source: Nguyen et al. 2024, Eq. 7; its published code takes means where the equation has sums, and nats where it has
bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch.nn import functional

from diptych.core.errors import DataError, MismatchError
from diptych.core.fingerprint import fingerprint
from diptych.encoders.embeddings import Embeddings, EncodedCollection
from diptych.evaluation import evaluate
from diptych.metrics import DIRECTIONS, GroundTruth
from diptych.objectives.similarity import similarity_of
from diptych.sparse.expansion import ExpansionControl
from diptych.sparse.head import Fused, SparseHeads, each_head, head_of, term_mask
from diptych.sparse.options import PUBLISHED, LossOptions, SparsifyOptions
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
_RECALLS = ("R@1", "R@5", "R@10")
_MOST_IMAGES = 1000


@dataclass(frozen=True, eq=False)
class PairedRows:
    """Dense rows of images and captions that belong together."""

    images: Embeddings
    texts: Embeddings
    captions: Sequence[str]
    caption_image: np.ndarray  # (n_captions,) image of each caption

    @classmethod
    def of(cls, encoded: EncodedCollection, captions: Sequence[str]) -> PairedRows:
        return cls(encoded.images, encoded.texts, captions, encoded.caption_image)

    @property
    def fingerprint(self) -> str:
        """Name by content: rows by what made them, captions, which is whose."""
        rows = [(one.encoder, one.data, len(one)) for one in (self.images, self.texts)]
        return fingerprint(rows, list(self.captions), np.asarray(self.caption_image).tolist())

    def check(self, training: PairedRows | None = None) -> None:
        """See that rows, captions and images belong together, and validation rows to those of the training."""
        for one, other in ((self.images, self.texts), (self.texts, (training or self).texts)):
            for what in ("width", "encoder", "similarity"):
                mine, theirs = getattr(one, what), getattr(other, what)
                if mine != theirs:
                    raise MismatchError(
                        f"{one.kind} rows have {what} {mine}, {other.kind} rows {theirs}",
                        "embed both with the same encoder: diptych embed",
                    )
        whose, images, texts = np.asarray(self.caption_image), len(self.images), len(self.texts)
        numbers = whose.dtype.kind in "iu" and whose.shape == (texts,) == (len(self.captions),)
        if not images or not texts or not numbers or not 0 <= whose.min() <= whose.max() < images:
            raise DataError(
                f"{images:,} rows of images, {texts:,} rows of captions, {len(self.captions):,} captions, "
                f"image numbers {whose.dtype} of shape {whose.shape}",
                "give the captions that were embedded, in their order, and of each the row of its image",
            )
        self.images.check_finite()
        self.texts.check_finite()


class PairBatch(NamedTuple):
    """A batch on its device; an image with several captions in the batch stands several times."""

    images: Tensor  # (n, d) float32 dense rows
    texts: Tensor  # (n, d) float32 dense rows
    in_caption: Tensor  # (n, |V|) boolean, which terms each caption contains


class Pairs:
    """All pairs of a caption and its image; which meet in a batch is a function of (seed, epoch)."""

    def __init__(self, rows: PairedRows, caption_terms: csr_array, batch_size: int, seed: int) -> None:
        self._rows, self._whose = rows, np.asarray(rows.caption_image)
        self._terms, self._seed = caption_terms, seed
        self.steps: int = -(-len(self._whose) // batch_size)  # per epoch

    def __len__(self) -> int:
        return len(self._whose)

    @property
    def document_frequency(self) -> np.ndarray:
        return np.bincount(self._terms.indices, minlength=self._terms.shape[1]) / len(self)

    def epoch(self, epoch: int) -> list[np.ndarray]:
        order = np.random.default_rng([self._seed, epoch]).permutation(len(self))
        return np.array_split(order, self.steps)

    def load(self, captions: np.ndarray, device: torch.device) -> PairBatch:
        rows = self._rows.images.rows[self._whose[captions]], self._rows.texts.rows[captions]
        images, texts = (torch.from_numpy(np.asarray(one, dtype=np.float32)).to(device) for one in rows)
        return PairBatch(images, texts, term_mask(self._terms[captions], device))


class Validation:
    """Measures a head as it is searched with later: with expansion, unless the head never has any."""

    def __init__(self, rows: PairedRows) -> None:
        """Take at most 1,000 images, evenly spaced, with all their captions."""
        count = min(_MOST_IMAGES, len(rows.images))
        images = np.linspace(0, len(rows.images) - 1, count).round().astype(np.int64)
        captions = np.argsort(rows.caption_image, kind="stable")
        captions = captions[np.isin(rows.caption_image[captions], images)]
        whose = np.searchsorted(images, rows.caption_image[captions])
        self._truth = GroundTruth.from_caption_image(whose, count)
        self._images, self._texts = rows.images.rows[images], rows.texts.rows[captions]
        self._captions = [rows.captions[row] for row in captions.tolist()]

    def measure(self, head: Sparsifier) -> dict[str, float]:
        """Return recalls in per cent (``t2i R@5``, …), ``rsum``, ``flops`` (Eq. 3.1) and non-zeros of either side."""
        own = None if head.expands else head.vocabulary.caption_terms(self._captions)
        images, texts = head.sparsify(self._images, "image"), head.sparsify(self._texts, "text", own)
        result = evaluate(images, texts, self._truth, (*_RECALLS, "rsum"))
        counts = (
            torch.from_numpy(np.bincount(rows.indices, minlength=rows.shape[1])) for rows in (images, texts)
        )
        of_images, of_texts = next(counts) / images.shape[0], next(counts).double() / texts.shape[0]
        values = {"rsum": result.value("rsum"), "flops": float(of_images.double() @ of_texts)}
        values |= {f"{way} {name}": 100 * result.value(name, way) for way in DIRECTIONS for name in _RECALLS}
        return values | {"image nonzeros": float(of_images.sum()), "text nonzeros": float(of_texts.sum())}


def rate_share(step: int, steps: int, warmup: int) -> float:
    """Return the share of its top that a learning rate has at a step from 0: up to step ``warmup``, down to 0."""
    if step < warmup:
        return (step + 1) / (warmup + 1)
    return (steps - step) / (steps - warmup)


@torch.no_grad()
def soft_targets(scores: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Return the distributions of (n, n) dense scores: of images (rows) over captions, and of captions over images."""
    scaled = scores / temperature
    return torch.softmax(scaled, dim=1), torch.softmax(scaled.T, dim=1)


def distillation_loss(scores: Tensor, targets: tuple[Tensor, Tensor]) -> Tensor:
    """Return the cross-entropy in nats of (n, n) sparse scores, the mean over queries and over both directions."""
    i2t, t2i = (functional.cross_entropy(*pair) for pair in zip((scores, scores.T), targets, strict=True))
    return (i2t + t2i) / 2


def words_loss(heads: SparseHeads, batch: PairBatch) -> Tensor:
    """Return the mean cross-entropy in nats of both sides' soft-maxes over all terms with the captions' own terms."""
    own = batch.in_caption / batch.in_caption.sum(dim=1, keepdim=True).clamp_min(1)
    sides = (head_of(heads, "image"), batch.images), (head_of(heads, "text"), batch.texts)
    outputs = (head.vocab_projector(head.hidden(rows)) for head, rows in sides)
    return torch.stack([functional.cross_entropy(one, own) for one in outputs]).mean()


def rise(step: int, steps: float) -> float:
    """Return the share of its weight that a regulariser has at a step counted from 0: quadratic, 1 from ``steps``."""
    return 1.0 if step >= steps else (step / steps) ** 2


def total_loss(
    distillation: Tensor, image_penalty: Tensor, text_penalty: Tensor, options: LossOptions, share: float
) -> Tensor:
    penalty = options.eta * share * (image_penalty + text_penalty)
    if options.weight is None:
        return distillation + penalty / 2
    bits = distillation * (2 / math.log(2))
    return (1 - options.weight) * bits + options.weight * penalty


class HeadFolder(TrainingFolder):
    """The folder of a head's training: what every training writes, the terms, the head, and rows without a home."""

    def __init__(self, folder: Path | str) -> None:
        super().__init__(folder)
        self.vocabulary, self.head = self.folder / "vocabulary", self.folder / "head"

    def compare(self, before: Mapping[str, Any], request: Mapping[str, Any]) -> None:
        """As of every training; those that were begun before there was a choice of terms are as published."""
        super().compare({**PUBLISHED, **before}, request)

    def check_options(self, options: SparsifyOptions) -> None:
        self.check(options.model_dump(mode="json"), allowed=("embeddings",), whole=False)


class HeadTask(TrainingTask):
    """Distils dense scores into a head; ``similarity``: of the dense rows, ``precision``: of matrix products."""

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
        self.control: ExpansionControl = ExpansionControl(
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
        if loss.words:
            total = total + loss.words * words_loss(self.heads, pairs)
        return total, distillation, (found.image_penalty + found.text_penalty) / 2

    def after_step(self, place: Place, result: StepResult) -> None:
        self._sums += torch.stack([torch.as_tensor(loss) for loss in result.losses[0]])

    def after_epoch(self, place: Place) -> None:
        """Log the epoch; measure and keep the head where it is due."""
        means = (self._sums / self.steps_per_epoch).tolist()
        self._sums.zero_()
        values = {"epoch": place.epoch, "step": place.step, **dict(zip(_MEANS, means, strict=True))}
        values |= {"p_c": self.control.probability(place.epoch - 1), **self._nonzeros()}
        training, last = self.options.training, place.epoch == self.epochs
        best, warmup = training.select == "best", max(training.warmup, self.options.loss.warmup)
        warm = place.step >= round(warmup * self._steps)
        # About ten epochs are measured; to choose the best, all whose rates and regulariser have risen.
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
