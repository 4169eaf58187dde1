"""TrainedModel: the heads after training, as a ranker; and what they are fed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.catalogue.catalogue import nodes_on_paths, targets_of
from diptych.commerce.category_to_image.features.rows import CategoryFeatures, Modality, ProductFeatures
from diptych.commerce.category_to_image.loss import greatest_distance, tree_margins
from diptych.commerce.category_to_image.model import Bags, CategoryProductModel, Rows, mean_pooled
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.rankers import Ranker
from diptych.core.artifact import Artifact
from diptych.core.errors import DataError, MismatchError, NumericalError, StorageError, UsageError
from diptych.core.files import write_json
from diptych.core.fingerprint import fingerprint, fingerprint_arrays
from diptych.core.reading import read_json
from diptych.encoders.inputs import load_tensors, save_tensors


def encoder_marks(about: Mapping[str, Any], modalities: tuple[Modality, ...]) -> dict[str, str]:
    """The fingerprints of the encoders that matter to a model of ``modalities``: always ``text``, maybe ``image``."""
    sides = ("image", "text") if "image" in modalities else ("text",)
    return {side: _mark(about.get(side)) for side in sides}


def _mark(description: Any) -> str:
    if isinstance(description, Mapping) and "fingerprint" in description:
        return str(description["fingerprint"])
    return fingerprint(description)


def missing_pictures(pictured: Iterable[np.ndarray]) -> str:
    """Which products stand without a picture, in words that change with them; empty where none does.

    A catalogue's fingerprint knows nothing of pictures. One that is downloaded or mended later makes other rows.
    """
    masks = {str(place): mask for place, mask in enumerate(pictured)}
    missing = sum(int((~mask).sum()) for mask in masks.values())
    return f"{missing:,} missing ({fingerprint_arrays(masks)})" if missing else ""


def check_encoders(
    trained: Mapping[str, str], about: Mapping[str, Any], modalities: tuple[Modality, ...]
) -> None:
    """See that features were made by the encoders that a model was trained with."""
    for side, mark in encoder_marks(about, modalities).items():
        if mark != trained.get(side):
            raise MismatchError(
                f"the model was trained on rows of {side} encoder {trained.get(side)}, these are of {mark}",
                "make the features with the encoders in the run's folder: CategoryRun.open(folder).features(...)",
            )


_MOST = 1 << 25
"""Numbers of means that are held: 128 MiB."""

_POOLED = 4096


def gathered(source: np.ndarray, rows: np.ndarray) -> Tensor:
    """``source[rows]`` as a float32 tensor.

    The memory is torch's own, which is aligned as its products of matrices like it: the same numbers at another
    alignment may be added in another order, and a resumed training would end with other bits.
    """
    made = torch.empty((len(rows), source.shape[1]), dtype=torch.float32)
    if source.dtype == np.float32:
        np.take(source, rows, axis=0, out=made.numpy(), mode="clip")  # "raise" would copy through a buffer
    else:
        made.numpy()[...] = source[rows]
    return made


@dataclass(frozen=True)
class Batch:
    """What a model takes of some products."""

    rows: dict[Modality, Rows]  # per modality
    present: dict[Modality, Tensor]  # (n,) booleans of the modalities that some of them lack


class ProductFeed:
    """Batches of products."""

    def __init__(
        self, features: ProductFeatures, modalities: Sequence[Modality], *, pool: bool = False
    ) -> None:
        if "image" in modalities and features.image is None:
            raise MismatchError(
                "the model looks at pictures, the features have none", "make them with an image encoder"
            )
        self._features = features
        self._modalities = tuple(modalities)
        self._present = {one: features.present(one) for one in self._modalities}
        self._pool = pool
        self._means: np.ndarray | None = None
        if pool and "attributes" in modalities and features.title.size <= _MOST:
            self._means = np.empty(features.title.shape, dtype=np.float32)
            for begin in range(0, len(features), _POOLED):
                rows = np.arange(begin, min(begin + _POOLED, len(features)))
                self._means[rows] = mean_pooled(self._bags(rows)).numpy()

    def batch(self, rows: np.ndarray, hidden: np.ndarray | None = None) -> Batch:
        """The products ``rows``.

        Args:
            rows: (n,) int64.
            hidden: (n,) number of the modality that is to be taken for missing, -1 for none; it stays where a
                product has no other one.
        """
        present = {one: self._present[one][rows] for one in self._modalities}
        if hidden is not None:
            spare = sum(there.astype(np.int64) for there in present.values()) > 1
            for number, one in enumerate(self._modalities):
                present[one] = present[one] & ~((hidden == number) & spare)
        made: dict[Modality, Rows] = {}
        for one in self._modalities:
            if one == "attributes" and self._means is not None:
                made[one] = gathered(self._means, rows)
            elif one == "attributes":
                bags = self._bags(rows)
                made[one] = mean_pooled(bags) if self._pool else bags
            else:
                source = self._features.image if one == "image" else self._features.title
                assert source is not None
                made[one] = gathered(source, rows)
        lacking = {one: torch.from_numpy(there) for one, there in present.items() if not there.all()}
        return Batch(made, lacking)

    def _bags(self, rows: np.ndarray) -> Bags:
        begin = self._features.attribute_start[rows]
        counts = self._features.attribute_start[rows + 1] - begin
        start = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(counts, out=start[1:])
        places = np.arange(start[-1]) + np.repeat(begin - start[:-1], counts)
        items = np.asarray(self._features.attribute_items[places], dtype=np.int64)
        return Bags(gathered(self._features.attribute_rows, items), torch.from_numpy(start))

    def check(self, rows: np.ndarray) -> None:
        """See that what the features hold of the products ``rows`` is finite."""
        for one in self._modalities:
            there = rows[self._present[one][rows]]
            if one == "attributes":
                bags = self._bags(there)
                bad = bags.owner[~torch.isfinite(bags.rows).all(dim=1)].numpy()
            else:
                source = self._features.image if one == "image" else self._features.title
                assert source is not None
                bad = np.flatnonzero(~np.isfinite(source[there]).all(axis=1))
            if len(bad):
                raise NumericalError(
                    f"the {one} row of product {self._features.ids[int(there[bad[0]])]} is not finite",
                    "make the features again; if it stays, leave the product out",
                )


class Pairs:
    """Category–product pairs of one training.

    Attributes:
        products: (n,) int64 rows of the catalogue: the products with a category.
        left_out: how many have none.
    """

    def __init__(self, catalogue: Catalogue, texts: Sequence[str], options: TrainOptions) -> None:
        self._catalogue = catalogue
        self._options = options
        labels = targets_of(catalogue, options.setting, options.seed)
        self.products = np.flatnonzero(labels >= 0)
        self.left_out = len(catalogue) - len(self.products)
        if len(self.products) < 2:
            raise DataError(
                f"{len(self.products)} of {len(catalogue):,} products have a category",
                "give at least two that have one",
            )
        # Categories of the same words have the same row: to the model they are one, and so they are here.
        known: dict[str, int] = {}
        self._asks = np.array(
            [known.setdefault(text, node) for node, text in enumerate(texts)], dtype=np.int64
        )
        self._labels = labels
        if not options.resample and len(np.unique(self._asks[labels[self.products]])) < 2:
            raise DataError(
                f"all {len(self.products):,} products ask with the words {texts[labels[self.products[0]]]!r}",
                "a contrastive loss needs two categories: choose another setting, or query=path",
            )
        drawn = nodes_on_paths(catalogue)[1] if options.resample else labels[self.products]
        self._greatest = greatest_distance(catalogue.tree, drawn)

    def labels(self, epoch: int) -> np.ndarray:
        """(len(products),) int64: the node of each pair in this epoch."""
        if self._options.resample:
            return targets_of(self._catalogue, self._options.setting, self._options.seed, epoch)[
                self.products
            ]
        return self._labels[self.products]

    def asking(self, nodes: np.ndarray) -> np.ndarray:
        """The first node that has the same words, for each of ``nodes``."""
        asks: np.ndarray = self._asks[nodes]
        return asks

    def margins(self, nodes: np.ndarray) -> np.ndarray | None:
        """(β, β) margins of the tree-aware loss, None where it is the plain one."""
        strength = self._options.tree_distance
        return tree_margins(self._catalogue.tree, nodes, strength, self._greatest) if strength else None


_WEIGHTS, _MARK = "model.safetensors", "fingerprint.json"
_BLOCK = 2048
_AGAIN = "train it again: diptych categories train"


def model_of(
    options: TrainOptions, widths: Mapping[Modality, int], category_width: int
) -> CategoryProductModel:
    """The model that options describe, for rows of these lengths; its weights are those of ``options.seed``."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        return CategoryProductModel(
            {one: widths[one] for one in options.modalities},
            category_width,
            hidden=options.hidden,
            width=options.width,
            normalise=options.normalise,
            attributes=options.attributes,
        )


@dataclass(frozen=True, eq=False)
class TrainedModel(
    Ranker, Artifact, kind="category_model", recreate="diptych categories train", files=["model"]
):
    """A trained :class:`CategoryProductModel`; its rows are unit rows, so inner products are cosines.

    With a share z of zero-shot (``options.share_of_zero_shot``), the rows of titles and category texts stand behind the
    trained ones, √z and √(1 − z) times: inner products are then (1 − z) times the trained cosine and z times the text
    encoder's own. A product without a title has its trained row alone there, of unit length.

    Attributes:
        model: the weights.
        options: how it was trained.
        encoders: the fingerprints of the encoders whose rows it takes.
        about: on what it was trained and how far; JSON-able.
    """

    model: CategoryProductModel
    options: TrainOptions
    encoders: dict[str, str]
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:  # type: ignore[override]
        """``clip-`` and the letters of the modalities."""
        return self.options.model

    @cached_property
    def fingerprint(self) -> str:
        """Of weights, layout and encoders."""
        arrays = {name: value.detach().cpu().numpy() for name, value in self.model.state_dict().items()}
        share = [self.options.share_of_zero_shot] if self.options.share_of_zero_shot else []
        return fingerprint(fingerprint_arrays(arrays), self.options.normalise, dict(self.encoders), *share)

    @property
    def width(self) -> int:
        """Length of a row."""
        return self.model.width + (self.model.category_width if self.options.share_of_zero_shot else 0)

    def _beside(self, trained: np.ndarray, frozen: np.ndarray, there: np.ndarray | None = None) -> np.ndarray:
        """(n, width) rows: the trained ones, and behind them the text encoder's, where a share is theirs."""
        share = self.options.share_of_zero_shot
        if not share:
            return trained
        left = np.full((len(trained), 1), np.sqrt(1 - share), dtype=np.float32)
        if there is not None:
            left[~there] = 1.0
        return np.concatenate([left * trained, np.float32(np.sqrt(share)) * frozen], axis=1)

    def describe(self) -> dict[str, Any]:
        """Name, options, encoders, fingerprint and what training said."""
        return {
            "name": self.name,
            "fingerprint": self.fingerprint,
            "options": self.options.model_dump(mode="json"),
            "encoders": dict(self.encoders),
            **self.about,
        }

    def product_blocks(
        self, products: ProductFeatures, block: int = _BLOCK
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Which products, and their unit rows, a block at a time."""
        if block < 1:
            raise UsageError(f"a block of {block} products", "give 1 or more")
        check_encoders(self.encoders, products.about, self.options.modalities)
        feed = ProductFeed(products, self.options.modalities)
        for begin in range(0, len(products), block):
            rows = np.arange(begin, min(begin + block, len(products)))
            batch = feed.batch(rows)
            with torch.inference_mode():
                made = self.model.products(batch.rows, batch.present).numpy()
            if not np.isfinite(made.sum()):
                feed.check(rows)
                raise NumericalError(f"the model gives rows that are not finite ({self.fingerprint})", _AGAIN)
            place = slice(begin, begin + len(rows))
            yield place, self._beside(made, products.title[place], products.titled[place])

    def product_rows(self, products: ProductFeatures, out: np.ndarray | None = None) -> np.ndarray:
        """(n, width) float32 unit rows; what else is held at once does not grow with n."""
        made = np.empty((len(products), self.width), dtype=np.float32) if out is None else out
        for place, rows in self.product_blocks(products):
            made[place] = rows
        return made

    def category_rows(self, categories: CategoryFeatures) -> np.ndarray:
        """(q, width) float32 unit rows."""
        check_encoders(self.encoders, categories.about, ("title",))
        made = np.empty((len(categories), self.model.width), dtype=np.float32)
        for begin in range(0, len(categories), _BLOCK):
            rows = np.arange(begin, min(begin + _BLOCK, len(categories)))
            with torch.inference_mode():
                made[rows] = self.model.categories(gathered(categories.text, rows)).numpy()
        wrong = np.flatnonzero(~np.isfinite(made).all(axis=1))
        if len(wrong):
            raise NumericalError(
                f"the row of category {categories.texts[int(wrong[0])]!r} is not finite",
                "make the features again",
            )
        return self._beside(made, categories.text)

    def write_files(self, folder: Path) -> None:
        """Write the weights, and their fingerprint by which they are known."""
        save_tensors(self.model.state_dict(), folder / _WEIGHTS)
        write_json(folder / _MARK, self.fingerprint)

    @classmethod
    def read_files(cls, folder: Path, content: dict[str, Any]) -> dict[str, Any]:
        """Read the weights into the model that the options describe."""
        tensors = load_tensors(folder / _WEIGHTS, _AGAIN)
        options = TrainOptions.read(content["options"], "options", StorageError)
        widths: dict[Modality, int] = {one: len(tensors[f"missing.{one}"]) for one in options.modalities}
        model = model_of(options, widths, tensors["category_head.first.weight"].shape[1])
        try:
            model.load_state_dict(tensors)
        except RuntimeError as error:
            raise StorageError(f"{folder / _WEIGHTS} is of another model: {error}", _AGAIN) from None
        return {"model": model}

    @classmethod
    def open(cls, path: Path | str, of: str = "") -> Self:
        """Read what :meth:`save` wrote."""
        opened, marked = super().open(path, of), read_json(Path(path) / _MARK)
        if opened.fingerprint != marked:
            raise MismatchError(
                f"{path}: weights of fingerprint {opened.fingerprint}, its {_MARK} says {marked}", _AGAIN
            )
        return opened
