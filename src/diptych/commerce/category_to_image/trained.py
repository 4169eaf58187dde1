"""TrainedModel: the heads after training, as a ranker; and the batches of products that they take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from diptych.commerce.category_to_image.features import CategoryFeatures, Modality, ProductFeatures
from diptych.commerce.category_to_image.model import Bags, CategoryProductModel
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.rankers import Ranker
from diptych.core.artifact import Artifact
from diptych.core.errors import MismatchError, NumericalError, StorageError
from diptych.core.files import write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import read_json
from diptych.encoders.inputs import load_tensors, save_tensors, weights_fingerprint

_WEIGHTS, _FINGERPRINT = "model.safetensors", "fingerprint.json"
_AGAIN = "train it again: diptych categories train"
_BLOCK = 2048


def encoders_of(about: Mapping[str, Any], modalities: tuple[str, ...]) -> dict[str, str]:
    """Return the fingerprints of the encoders that a model of ``modalities`` depends on: text, maybe image."""
    sides = ("image", "text") if "image" in modalities else ("text",)
    return {side: str((about.get(side) or {}).get("fingerprint")) for side in sides}


def check_encoders(trained: Mapping[str, str], about: Mapping[str, Any], modalities: tuple[str, ...]) -> None:
    """Refuse embeddings of other encoders than those that a model was trained with."""
    for side, found in encoders_of(about, modalities).items():
        if found != trained.get(side):
            problem = (
                f"the model was trained on rows of {side} encoder {trained.get(side)}, these are of {found}"
            )
            fix = "make the features with the encoders in the run's folder: CategoryRun.open(folder).features(...)"
            raise MismatchError(problem, fix)


def tensor_of(rows: np.ndarray) -> Tensor:
    """Return float32 rows in memory of PyTorch's own, whose alignment the order of its sums depends on."""
    return torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32)).clone()


class ProductBatch(NamedTuple):
    """What the model takes of some products."""

    rows: dict[Modality, Tensor | Bags]
    present: dict[Modality, Tensor]  # (n,) booleans of the modalities that some of them lack


class ProductInputs:
    """Batches of products for a model."""

    def __init__(self, features: ProductFeatures, options: TrainOptions) -> None:
        if "image" in options.modalities and features.image is None:
            problem = "the model looks at pictures, the features have none"
            raise MismatchError(problem, "make them with an image encoder")
        self._features, self._attends = features, options.attributes == "attention"
        self._present = {one: features.present(one) for one in options.modalities}

    def batch(self, rows: np.ndarray, hidden: np.ndarray | None = None) -> ProductBatch:
        """Return the products ``rows``; ``hidden`` numbers a modality each that counts as missing, -1 for none."""
        present = {one: there[rows] for one, there in self._present.items()}
        if hidden is not None:
            spare = sum(there.astype(np.int64) for there in present.values()) > 1
            for number, one in enumerate(present):
                present[one] = present[one] & ~((hidden == number) & spare)
        lacking = {one: torch.from_numpy(there) for one, there in present.items() if not there.all()}
        return ProductBatch({one: self._rows(one, rows) for one in present}, lacking)

    def _rows(self, one: Modality, rows: np.ndarray) -> Tensor | Bags:
        features = self._features
        if one != "attributes":
            return tensor_of(getattr(features, one)[rows])
        attributes = features.attributes[rows]
        if not self._attends:
            return tensor_of(attributes @ features.attribute_rows)
        start = torch.from_numpy(attributes.indptr.astype(np.int64))
        return Bags(tensor_of(features.attribute_rows[attributes.indices]), start)


def untrained_model(
    options: TrainOptions, widths: Mapping[Modality, int], category_width: int
) -> CategoryProductModel:
    """Return the model that options describe, for embeddings of these widths, with the weights of its seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        return CategoryProductModel(
            {one: widths[one] for one in options.modalities},
            category_width,
            **options.model_dump(include={"hidden", "width", "normalise", "attributes", "dropout"}),
        )


@dataclass(frozen=True, eq=False)
class TrainedModel(
    Ranker, Artifact, kind="category_model", version=2, recreate="diptych categories train", files=["model"]
):
    """A trained :class:`CategoryProductModel`; its rows are unit rows, so inner products are cosines.

    With a share z of zero-shot (``options.share_of_zero_shot``), embeddings of titles and category texts stand behind
    the trained rows, √z and √(1 − z) times: inner products are 1 − z times the trained cosine and z times the text
    encoder's own. Of a product without a title there is the trained row, of unit length.
    """

    model: CategoryProductModel
    options: TrainOptions  # how it was trained
    encoders: dict[str, str]  # fingerprints of the encoders whose embeddings it takes
    about: dict[str, Any] = field(default_factory=dict)  # on what it was trained and how far; JSON-able

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.options.model

    @cached_property
    def fingerprint(self) -> str:
        share = [self.options.share_of_zero_shot] if self.options.share_of_zero_shot else []
        weights = weights_fingerprint(self.model.state_dict())
        return fingerprint(weights, self.options.normalise, dict(self.encoders), *share)

    def describe(self) -> dict[str, Any]:
        options, own = (
            self.options.model_dump(mode="json"),
            {"name": self.name, "fingerprint": self.fingerprint},
        )
        return {**own, "options": options, "encoders": dict(self.encoders), **self.about}

    def product_rows(self, products: ProductFeatures) -> np.ndarray:
        check_encoders(self.encoders, products.about, self.options.modalities)
        inputs = ProductInputs(products, self.options)
        made = self._in_blocks(len(products), lambda rows: self.model.products(*inputs.batch(rows)))
        return self._with_frozen(made, products.title, products.titled)

    def category_rows(self, categories: CategoryFeatures) -> np.ndarray:
        check_encoders(self.encoders, categories.about, ("title",))
        given = categories.text
        made = self._in_blocks(len(given), lambda rows: self.model.categories(tensor_of(given[rows])))
        return self._with_frozen(made, given, np.ones(len(given), dtype=bool))

    def _in_blocks(self, n: int, encode: Callable[[np.ndarray], Tensor]) -> np.ndarray:
        made = np.empty((n, self.model.width), dtype=np.float32)
        self.model.eval()
        for begin in range(0, n, _BLOCK):
            rows = np.arange(begin, min(begin + _BLOCK, n))
            with torch.inference_mode():
                made[rows] = encode(rows).numpy()
        if not np.isfinite(made.sum()):
            fix = "make the features again; if it stays, train it again"
            raise NumericalError(f"{self.name} ({self.fingerprint}) gives rows that are not finite", fix)
        return made

    def _with_frozen(self, trained: np.ndarray, frozen: np.ndarray, there: np.ndarray) -> np.ndarray:
        share = self.options.share_of_zero_shot
        if not share:
            return trained
        left = np.where(there, np.sqrt(1 - share), 1).astype(np.float32)
        return np.concatenate([left[:, None] * trained, np.float32(np.sqrt(share)) * frozen], axis=1)

    def write_files(self, folder: Path) -> None:
        state = self.model.state_dict()
        save_tensors(state, folder / _WEIGHTS)
        write_json(folder / _FINGERPRINT, weights_fingerprint(state))

    @classmethod
    def read_files(cls, folder: Path, content: dict[str, Any]) -> dict[str, Any]:
        tensors = load_tensors(folder / _WEIGHTS, _AGAIN)
        if weights_fingerprint(tensors) != read_json(folder / _FINGERPRINT):
            raise MismatchError(f"{folder}: weights are not those of its {_FINGERPRINT}", _AGAIN)
        options = TrainOptions.read(content["options"], "options", StorageError)
        text, inputs = (
            int(tensors[f"{side}_head.first.weight"].shape[1]) for side in ("category", "product")
        )
        widths: dict[Modality, int] = {one: text for one in options.modalities if one != "image"}
        model = untrained_model(options, {**widths, "image": inputs - sum(widths.values())}, text)
        model.load_state_dict(tensors)
        return {"model": model}
