"""Train: from a catalogue and embeddings of its products and categories to a ranker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.catalogue.catalogue import judge, nodes_on_paths, targets_of
from diptych.commerce.category_to_image.features import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.model import CategoryProductLoss, greatest_distance, tree_margins
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.trained import (
    ProductBatch,
    ProductInputs,
    TrainedModel,
    check_encoders,
    encoders_of,
    tensor_of,
    untrained_model,
)
from diptych.core.draws import draw_uniform, keys_of
from diptych.core.errors import DataError, MismatchError
from diptych.core.fingerprint import fingerprint_arrays, fingerprint_lists
from diptych.encoders.embeddings import Embeddings
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
_ORDER, _HIDDEN = (int(number) for number in keys_of(["order of products", "hidden modality"]))


def trained_products(catalogue: Catalogue, texts: Sequence[str], options: TrainOptions) -> np.ndarray:
    """Return the rows of the products that have a category; DataError where there is nothing to tell apart."""
    labels = targets_of(catalogue, options.setting, options.seed)
    products = np.flatnonzero(labels >= 0)
    if len(products) < 2:
        problem = f"{len(products)} of {len(catalogue):,} products have a category"
        raise DataError(problem, "give at least two that have one")
    words = {texts[node] for node in np.unique(labels[products]).tolist()}
    if len(words) < 2 and not options.resample:
        problem = f"all {len(products):,} products ask with the words {words.pop()!r}"
        raise DataError(
            problem, "a contrastive loss needs two categories: choose another setting, or query=path"
        )
    return products


def batches_of(n: int, size: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Return all of 0, …, n − 1 once, in an order of the epoch's own, ``size`` at a time.

    A last batch of a single pair, which has no negative, is part of the one before.
    """
    order = np.argsort(draw_uniform(seed, _ORDER, epoch, np.arange(n)), kind="stable")
    ends = list(range(size, n, size))
    if ends and n - ends[-1] == 1:
        ends.pop()
    return np.split(order, ends)


class PairBatch(NamedTuple):
    """A batch of category–product pairs."""

    products: ProductBatch
    categories: Tensor  # (q, width) embeddings of the categories of different words among them
    query: Tensor  # (β,) which of those each pair has
    nodes: np.ndarray  # (β,) the category of each


class ProductTask(TrainingTask):
    """Trains the heads of products and categories; the best epoch's are kept where there is validation."""

    def __init__(
        self,
        folder: TrainingFolder,
        begun: TrainedModel,
        catalogue: Catalogue,
        features: ProductFeatures,
        categories: CategoryFeatures,
        validation: tuple[Catalogue, ProductFeatures] | None,
    ) -> None:
        self.folder, self.begun, self.model, self.options = folder, begun, begun.model, begun.options
        self.catalogue, self.categories, self.validation = catalogue, categories, validation
        options = begun.options
        if validation is not None:  # judged once, measured after every epoch
            self._judged = judge(validation[0], options.setting, "label", options.seed)
        self.products = trained_products(catalogue, categories.texts, options)
        # Categories of the same words have the same embedding: to the model they are one.
        known: dict[str, int] = {}
        self.query_of = np.array([known.setdefault(text, node) for node, text in enumerate(categories.texts)])
        nodes = nodes_on_paths(catalogue)[1] if options.resample else self.labels(0)
        self._greatest = greatest_distance(catalogue.tree, nodes)
        self.inputs = ProductInputs(features, options)
        self.loss = CategoryProductLoss(options.temperature, options.learn_temperature, options.balance)
        self.module = nn.ModuleDict({"model": begun.model, "loss": self.loss})
        self.title = f"training {options.model}"
        self.epochs, self.seed = options.epochs, options.seed
        self.steps_per_epoch = len(self.batches(0))
        self._sum = 0.0
        self._best: dict[str, Tensor] = {}

    def labels(self, epoch: int) -> np.ndarray:
        """(products,) int64: the category of each pair in this epoch."""
        options = self.options
        drawn = epoch if options.resample else None
        labels: np.ndarray = targets_of(self.catalogue, options.setting, options.seed, drawn)[self.products]
        return labels

    def batches(self, epoch: int) -> list[tuple[np.ndarray, np.ndarray]]:
        labels = self.labels(epoch)
        order = batches_of(len(labels), self.options.batch_size, self.options.seed, epoch)
        return [(self.products[chosen], labels[chosen]) for chosen in order]

    def load(self, batch: tuple[np.ndarray, np.ndarray], epoch: int) -> PairBatch:
        """Return their embeddings; a modality that is hidden in this epoch is missing."""
        (products, nodes), share, n = batch, self.options.modality_dropout, len(self.options.modalities)
        hidden = None
        if share and n > 1:
            draws = draw_uniform(self.options.seed, _HIDDEN, epoch, products)
            hidden = np.where(draws < share, (draws / share * n).astype(np.int64), -1)
        # A category that several pairs share goes through its head once; the loss sees a row per pair all the same.
        queries, query = np.unique(self.query_of[nodes], return_inverse=True)
        rows = tensor_of(self.categories.text[queries])
        return PairBatch(self.inputs.batch(products, hidden), rows, torch.from_numpy(query), nodes)

    def optimizer(self, epoch: int) -> torch.optim.Optimizer:
        """Return AdamW; a decay of log(1/τ) would pull τ to 1, so it has none."""
        decayed, rate = dict(self.module.named_parameters()), self.options.learning_rate
        scale = decayed.pop("loss.log_scale", None)
        group = {"params": list(decayed.values()), "weight_decay": self.options.weight_decay}
        groups = [group] if scale is None else [group, {"params": [scale], "weight_decay": 0.0}]
        return torch.optim.AdamW([{**one, "lr": rate, "scale": rate} for one in groups], fused=True)

    def losses(self, batch: MicroBatch) -> tuple[Tensor]:
        given: PairBatch = batch.data
        p, c = self.model.products(*given.products), self.model.categories(given.categories)
        scores = (c @ p.T).index_select(0, given.query)
        is_masked = self.options.duplicates == "masked"
        same = given.query[:, None] == given.query[None, :] if is_masked else None
        margins, strength = None, self.options.tree_distance
        if strength:
            tree = self.catalogue.tree
            margins = torch.from_numpy(tree_margins(tree, given.nodes, strength, self._greatest))
        return (self.loss(scores, same, margins),)

    def after_step(self, place: Place, result: StepResult) -> None:
        self._sum += result.values[0] * len(result.data.nodes)

    def after_epoch(self, place: Place) -> None:
        """Measure the validation products, keep the best heads, log; stop where nothing can be better."""
        values: dict[str, float] = {"loss": self._sum / len(self.products), **self.loss.logged()}
        self._sum = 0.0
        if self.validation is not None:
            values |= self._measured(self.validation[1])
            if place.judge(values[CHOOSES], self.options.patience):
                self._best = {name: value.clone() for name, value in self.model.state_dict().items()}
            place.stopped |= place.best >= 1
        self.folder.log(epoch=place.epoch, step=place.step, **values)

    def _measured(self, features: ProductFeatures) -> dict[str, float]:
        products = self.begun.product_rows(features)[self._judged.products]
        queries = self.begun.category_rows(self.categories.part(self._judged.nodes))
        result = evaluate(products, queries, self._judged.truth, _MEASURES)
        return {name: float(result.value(name, "t2i")) for name in _MEASURES}

    def state(self) -> Mapping[str, Tensor]:
        return {"sum": torch.tensor(self._sum, dtype=torch.float64), **self._best}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self._sum = float(state.pop("sum"))
        self._best = state

    def trained(self, place: Place) -> TrainedModel:
        if self._best:
            self.model.load_state_dict(self._best)
        metrics = [
            {key: value for key, value in line.items() if key != "step"} for line in self.folder.metrics()
        ]
        taken = place.best_epoch or place.epoch
        about = {
            "products": len(self.products),
            "without_category": len(self.catalogue) - len(self.products),
            "epochs": place.epoch,
            "best_epoch": taken,
            "chosen_by": None if self.validation is None else CHOOSES,
            "temperature": metrics[taken - 1].get("temperature", self.options.temperature),
            "metrics": metrics,
        }
        return replace(self.begun, about=about)


def train(
    catalogue: Catalogue,
    features: ProductFeatures,
    categories: CategoryFeatures,
    options: TrainOptions,
    out: Path | str | None = None,
    *,
    validation: tuple[Catalogue, ProductFeatures] | None = None,
) -> TrainedModel:
    """Train the heads of one model on stored embeddings.

    The same catalogue, embeddings, options and versions give the same bits on one thread of a CPU, stopped and resumed
    or not. Products without a category are left out; ``about`` of the result counts them. ``features`` are of the
    catalogue's products, ``categories`` of all nodes of its tree; with ``validation`` the best epoch by mAP@10 is kept,
    else the last. A training that was stopped in the folder ``out`` resumes; nothing is kept without it.
    """
    _check(catalogue, features, categories, options, validation)
    encoders = encoders_of(features.about, options.modalities)
    request: dict[str, Any] = {
        **options.model_dump(mode="json"),
        "encoders": encoders,
        "products": catalogue.fingerprint,
        "query texts": fingerprint_lists(categories.texts),
        "validation": None if validation is None else validation[0].fingerprint,
    }
    missing = missing_pictures([features.pictured, *([] if validation is None else [validation[1].pictured])])
    if missing and "image" in options.modalities:
        request["products without a picture"] = missing
    with TemporaryDirectory() if out is None else nullcontext(out) as place_of_training:
        folder = TrainingFolder(place_of_training)
        folder.check(request, beside=())
        with folder.held():
            if folder.finished:
                return TrainedModel.open(folder.folder / "model")
            widths = {one: features.width(one) for one in options.modalities}
            model = untrained_model(options, widths, int(categories.text.shape[1]))
            begun = TrainedModel(model, options, encoders)
            task = ProductTask(folder, begun, catalogue, features, categories, validation)
            folder.begin(request)
            resume = None if out is None else "the same call resumes"
            saving, fabric = Saving(epochs=out is not None), single_device(torch.device("cpu"))
            trained = task.trained(Trainer(task, folder, fabric, saving, resume).train())
            if out is not None:
                trained.save(folder.folder / "model")
                folder.finish()
            return trained


def missing_pictures(pictured: Iterable[np.ndarray]) -> str:
    """Return which products stand without an image, in words that change with them: fingerprints cover no images."""
    masks = {str(part): mask for part, mask in enumerate(pictured)}
    missing = sum(int((~mask).sum()) for mask in masks.values())
    return f"{missing:,} missing ({fingerprint_arrays(masks)})" if missing else ""


def _check(
    catalogue: Catalogue,
    features: ProductFeatures,
    categories: CategoryFeatures,
    options: TrainOptions,
    validation: tuple[Catalogue, ProductFeatures] | None,
) -> None:
    for products, rows in ((catalogue, features), *([] if validation is None else [validation])):
        if list(rows.ids) != list(products.ids):
            problem = f"features of {len(rows):,} products, {len(products):,} in the catalogue"
            raise MismatchError(f"{problem}, or in another order", "make the features of this very catalogue")
        if len(categories) != len(products.tree) or products.tree.fingerprint != catalogue.tree.fingerprint:
            problem = f"rows of {len(categories):,} categories, the tree has {len(products.tree):,}"
            raise MismatchError(problem, "split one catalogue, and give the rows of all nodes, in node order")
    check_encoders(encoders_of(features.about, ("title",)), categories.about, ("title",))
    for one in options.modalities:
        if not np.any(features.present(one)):
            raise DataError(f"no product has a row of {one}", f"train a model without {one}")
    parts = {"title": features.title, "attribute": features.attribute_rows, "category": categories.text}
    if "image" in options.modalities and features.image is not None:
        parts["image"] = features.image
    for kind, found in parts.items():
        known = {"image": features.ids, "title": features.ids, "category": categories.texts}
        names = known.get(kind, list(map(str, range(len(found)))))
        Embeddings(names, found, "", "", kind, {}).check_finite()
