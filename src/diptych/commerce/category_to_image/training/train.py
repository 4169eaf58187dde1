"""Train: from a catalogue and rows of its products and categories to a ranker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.catalogue.judging import judge
from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.loss.contrastive import CategoryProductLoss
from diptych.commerce.category_to_image.model.product import CategoryProductModel
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.training.adamw import AdamW
from diptych.commerce.category_to_image.training.checkpoint import Place
from diptych.commerce.category_to_image.training.feeding import ProductFeed, gathered
from diptych.commerce.category_to_image.training.identity import (
    check_encoders,
    encoder_marks,
    missing_pictures,
)
from diptych.commerce.category_to_image.training.journal import Journal
from diptych.commerce.category_to_image.training.pairs import Pairs
from diptych.commerce.category_to_image.training.trained import TrainedModel, model_of
from diptych.core.context import task
from diptych.core.draws import draw_uniform, keys_of
from diptych.core.errors import DataError, Interrupted, MismatchError, NumericalError
from diptych.core.fingerprint import fingerprint_lists
from diptych.evaluation import evaluate

CHOOSES = "mAP@10"
"""The measure by which the best epoch is chosen: category→product, divided by min(10, relevant products)."""

_MEASURES = (CHOOSES, "P@10")


class Validation:
    """Validation products, judged once and measured as often as asked."""

    def __init__(
        self,
        catalogue: Catalogue,
        features: ProductFeatures,
        categories: CategoryFeatures,
        options: TrainOptions,
    ) -> None:
        if list(catalogue.ids) != list(features.ids):
            raise MismatchError(
                "the validation features are not of the validation products", "make them of these"
            )
        self._judged = judge(catalogue, options.setting, "label", options.seed)
        self._features = features
        nodes = self._judged.nodes
        self._categories = CategoryFeatures(
            [categories.texts[node] for node in nodes.tolist()],
            categories.text[nodes],
            None,
            categories.about,
        )

    def measure(self, model: TrainedModel) -> dict[str, float]:
        """mAP@10 and P@10 of categories that ask for products, in [0, 1]."""
        products = model.product_rows(self._features)
        if len(self._judged.products) < len(products):
            products = np.ascontiguousarray(products[self._judged.products])
        result = evaluate(products, model.category_rows(self._categories), self._judged.truth, _MEASURES)
        return {name: float(result.value(name, "t2i")) for name in _MEASURES}


_ORDER, _HIDDEN, _DROPOUT = (
    int(number) for number in keys_of(["order of products", "hidden modality", "dropout of heads"])
)
_SIXTEEN_BITS = 1 << 16


def batches_of(n: int, size: int, seed: int, epoch: int) -> Iterator[np.ndarray]:
    """All of 0, …, n − 1 once, in an order of this epoch's own, ``size`` at a time; the last batch may be smaller.

    A last one of a single pair, which has nothing to be told apart from, is part of the one before.
    """
    order = np.argsort(draw_uniform(seed, _ORDER, epoch, np.arange(n)), kind="stable")
    ends = list(range(size, n, size))
    if ends and n - ends[-1] == 1:
        ends.pop()
    yield from np.split(order, ends)


def hidden_modalities(
    share: float, n_modalities: int, seed: int, epoch: int, rows: np.ndarray
) -> np.ndarray | None:
    """(len(rows),) number of the modality that is hidden of each product, -1 for none; None where none can be."""
    if not share or n_modalities < 2:
        return None
    draws = draw_uniform(seed, _HIDDEN, epoch, rows)
    return np.where(draws < share, (draws / share * n_modalities).astype(np.int64), -1)


class StepDropout:
    """Dropout of the hidden layers in one step: gives multipliers, other ones at every call."""

    def __init__(self, share: float, seed: int, epoch: int, step: int) -> None:
        self._least = round(share * _SIXTEEN_BITS)
        self._kept = np.float32(1 / (1 - self._least / _SIXTEEN_BITS))
        key = [seed % 2**64, (epoch << 40 | step << 8 | _DROPOUT & 0xFF) % 2**64]
        self._bits = np.random.Philox(key=np.array(key, dtype=np.uint64))

    def __call__(self, rows: int, width: int) -> Tensor:
        """(rows, width) float32: 0 where dropped, 1/(1 − share) elsewhere."""
        bits = self._bits.random_raw(-(-rows * width // 4)).view(np.uint16)[: rows * width]
        kept = torch.empty((rows, width), dtype=torch.float32)
        np.multiply(bits >= self._least, self._kept, out=kept.numpy().reshape(-1))
        return kept


class Loop:
    """One training, from where its journal stands to its end."""

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


def train(
    catalogue: Catalogue,
    features: ProductFeatures,
    categories: CategoryFeatures,
    options: TrainOptions,
    out: Path | str | None = None,
    *,
    validation: tuple[Catalogue, ProductFeatures] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> TrainedModel:
    """Train the heads of one model; frozen encoders have made the rows.

    Products without a category are not trained on; ``about`` of the result counts them. The same catalogue, rows,
    options and versions give the same bits on one thread of a CPU, stopped and resumed or not.
    """
    _check(catalogue, features, categories, options)
    if validation is not None and validation[0].tree.fingerprint != catalogue.tree.fingerprint:
        raise MismatchError("the validation products are of another category tree", "split one catalogue")
    encoders = encoder_marks(features.about, options.modalities)
    request: dict[str, Any] = {
        "options": options.model_dump(mode="json"),
        "encoders": encoders,
        "products": catalogue.fingerprint,
        "query texts": fingerprint_lists(categories.texts),
        "validation": None if validation is None else validation[0].fingerprint,
    }
    looked_at = (features, *(() if validation is None else validation[1:]))
    missing = missing_pictures(part.pictured for part in looked_at)
    if missing and "image" in options.modalities:
        request["products without a picture"] = missing
    with Journal.begun(out, request) as journal:
        made = journal.model()
        if made is not None:
            return made
        pairs = Pairs(catalogue, categories.texts, options)
        judged = None if validation is None else Validation(*validation, categories, options)
        widths = {one: features.width(one) for one in options.modalities}
        model = model_of(options, widths, int(categories.text.shape[1]))
        loop = Loop(model, options, encoders, pairs, features, categories, judged, journal, should_stop)
        return loop.run()


def _check(
    catalogue: Catalogue, features: ProductFeatures, categories: CategoryFeatures, options: TrainOptions
) -> None:
    if len(features) != len(catalogue) or list(features.ids) != list(catalogue.ids):
        raise MismatchError(
            f"features of {len(features):,} products, {len(catalogue):,} in the catalogue, or in another order",
            "make the features of this very catalogue",
        )
    if len(categories) != len(catalogue.tree):
        raise MismatchError(
            f"rows of {len(categories):,} categories, the tree has {len(catalogue.tree):,}",
            "give the rows of all nodes, in node order",
        )
    check_encoders(encoder_marks(features.about, ("title",)), categories.about, ("title",))
    for one in options.modalities:
        if not np.any(features.present(one)):
            raise DataError(f"no product has a row of {one}", f"train a model without {one}")
