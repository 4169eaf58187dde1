"""The loop: batches of pairs, the loss, AdamW, validation after every epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.loss.contrastive import CategoryProductLoss
from diptych.commerce.category_to_image.model.product import CategoryProductModel
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.training.adamw import AdamW
from diptych.commerce.category_to_image.training.chance import StepDropout, batches_of, hidden_modalities
from diptych.commerce.category_to_image.training.checkpoint import Place
from diptych.commerce.category_to_image.training.feeding import ProductFeed, gathered
from diptych.commerce.category_to_image.training.journal import Journal
from diptych.commerce.category_to_image.training.pairs import Pairs
from diptych.commerce.category_to_image.training.trained import TrainedModel
from diptych.commerce.category_to_image.training.validation import CHOOSES, Validation
from diptych.core.errors import Interrupted, NumericalError
from diptych.core.progress import task

__all__ = ["Loop"]


class Loop:
    """One training, from where its journal stands to its end.

    Args:
        model: with the weights it begins with.
        options: of the training.
        encoders: fingerprints for the trained model.
        pairs: what is trained on.
        features: rows of the products.
        categories: rows of all nodes.
        validation: what chooses the best epoch; None for the last.
        journal: where state and metrics go.
        should_stop: asked before every step.
    """

    def __init__(
        self,
        model: CategoryProductModel,
        options: TrainOptions,
        encoders: Mapping[str, str],
        pairs: Pairs,
        features: ProductFeatures,
        categories: CategoryFeatures,
        validation: Validation | None,
        journal: Journal,
        should_stop: Callable[[], bool],
    ) -> None:
        self._model = model
        self._options = options
        self._encoders = encoders
        self._pairs = pairs
        self._feed = ProductFeed(features, options.modalities, pool=options.attributes == "mean")
        self._categories = categories
        self._validation = validation
        self._journal = journal
        self._should_stop = should_stop
        self._loss = CategoryProductLoss(
            options.temperature, options.learn_temperature, options.balance, options.duplicates
        )
        self._trained = nn.ModuleDict({"model": model, "loss": self._loss})
        self._optimizer = AdamW(
            dict(self._trained.named_parameters()),
            options.learning_rate,
            options.weight_decay,
            frozenset({"loss.log_scale"}),  # a decay of log(1/τ) would pull τ to 1
        )

    def run(self) -> TrainedModel:
        """Train to the end; gives the model of the best epoch, or of the last without validation."""
        options = self._options
        place, best = self._journal.resume(self._trained, self._optimizer)
        n = len(self._pairs.products)
        total = options.epochs * n
        with task(f"training {options.model}", total, "pairs", place.epoch * n) as bar:
            while place.epoch < options.epochs and not self._patience_is_out(place):
                self._epoch(place, best, bar)
                values: dict[str, float] = {"loss": place.loss / n}
                temperature = self._loss.temperature
                if isinstance(temperature, Tensor):
                    values["temperature"] = float(temperature.detach())
                place.epoch, place.step, place.loss = place.epoch + 1, 0, 0.0
                if self._validation is not None:
                    measured = self._validation.measure(self._as_trained({}))
                    values |= measured
                    if place.judge(measured[CHOOSES]):
                        best = {name: value.clone() for name, value in self._model.state_dict().items()}
                self._journal.log(epoch=place.epoch, **values)
                self._journal.save(self._trained, self._optimizer, best, place)
        if best is not None:
            self._model.load_state_dict(best)
        made = self._as_trained(self._about(place))
        self._journal.end(made)
        return made

    def _patience_is_out(self, place: Place) -> bool:
        return self._options.patience is not None and place.waited >= self._options.patience

    def _epoch(self, place: Place, best: dict[str, Tensor] | None, bar: Any) -> None:
        """The steps of the epoch that ``place`` stands in."""
        options, epoch = self._options, place.epoch
        labels = self._pairs.labels(epoch)
        done = 0
        for step, chosen in enumerate(batches_of(len(labels), options.batch_size, options.seed, epoch)):
            if step < place.step:
                continue
            if self._should_stop():
                self._journal.save(self._trained, self._optimizer, best, place)
                kept = "the same call goes on from here" if self._journal.folder else "nothing was kept"
                raise Interrupted(f"training stopped in epoch {epoch + 1} of {options.epochs}", kept)
            place.loss += self._step(self._pairs.products[chosen], labels[chosen], epoch, step) * len(chosen)
            place.step = step + 1
            done += len(chosen)
            if step % 16 == 15:
                bar.advance(done)
                done = 0
        bar.advance(done, f"loss {place.loss / len(labels):.4f}")

    def _step(self, products: np.ndarray, nodes: np.ndarray, epoch: int, step: int) -> float:
        """One batch: loss, gradients, new weights."""
        options = self._options
        keep = StepDropout(options.dropout, options.seed, epoch, step) if options.dropout else None
        hidden = hidden_modalities(
            options.modality_dropout, len(options.modalities), options.seed, epoch, products
        )
        batch = self._feed.batch(products, hidden)
        # A category that several pairs share goes through its head once; the loss sees a row per pair all the same.
        asking, whose = np.unique(self._pairs.asking(nodes), return_inverse=True)
        p = self._model.products(batch.rows, batch.present, keep)
        c = self._model.categories(gathered(self._categories.text, asking), keep)
        pair = torch.from_numpy(whose)
        scores = (c @ p.T).index_select(0, pair)
        same = None if options.duplicates == "negatives" else pair[:, None] == pair[None, :]
        margins = self._pairs.margins(nodes)
        loss = self._loss(scores, same, None if margins is None else torch.from_numpy(margins))
        value = float(loss.detach())
        if not np.isfinite(value):
            self._feed.check(products)
            self._check_categories(asking)
            raise NumericalError(
                f"the loss is {value} in step {step + 1} of epoch {epoch + 1}", "lower the learning rate"
            )
        loss.backward()
        self._optimizer.step()
        return value

    def _check_categories(self, nodes: np.ndarray) -> None:
        wrong = nodes[~np.isfinite(self._categories.text[nodes]).all(axis=1)]
        if len(wrong):
            raise NumericalError(
                f"the row of category {self._categories.texts[int(wrong[0])]!r} is not finite",
                "make the features again",
            )

    def _as_trained(self, about: Mapping[str, Any]) -> TrainedModel:
        return TrainedModel(self._model, self._options, self._encoders, about)

    def _about(self, place: Place) -> dict[str, Any]:
        metrics = self._journal.metrics
        taken = place.best_epoch or place.epoch
        return {
            "products": len(self._pairs.products),
            "without_category": self._pairs.left_out,
            "epochs": place.epoch,
            "best_epoch": taken,
            "chosen_by": None if self._validation is None else CHOOSES,
            "temperature": metrics[taken - 1].get("temperature", self._options.temperature),
            "metrics": metrics,
        }
