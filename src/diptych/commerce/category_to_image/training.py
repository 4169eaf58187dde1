"""Train: from a catalogue and embeddings of its products and categories to a ranker."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from diptych.commerce.catalogue import Catalogue, judge, nodes_on_paths, targets_of
from diptych.commerce.category_to_image.features import (
    CategoryFeatures,
    Modality,
    ProductFeatures,
    TrainOptions,
    encoders_of,
)
from diptych.commerce.category_to_image.model import (
    Bags,
    CategoryProductLoss,
    CategoryProductModel,
    greatest_distance,
    tree_margins,
)
from diptych.commerce.category_to_image.rankers import Ranker, check_encoders, measure_ranker
from diptych.core.draws import draw_uniform, keys_of
from diptych.core.errors import DataError
from diptych.core.fingerprint import fingerprint, fingerprint_arrays
from diptych.encoders.inputs import weights_fingerprint
from diptych.training.checkpoint import Place
from diptych.training.run import TrainingFolder
from diptych.training.trainer import MicroBatch, Saving, StepResult, Trainer, TrainingTask, single_device

CHOOSES = "mAP@10"
"""The measure by which the best epoch is chosen: category→product, divided by min(10, relevant products)."""

_ORDER, _HIDDEN = (int(number) for number in keys_of(["order of products", "hidden modality"]))
_BLOCK = 2048

ProductBatch = tuple[dict[Modality, Tensor | Bags], dict[Modality, Tensor]]
"""What the model takes of some products: rows, and (n,) booleans of the modalities that some of them lack."""


def _tensor_of(rows: np.ndarray) -> Tensor:
    """Return float32 rows in memory of PyTorch's own, whose alignment the order of its sums depends on."""
    return torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32)).clone()


def product_batch(
    features: ProductFeatures, options: TrainOptions, rows: np.ndarray, hidden: np.ndarray | None = None
) -> ProductBatch:
    """Return the products ``rows``; ``hidden`` numbers a modality each that counts as missing, -1 for none."""
    present = {one: features.present[one][rows] for one in options.modalities}
    if hidden is not None:
        spare = sum(there.astype(np.int64) for there in present.values()) > 1
        present = {one: of & ~((hidden == place) & spare) for place, (one, of) in enumerate(present.items())}
    given: dict[Modality, Tensor | Bags] = {}
    for one in options.modalities:
        if one != "attributes":
            given[one] = _tensor_of(getattr(features, one)[rows])
        elif options.attributes == "mean":
            given[one] = _tensor_of(features.attributes[rows] @ features.attribute_rows)
        else:
            bags = features.attributes[rows]
            start = torch.from_numpy(bags.indptr.astype(np.int64))
            given[one] = Bags(_tensor_of(features.attribute_rows[bags.indices]), start)
    return given, {one: torch.from_numpy(there) for one, there in present.items() if not there.all()}


@dataclass(frozen=True, eq=False)
class TrainedModel(Ranker):
    """A trained :class:`~.model.CategoryProductModel`; its rows are unit rows, so inner products are cosines.

    With a share z of zero-shot (``options.share_of_zero_shot``), embeddings of titles and category texts stand behind
    the trained rows, √z and √(1 − z) times: inner products are 1 − z times the trained cosine and z times the text
    encoder's own. Of a product without a title there is the trained row, of unit length.
    """

    model: CategoryProductModel
    options: TrainOptions  # how it was trained
    encoders: Mapping[str, str]  # fingerprints of the encoders whose embeddings it takes
    about: Mapping[str, Any] = field(default_factory=dict)  # on what it was trained, how far; JSON-able

    @classmethod
    def untrained(cls, options: TrainOptions, image: int, text: int, encoders: Mapping[str, str]) -> Self:
        """Return the model that options describe, for embeddings of these widths, with the weights of its seed."""
        widths = {one: image if one == "image" else text for one in options.modalities}
        shape = options.model_dump(include={"hidden", "width", "normalise", "attributes", "dropout"})
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            return cls(CategoryProductModel(widths, text, **shape), options, encoders)

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.options.model

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        share = [self.options.share_of_zero_shot] if self.options.share_of_zero_shot else []
        weights = weights_fingerprint(self.model.state_dict())
        return fingerprint(weights, self.options.normalise, dict(self.encoders), *share)

    def describe(self) -> dict[str, Any]:
        options = self.options.model_dump(mode="json")
        return {**super().describe(), "encoders": dict(self.encoders), "options": options}

    def product_rows(self, products: ProductFeatures) -> np.ndarray:
        check_encoders(self.name, self.encoders, products.about)

        def encode(rows: np.ndarray) -> Tensor:
            return self.model.products(*product_batch(products, self.options, rows))

        return self._rows(encode, products.title, products.present["title"])

    def category_rows(self, categories: CategoryFeatures) -> np.ndarray:
        check_encoders(self.name, {"text": self.encoders["text"]}, categories.about)
        text = categories.text
        return self._rows(lambda rows: self.model.categories(_tensor_of(text[rows])), text, True)

    def _rows(
        self, encode: Callable[[np.ndarray], Tensor], frozen: np.ndarray, there: np.ndarray | bool
    ) -> np.ndarray:
        """Return rows block by block; those that are ``there`` have their share of the ``frozen`` ones."""
        share = self.options.share_of_zero_shot
        self.model.eval()
        with torch.inference_mode():
            parts = [
                encode(rows) for rows in np.split(np.arange(len(frozen)), range(_BLOCK, len(frozen), _BLOCK))
            ]
            made: np.ndarray = torch.cat(parts).numpy()
        if not share:
            return made
        left = np.where(there, np.sqrt(1 - share), 1).astype(np.float32)
        return np.concatenate([left.reshape(-1, 1) * made, np.float32(np.sqrt(share)) * frozen], axis=1)


def trained_products(catalogue: Catalogue, texts: Sequence[str], options: TrainOptions) -> np.ndarray:
    """Return the rows of the products that have a category; DataError where there is nothing to tell apart."""
    labels = targets_of(catalogue, options.setting, options.seed)
    products = np.flatnonzero(labels >= 0)
    if len(products) < 2:
        problem = f"{len(products)} of {len(catalogue):,} products have a category"
        raise DataError(problem, "give at least two that have one")
    words = {texts[node] for node in labels[products].tolist()}
    if len(words) < 2 and not options.resample:
        problem = f"all {len(products):,} products have the query {words.pop()!r}"
        fix = "a contrastive loss needs two categories: choose another setting, or query=path"
        raise DataError(problem, fix)
    return products


def batches_of(n: int, size: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Return 0, …, n − 1 in the epoch's own order, ``size`` at a time; a last single one, without a negative, joins."""
    order = np.argsort(draw_uniform(seed, _ORDER, epoch, np.arange(n)), kind="stable")
    ends = list(range(size, n, size))
    return np.split(order, ends[:-1] if ends and n - ends[-1] == 1 else ends)


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
        products: ProductFeatures,
        categories: CategoryFeatures,
        validation: ProductFeatures | None,
    ) -> None:
        options = begun.options
        self.folder, self.begun, self.options, self.validation = folder, begun, options, validation
        self.features, self.categories, self.catalogue = products, categories, products.catalogue
        if validation is not None:  # judged once, measured after every epoch
            self._judged = judge(validation.catalogue, options.setting, "label", options.seed)
        self.products = trained_products(self.catalogue, categories.texts, options)
        # Categories of the same words have the same embedding: to the model they are one.
        known: dict[str, int] = {}
        self.query_of: np.ndarray = np.array(
            [known.setdefault(text, node) for node, text in enumerate(categories.texts)]
        )
        targets = targets_of(self.catalogue, options.setting, options.seed)[self.products]
        nodes = nodes_on_paths(self.catalogue)[1] if options.resample else targets
        self._greatest = greatest_distance(self.catalogue.tree, nodes)
        self.loss: CategoryProductLoss = CategoryProductLoss(
            options.temperature, options.learn_temperature, options.balance
        )
        self.module = nn.ModuleDict({"model": begun.model, "loss": self.loss})
        self.title = f"training {options.model}"
        self.epochs, self.seed = options.epochs, options.seed
        self.steps_per_epoch = len(self.batches(0))
        self._sum, self._best = 0.0, dict[str, Tensor]()

    def batches(self, epoch: int) -> list[tuple[np.ndarray, np.ndarray]]:
        drawn = epoch if self.options.resample else None
        labels = targets_of(self.catalogue, self.options.setting, self.options.seed, drawn)
        order = batches_of(len(self.products), self.options.batch_size, self.options.seed, epoch)
        return [(rows, labels[rows]) for rows in (self.products[chosen] for chosen in order)]

    def load(self, batch: tuple[np.ndarray, np.ndarray], epoch: int) -> PairBatch:
        """Return their embeddings; a modality that is hidden in this epoch is missing."""
        (products, nodes), share, n = batch, self.options.modality_dropout, len(self.options.modalities)
        hidden = None
        if share and n > 1:
            draws = draw_uniform(self.options.seed, _HIDDEN, epoch, products)
            hidden = np.where(draws < share, (draws / share * n).astype(np.int64), -1)
        # A category that several pairs share goes through its head once; the loss sees a row per pair all the same.
        queries, query = np.unique(self.query_of[nodes], return_inverse=True)
        rows = product_batch(self.features, self.options, products, hidden)
        return PairBatch(rows, _tensor_of(self.categories.text[queries]), torch.from_numpy(query), nodes)

    def optimizer(self, epoch: int) -> torch.optim.Optimizer:
        """Return AdamW; a decay of log(1/τ) would pull τ to 1, so it has none."""
        decayed, rate = dict(self.module.named_parameters()), self.options.learning_rate
        scale = decayed.pop("loss.log_scale", None)
        group = {"params": list(decayed.values()), "weight_decay": self.options.weight_decay}
        groups = [group] if scale is None else [group, {"params": [scale], "weight_decay": 0.0}]
        return torch.optim.AdamW([{**one, "lr": rate, "scale": rate} for one in groups], fused=True)

    def losses(self, batch: MicroBatch) -> tuple[Tensor]:
        given: PairBatch = batch.data
        p, margins, strength = self.begun.model.products(*given.products), None, self.options.tree_distance
        scores = (self.begun.model.categories(given.categories) @ p.T).index_select(0, given.query)
        is_masked = self.options.duplicates == "masked"
        same = given.query[:, None] == given.query[None, :] if is_masked else None
        if strength:
            far = tree_margins(self.catalogue.tree, given.nodes, strength, self._greatest)
            margins = torch.from_numpy(far)
        return (self.loss(scores, same, margins),)

    def after_step(self, place: Place, result: StepResult) -> None:
        self._sum += result.values[0] * len(result.data.nodes)

    def after_epoch(self, place: Place) -> None:
        values: dict[str, float] = {"loss": self._sum / len(self.products), **self.loss.logged()}
        self._sum = 0.0
        if self.validation is not None:
            judged, measures = self._judged, (CHOOSES, "P@10")
            found = measure_ranker(self.begun, self.validation, self.categories, judged, measures=measures)
            values |= {name: found.value(name, "t2i") for name in measures}
            if place.judge(values[CHOOSES], self.options.patience):
                state = self.begun.model.state_dict()
                self._best = {name: value.clone() for name, value in state.items()}
            place.stopped |= place.best >= 1
        self.folder.log(epoch=place.epoch, step=place.step, **values)

    def state(self) -> Mapping[str, Tensor]:
        return {"sum": torch.tensor(self._sum, dtype=torch.float64), **self._best}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self._sum, self._best = float(state.pop("sum")), state

    def trained(self, place: Place) -> TrainedModel:
        if self._best:
            self.begun.model.load_state_dict(self._best)
        lines = [{key: line[key] for key in line if key != "step"} for line in self.folder.metrics()]
        taken = place.best_epoch or place.epoch
        about = {
            "products": len(self.products),
            "without_category": len(self.catalogue) - len(self.products),
            "epochs": place.epoch,
            "best_epoch": taken,
            "chosen_by": None if self.validation is None else CHOOSES,
            "temperature": lines[taken - 1].get("temperature", self.options.temperature),
            "metrics": lines,
        }
        return replace(self.begun, about=about)


def train(
    products: ProductFeatures,
    categories: CategoryFeatures,
    options: TrainOptions,
    out: Path | str | None = None,
    *,
    validation: ProductFeatures | None = None,
) -> TrainedModel:
    """Train the heads of one model on stored embeddings.

    The same products, options and versions give the same bits on one thread of a CPU, stopped and resumed or not.
    Products without a category are left out; ``about`` of the result counts them. ``categories`` are all nodes of the
    products' tree; with ``validation`` the best epoch by mAP@10 is kept, else the last. With a folder ``out`` the same
    call resumes, and :meth:`CategoryRun.finish` makes a run of it.
    """
    parts = [products, *([] if validation is None else [validation])]
    for one in options.modalities:
        if not products.present[one].any():
            raise DataError(f"no product has a row of {one}", f"train a model without {one}")
    encoders = encoders_of(products.about, *options.sides)
    check_encoders(options.model, {"text": encoders["text"]}, categories.about)
    request: dict[str, Any] = {
        **options.model_dump(mode="json"),
        "encoders": encoders,
        "products": [part.catalogue.fingerprint for part in parts],
        "query texts": fingerprint(iter(categories.texts)),
        "pictures": pictured(*(part.pictured for part in parts)) if "image" in options.sides else "",
    }
    with TemporaryDirectory() if out is None else nullcontext(out) as place:
        folder = TrainingFolder(place)
        folder.check(request, allowed=())
        with folder.held():
            if folder.finished:
                from diptych.commerce.category_to_image.run import CategoryRun

                return CategoryRun.open(place).model
            folder.begin(request)
            image = 0 if products.image is None else products.image.shape[1]
            begun = TrainedModel.untrained(options, image, categories.text.shape[1], encoders)
            task = ProductTask(folder, begun, products, categories, validation)
            resume = None if out is None else "the same call resumes"
            saving, fabric = Saving(epochs=out is not None), single_device(torch.device("cpu"))
            return task.trained(Trainer(task, folder, fabric, saving, resume).train())


def pictured(*masks: np.ndarray) -> str:
    """Return a fingerprint of which products have an image, by parts; fingerprints of catalogues read none."""
    return fingerprint_arrays({str(number): mask for number, mask in enumerate(masks)})
