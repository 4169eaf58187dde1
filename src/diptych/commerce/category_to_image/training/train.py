"""Train: from a catalogue and rows of its products and categories to a ranker."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.catalogue.catalogue import judge
from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.loss import CategoryProductLoss
from diptych.commerce.category_to_image.model import CategoryProductModel
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.training.trained import (
    Batch,
    Pairs,
    ProductFeed,
    TrainedModel,
    check_encoders,
    encoder_marks,
    gathered,
    missing_pictures,
    model_of,
)
from diptych.core.draws import draw_uniform, keys_of
from diptych.core.errors import DataError, MismatchError, NumericalError
from diptych.core.fingerprint import fingerprint_lists
from diptych.evaluation import evaluate
from diptych.training.checkpoint import Place
from diptych.training.run import TrainingFolder
from diptych.training.trainer import (
    MicroBatch,
    Saving,
    StepResult,
    Trainer,
    TrainingTask,
    single_device,
)

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


def batches_of(n: int, size: int, seed: int, epoch: int) -> list[np.ndarray]:
    """All of 0, …, n − 1 once, in an order of this epoch's own, ``size`` at a time; the last batch may be smaller.

    A last one of a single pair, which has nothing to be told apart from, is part of the one before.
    """
    order = np.argsort(draw_uniform(seed, _ORDER, epoch, np.arange(n)), kind="stable")
    ends = list(range(size, n, size))
    if ends and n - ends[-1] == 1:
        ends.pop()
    return np.split(order, ends)


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


class ProductBatch(NamedTuple):
    """A batch of category–product pairs."""

    products: np.ndarray  # (β,) rows of the catalogue
    nodes: np.ndarray  # (β,) the category of each
    asking: np.ndarray  # (q,) categories of different words among them
    pair: Tensor  # (β,) which of those each is
    features: Batch  # of the products
    categories: Tensor  # (q, width) rows


class ProductTask(TrainingTask):
    """Trains the heads of products and categories; the best epoch's are kept where there is validation."""

    def __init__(
        self,
        folder: TrainingFolder,
        model: CategoryProductModel,
        options: TrainOptions,
        encoders: dict[str, str],
        pairs: Pairs,
        features: ProductFeatures,
        categories: CategoryFeatures,
        validation: Validation | None,
    ) -> None:
        self.folder, self.model, self.options, self.encoders = folder, model, options, encoders
        self.pairs, self.categories, self.validation = pairs, categories, validation
        self.feed = ProductFeed(features, options.modalities, pool=options.attributes == "mean")
        self.loss = CategoryProductLoss(
            options.temperature, options.learn_temperature, options.balance, options.duplicates
        )
        self.module = nn.ModuleDict({"model": model, "loss": self.loss})
        self.title = f"training {options.model}"
        self.epochs, self.seed = options.epochs, options.seed
        self.steps_per_epoch = len(batches_of(len(pairs.products), options.batch_size, options.seed, 0))
        self._sum = 0.0
        self._best: dict[str, Tensor] = {}

    def batches(self, epoch: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return products and categories of each batch."""
        products, labels = self.pairs.products, self.pairs.labels(epoch)
        order = batches_of(len(labels), self.options.batch_size, self.options.seed, epoch)
        return [(products[chosen], labels[chosen]) for chosen in order]

    def load(self, batch: tuple[np.ndarray, np.ndarray], epoch: int) -> ProductBatch:
        """Return their rows; a modality that is hidden in this epoch is missing."""
        (products, nodes), options = batch, self.options
        hidden = hidden_modalities(
            options.modality_dropout, len(options.modalities), options.seed, epoch, products
        )
        # A category that several pairs share goes through its head once; the loss sees a row per pair all the same.
        asking, whose = np.unique(self.pairs.asking(nodes), return_inverse=True)
        rows = gathered(self.categories.text, asking)
        return ProductBatch(
            products, nodes, asking, torch.from_numpy(whose), self.feed.batch(products, hidden), rows
        )

    def optimizer(self, epoch: int) -> torch.optim.Optimizer:
        """Return AdamW; a decay of log(1/τ) would pull τ to 1, so it has none."""
        named, options = dict(self.module.named_parameters()), self.options
        scale = named.pop("loss.log_scale", None)
        groups = [(list(named.values()), options.weight_decay), ([] if scale is None else [scale], 0.0)]
        rate = options.learning_rate
        return torch.optim.AdamW(
            [
                {"params": parameters, "weight_decay": decay, "lr": rate, "scale": rate}
                for parameters, decay in groups
                if parameters
            ],
            fused=True,
        )

    def losses(self, batch: MicroBatch) -> tuple[Tensor]:
        """Return the contrastive loss."""
        given, place, options = batch.data, batch.place, self.options
        keep = None
        if options.dropout:
            keep = StepDropout(options.dropout, options.seed, place.epoch, place.position)
        p = self.model.products(given.features.rows, given.features.present, keep)
        c = self.model.categories(given.categories, keep)
        scores = (c @ p.T).index_select(0, given.pair)
        same = None if options.duplicates == "negatives" else given.pair[:, None] == given.pair[None, :]
        margins = self.pairs.margins(given.nodes)
        return (self.loss(scores, same, None if margins is None else torch.from_numpy(margins)),)

    def explain(self, data: ProductBatch) -> None:
        """Name the product or category whose row is not finite."""
        self.feed.check(data.products)
        wrong = data.asking[~np.isfinite(self.categories.text[data.asking]).all(axis=1)]
        if len(wrong):
            raise NumericalError(
                f"the row of category {self.categories.texts[int(wrong[0])]!r} is not finite",
                "make the features again",
            )

    def after_step(self, place: Place, result: StepResult) -> None:
        """Add up the losses of the epoch's pairs."""
        self._sum += result.values[0] * len(result.data.products)

    def after_epoch(self, place: Place) -> None:
        """Measure the validation products, keep the best heads, log."""
        values: dict[str, float] = {"loss": self._sum / len(self.pairs.products)}
        self._sum = 0.0
        temperature = self.loss.temperature
        if isinstance(temperature, Tensor):
            values["temperature"] = float(temperature.detach())
        if self.validation is not None:
            measured = self.validation.measure(TrainedModel(self.model, self.options, self.encoders))
            values |= measured
            if place.judge(measured[CHOOSES], self.options.patience):
                self._best = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.folder.log(epoch=place.epoch, step=place.step, **values)

    def state(self) -> Mapping[str, Tensor]:
        """Return the unfinished epoch's sum and the best weights."""
        return {"sum": torch.tensor(self._sum, dtype=torch.float64), **self._best}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Resume with them."""
        self._sum = float(state.pop("sum"))
        self._best = state

    def trained(self, place: Place) -> TrainedModel:
        """Return the model of the best epoch, or of the last without validation."""
        if self._best:
            self.model.load_state_dict(self._best)
        metrics = [
            {name: value for name, value in line.items() if name != "step"} for line in self.folder.metrics()
        ]
        taken = place.best_epoch or place.epoch
        about = {
            "products": len(self.pairs.products),
            "without_category": self.pairs.left_out,
            "epochs": place.epoch,
            "best_epoch": taken,
            "chosen_by": None if self.validation is None else CHOOSES,
            "temperature": metrics[taken - 1].get("temperature", self.options.temperature),
            "metrics": metrics,
        }
        return TrainedModel(self.model, self.options, self.encoders, about)


def train(
    catalogue: Catalogue,
    features: ProductFeatures,
    categories: CategoryFeatures,
    options: TrainOptions,
    out: Path | str | None = None,
    *,
    validation: tuple[Catalogue, ProductFeatures] | None = None,
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
        **options.model_dump(mode="json"),
        "encoders": encoders,
        "products": catalogue.fingerprint,
        "query texts": fingerprint_lists(categories.texts),
        "validation": None if validation is None else validation[0].fingerprint,
    }
    looked_at = (features, *(() if validation is None else validation[1:]))
    missing = missing_pictures(part.pictured for part in looked_at)
    if missing and "image" in options.modalities:
        request["products without a picture"] = missing
    with TemporaryDirectory() if out is None else nullcontext(out) as place_of_training:
        folder = TrainingFolder(place_of_training)
        folder.check(request, beside=())
        with folder.held():
            if folder.finished:
                return TrainedModel.open(folder.folder / "model")
            pairs = Pairs(catalogue, categories.texts, options)
            judged = None if validation is None else Validation(*validation, categories, options)
            widths = {one: features.width(one) for one in options.modalities}
            model = model_of(options, widths, int(categories.text.shape[1]))
            task = ProductTask(folder, model, options, encoders, pairs, features, categories, judged)
            folder.begin(request)
            resume = None if out is None else "the same call resumes"
            fabric = single_device(torch.device("cpu"))
            place = Trainer(task, folder, fabric, Saving(epochs=out is not None), resume).train()
            trained = task.trained(place)
            if out is not None:
                trained.save(folder.folder / "model")
                folder.finish()
            return trained


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
