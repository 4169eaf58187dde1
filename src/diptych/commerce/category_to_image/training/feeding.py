"""What a training is fed: pairs of category and product, batches of their rows, and of which encoders they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.catalogue.catalogue import nodes_on_paths, targets_of
from diptych.commerce.category_to_image.features.rows import Modality, ProductFeatures
from diptych.commerce.category_to_image.loss import greatest_distance, tree_margins
from diptych.commerce.category_to_image.model import Bags, Rows, mean_pooled
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.core.errors import DataError, MismatchError, NumericalError
from diptych.core.fingerprint import fingerprint, fingerprint_arrays


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

_BLOCK = 4096


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
            for begin in range(0, len(features), _BLOCK):
                rows = np.arange(begin, min(begin + _BLOCK, len(features)))
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
